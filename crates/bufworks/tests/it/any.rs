//! Strategies that are chosen at run time: names, settings, and what goes wrong with them.

use bufworks::any::{AnyBuilder, HeapBuilder, SettingError};
use bufworks::{AnyPool, ConfigError};

/// The settings of a pool of ordinary size.
pub(super) fn sized(name: &str) -> AnyBuilder {
    let mut builder = AnyBuilder::named(name).expect("there is such a strategy");
    for (setting, value) in [("capacity", "1MiB"), ("slots", "1000"), ("buffers", "64")] {
        // Those that take their memory as they need it have no such setting.
        if let Err(error) = builder.set(setting, value) {
            assert!(matches!(error, SettingError::UnknownSetting { .. }), "{error}");
        }
    }
    builder
}

/// A pool of ordinary size.
pub(super) fn built(name: &str) -> AnyPool {
    sized(name).build().expect("settings are right")
}

#[test]
fn every_name_is_a_strategy_of_that_name() {
    for name in AnyBuilder::NAMES {
        let builder: AnyBuilder = name.parse().expect("it is in the list");
        assert_eq!(builder.name(), *name);
        assert_eq!(built(name).strategy(), *name);
    }
}

/// A name is enough, and prints as itself.
#[test]
fn every_name_alone_builds() {
    for name in AnyBuilder::NAMES {
        let builder: AnyBuilder = name.parse().expect("it is in the list");
        assert_eq!(builder.to_string(), *name);
        let mut pool = builder.build().expect("all has a default");
        assert!(pool.acquire(1500).expect("there is room").capacity() >= 1500, "{name}");
    }
}

#[test]
fn what_is_not_there_is_named() {
    let error = "sloth".parse::<AnyBuilder>().expect_err("there is none");
    assert_eq!(error, SettingError::UnknownStrategy { name: "sloth".into() });
    let text = error.to_string();
    assert!(AnyBuilder::NAMES.iter().all(|name| text.contains(&format!("`{name}`"))), "{text}");
    let error = "heap:slots=3".parse::<AnyBuilder>().expect_err("the heap has none");
    let known: &[_] = if cfg!(feature = "wipe") { &["alignment", "wipe"] } else { &["alignment"] };
    assert_eq!(error, SettingError::UnknownSetting { strategy: "heap", setting: "slots".into(), known });
    let said = |text: &str| text.parse::<AnyBuilder>().expect_err("it is wrong").to_string();
    assert!(said("heap:slots=3").starts_with("strategy `heap` has no setting `slots`: expected `alignment`"));
    #[cfg(all(feature = "shard", not(feature = "mmap")))]
    assert!(said("shard:map_options=advise").ends_with("; the feature `mmap` is disabled"));
    #[cfg(not(feature = "wipe"))]
    assert_eq!(
        said("heap:wipe=true"),
        "strategy `heap` has no setting `wipe`: expected `alignment`; the feature `wipe` is disabled"
    );
    assert!(
        said("heap,alignment=3")
            .ends_with("settings follow a colon, as in `shard:thread_cache=8,max_bytes=256MiB`")
    );
    #[cfg(all(feature = "shard", feature = "wipe"))]
    assert_eq!(
        said("shard:max-bytes=1M"),
        format!(
            "strategy `shard` has no setting `max-bytes`: expected `thread_cache`, `max_cached_bytes`, `smallest_pooled`, \
             `largest_pooled`, `shard_buffers`, `shards`, `max_bytes`, `alignment`{} or `wipe`",
            if cfg!(feature = "mmap") { ", `map_options`" } else { "" }
        )
    );
}

/// Checks that an error names what was given; its text is for people.
fn is_bad(error: &SettingError, name: &str, given: &str) {
    match error {
        SettingError::BadValue { setting, value, .. } => assert_eq!((&**setting, &**value), (name, given)),
        _ => panic!("{error}"),
    }
}

#[test]
fn values_are_checked() {
    for value in ["", "x", "-1", "+1", "1.5", "1kb", "64KB", "1 000", "KiB", "M", "true", "0x10"] {
        let text = format!("heap:alignment={value}");
        let error = text.parse::<AnyBuilder>().expect_err("no such value");
        is_bad(&error, "alignment", value);
        let text = error.to_string();
        assert!(text.ends_with("such as 65536, 64K or 64KiB (K, M and G are powers of 1024)"), "{text}");
        let start = match value {
            "" => "setting `alignment` has no value: expected".into(),
            _ => format!("invalid value `{value}` for setting `alignment`: expected"),
        };
        assert!(text.starts_with(&start), "{text}");
    }
    for value in ["99999999999999999999", "99999999999999GiB"] {
        let error = format!("heap:alignment={value}").parse::<AnyBuilder>().expect_err("too large");
        is_bad(&error, "alignment", value);
        assert!(error.to_string().ends_with(&format!("expected at most {}", usize::MAX)));
    }
    for (value, bytes) in [
        ("64", 64),
        (" 64 ", 64),
        ("1KiB", 1 << 10),
        ("1kib", 1 << 10),
        ("2 MiB", 2 << 20),
        ("4K", 4 << 10),
        ("4k", 4 << 10),
        ("8M", 8 << 20),
        ("1 G", 1 << 30),
    ] {
        let builder = format!("heap: alignment = {value} ,").parse::<AnyBuilder>().expect("a number");
        assert_eq!(builder, AnyBuilder::Heap(HeapBuilder::new().alignment(bytes)), "{value}");
    }
    let bad = "heap:alignment=3".parse::<AnyBuilder>().expect("it is a number");
    assert_eq!(bad.build().expect_err("no power of two"), ConfigError::BadAlignment { alignment: 3 });
    let missing = "heap:alignment".parse::<AnyBuilder>().expect_err("no value");
    assert!(missing.to_string().starts_with("setting `alignment` has no value: expected"), "{missing}");
}

/// The settings are right as text. Building names the one that is wrong, and what is wrong with it.
#[cfg(target_pointer_width = "64")]
#[test]
fn refusals_name_the_setting_that_is_wrong() {
    for (text, expected) in [
        ("heap:alignment=4611686018427387904", "alignment of 4611686018427387904 is over the limit of"),
        #[cfg(feature = "slot")]
        ("slot:alignment=4611686018427387904", "alignment of 4611686018427387904 is over the limit of"),
        #[cfg(feature = "slot")]
        ("slot:slots=18446744073709551615", "slots of 18446744073709551615 is over the limit of"),
        #[cfg(feature = "ring")]
        ("ring:alignment=64G", "alignment of 68719476736 is over the limit of 34359738368"),
        #[cfg(feature = "ring")]
        (
            "ring:capacity=1MiB,buffers=18446744073709551615",
            "buffers of 18446744073709551615 is over the limit of",
        ),
        #[cfg(feature = "ring")]
        ("ring:buffers=4294967296", "buffers of 4294967296 is over the limit of"),
        #[cfg(feature = "ring")]
        ("ring:buffers=4294967296,alignment=4K", "buffers of 4294967296 is over the limit of 16713959"),
        #[cfg(feature = "ring")]
        ("ring:capacity=64G,buffers=9", "capacity of 68719476736 is over the limit of"),
        #[cfg(feature = "bump")]
        ("bump:alignment=2G", "alignment of 2147483648 is over the limit of 1073741824"),
        #[cfg(feature = "shard")]
        ("shard:alignment=2G", "alignment of 2147483648 is over the limit of 1073741824"),
    ] {
        let builder: AnyBuilder = text.parse().expect("they are numbers");
        let refused = builder.build().expect_err("one is wrong").to_string();
        assert!(refused.starts_with(expected), "{text}: {refused}");
    }
}

/// The later of two values does not win silently.
#[test]
fn a_setting_that_is_given_twice_is_refused() {
    for (text, expected) in [
        ("heap:alignment=64,alignment=128", "setting `alignment` is given twice"),
        ("heap: alignment = 64, alignment=64", "setting `alignment` is given twice"),
        #[cfg(feature = "slot")]
        ("slot:slots=8,capacity=1M,slots=9", "setting `slots` is given twice"),
    ] {
        let refused = text.parse::<AnyBuilder>().map(|builder| builder.to_string());
        assert_eq!(refused.map_err(|error| error.to_string()), Err(expected.to_string()));
    }
    #[cfg(feature = "serde")]
    {
        let text = r#"{ "strategy": "heap", "alignment": 64, "alignment": 128 }"#;
        assert!(serde_json::from_str::<AnyBuilder>(text).is_err());
    }
}

/// Numbers of things have no unit, and switches no numbers.
#[cfg(feature = "slot")]
#[test]
fn counts_and_switches() {
    for (text, expected) in [
        ("slot:slots=1K", "invalid value `1K` for setting `slots`: expected a whole number, such as 64"),
        ("slot:stagger=1", "invalid value `1` for setting `stagger`: expected `true` or `false`"),
    ] {
        assert_eq!(text.parse::<AnyBuilder>().expect_err("no such value").to_string(), expected);
    }
}

/// Words that say what mappings are like.
#[cfg(all(feature = "shard", feature = "mmap"))]
#[test]
fn pages_are_words() {
    use bufworks::{HugePages, MapOptions};

    let plain = MapOptions::new();
    for (value, options, printed) in [
        ("plain", plain, ""),
        ("advise", plain.huge_pages(HugePages::Advise), ":map_options=advise"),
        ("lock + require", plain.huge_pages(HugePages::Require).lock(true), ":map_options=require+lock"),
        ("lock+lock", plain.lock(true), ":map_options=lock"),
        (
            "lock+populate+advise",
            plain.huge_pages(HugePages::Advise).populate(true).lock(true),
            ":map_options=advise+populate+lock",
        ),
    ] {
        let builder: AnyBuilder = format!("shard:map_options={value}").parse().expect("words");
        assert_eq!(
            builder,
            AnyBuilder::Shard(bufworks::shard::Builder::new().map_options(options)),
            "{value}"
        );
        assert_eq!(builder.to_string(), format!("shard{printed}"));
        assert_eq!(builder.to_string().parse(), Ok(builder));
    }
    for value in ["", "huge", "advise+", "+lock", "advise+require", "plain+lock", "Lock", "true", "4K"] {
        let error = format!("shard:map_options={value}").parse::<AnyBuilder>().expect_err("no such word");
        is_bad(&error, "map_options", value);
        assert!(error.to_string().contains("`advise` or `require` for huge pages"), "{error}");
    }
    // It is the pool's.
    let builder: AnyBuilder = "shard:shards=2,map_options=advise".parse().expect("settings are right");
    let mut pool = builder.build().expect("settings are right");
    let buf = pool.acquire(1 << 20).expect("the system maps");
    assert_eq!(pool.stats().reserved_bytes, 2 << 20, "one huge page");
    drop(buf);
}

/// A budget in which nothing fits is refused, by a message that names one in which something does.
#[cfg(feature = "shard")]
#[test]
fn a_budget_that_serves_nothing_is_refused() {
    for text in ["shard:max_bytes=10", "shard:max_bytes=31", "shard:max_bytes=40,alignment=4K"] {
        let builder: AnyBuilder = text.parse().expect("they are numbers");
        let error = builder.build().expect_err("it can serve nothing");
        let ConfigError::TooSmall { setting: "max_bytes", requested, least } = error else {
            panic!("{text}: {error:?}")
        };
        assert_eq!(
            error.to_string(),
            format!("max_bytes of {requested} can serve nothing: {least} is the least that works")
        );
        let mut builder = builder;
        builder.set("max_bytes", &(least - 1).to_string()).expect("it is a number");
        assert!(builder.build().is_err(), "{text}");
        builder.set("max_bytes", &least.to_string()).expect("it is a number");
        let mut pool = builder.build().expect("the error says so");
        assert_eq!(pool.acquire(1).expect("the error says so").capacity(), 1, "{text}");
    }
}

/// The printed text is read as the same builder, for settings of all kinds.
#[test]
fn prints_what_it_reads() {
    for (text, printed) in [
        ("heap:alignment=1", "heap"),
        ("heap: alignment = 65536", "heap:alignment=64KiB"),
        ("heap:alignment=0", "heap:alignment=0"),
        #[cfg(feature = "slot")]
        ("bounded-slot:slots=8,capacity=1048577", "bounded-slot:capacity=1048577,slots=8"),
        #[cfg(feature = "slot")]
        ("slot:stagger=false,slots=1024", "slot:slots=1024,stagger=false"),
        #[cfg(feature = "bump")]
        ("bump:max_idle_bytes=0,shard_size=262144", "bump:max_idle_bytes=0"),
        #[cfg(all(feature = "bump", feature = "mmap"))]
        ("bump:map_options=lock,shard_size=2M", "bump:shard_size=2MiB,map_options=lock"),
        #[cfg(feature = "shard")]
        ("shard:max_bytes=3G,shards=8", "shard:shards=8,max_bytes=3GiB"),
        #[cfg(feature = "shard")]
        ("shard:shard_buffers=7,max_cached_bytes=2M", "shard:max_cached_bytes=2MiB,shard_buffers=7"),
        #[cfg(all(feature = "shard", feature = "mmap"))]
        ("shard:map_options=populate,alignment=4K", "shard:alignment=4KiB,map_options=populate"),
    ] {
        assert_eq!(text.parse::<AnyBuilder>().expect("settings are right").to_string(), printed);
    }
    let mut rng = fastrand::Rng::with_seed(7);
    for _ in 0..2000 {
        let mut builder = AnyBuilder::named(rng.choice(AnyBuilder::NAMES).expect("some")).expect("there");
        let default = builder;
        let mut changed = Vec::new();
        for setting in builder.settings() {
            if rng.bool() {
                continue;
            }
            let number = rng.usize(..) >> rng.u32(..usize::BITS) << rng.u32(..usize::BITS);
            let value = if rng.bool() { number } else { rng.usize(..100) };
            let value = if rng.u8(..32) == 0 { usize::MAX } else { value };
            let words = rng.choice(["plain", "advise", "require+lock", "populate+lock"]).expect("some");
            let texts = [value.to_string(), rng.bool().to_string(), words.into()];
            let set = texts.iter().filter(|text| builder.set(setting, text).is_ok()).count();
            assert_eq!(set, 1, "{setting}");
            changed.push(*setting);
        }
        let text = builder.to_string();
        assert_eq!(text.parse(), Ok(builder), "{text}");
        assert_eq!(text == builder.name(), builder == default, "{text}");
        let printed = text.matches('=').count();
        assert!(printed <= changed.len(), "{text} has more than {changed:?}");
    }
}

/// A setting that failed has changed nothing.
#[test]
fn a_builder_outlives_bad_settings() {
    let mut builder = AnyBuilder::named("heap").expect("it is there");
    let before = builder;
    builder.set("alignment", "many").expect_err("no number");
    builder.set("colour", "red").expect_err("no setting");
    assert_eq!(builder, before);
}

#[cfg(all(feature = "slot", feature = "ring", feature = "bump", feature = "shard"))]
#[test]
fn settings_reach_the_builders() {
    use bufworks::{bump, ring, shard, slot};

    let parsed = |text: &str| text.parse::<AnyBuilder>().expect("settings are right");
    assert_eq!(
        parsed("slot:capacity=64KiB,slots=3,alignment=64,stagger=false"),
        AnyBuilder::Slot(slot::Builder::new().capacity(65536).slots(3).alignment(64).stagger(false))
    );
    assert_eq!(parsed("bounded-slot:slots=3"), AnyBuilder::BoundedSlot(slot::Builder::new().slots(3)));
    assert_eq!(
        parsed("ring:capacity=1MiB,buffers=9,alignment=128"),
        AnyBuilder::Ring(ring::Builder::new().capacity(1 << 20).buffers(9).alignment(128))
    );
    let builder =
        bump::Builder::new().shard_size(4096).max_probes(1).max_idle_bytes(0).alignment(8).preallocate(2);
    assert_eq!(
        parsed("bump:shard_size=4KiB,max_probes=1,max_idle_bytes=0,alignment=8,preallocate=2"),
        AnyBuilder::Bump(builder)
    );
    let builder =
        shard::Builder::new().thread_cache(1).smallest_pooled(2).largest_pooled(3).shard_buffers(4).shards(5);
    assert_eq!(
        parsed(
            "shard:thread_cache=1,smallest_pooled=2,largest_pooled=3,shard_buffers=4,shards=5,max_bytes=1GiB,alignment=32"
        ),
        AnyBuilder::Shard(builder.max_bytes(1 << 30).alignment(32))
    );
    assert_eq!(
        parsed("shard:max_cached_bytes=1MiB,shard_buffers=0"),
        AnyBuilder::Shard(shard::Builder::new().max_cached_bytes(1 << 20).shard_buffers(0))
    );
    #[cfg(feature = "mmap")]
    {
        use bufworks::{HugePages, MapOptions};

        let options = MapOptions::new().huge_pages(HugePages::Advise);
        assert_eq!(
            parsed("shard:map_options=advise"),
            AnyBuilder::Shard(shard::Builder::new().map_options(options))
        );
        assert_eq!(
            parsed("bump:map_options=advise"),
            AnyBuilder::Bump(bump::Builder::new().map_options(options))
        );
    }
}

#[cfg(feature = "wipe")]
#[test]
fn all_wipe() {
    for name in AnyBuilder::NAMES {
        let mut builder = AnyBuilder::named(name).expect("it is there");
        builder.set("wipe", "true").expect("every strategy has it");
        assert_ne!(Ok(builder), AnyBuilder::named(name));
        builder.set("wipe", "false").expect("every strategy has it");
        assert_eq!(Ok(builder), AnyBuilder::named(name));
    }
}

/// A bounded strategy refuses where another falls back.
#[cfg(feature = "slot")]
#[test]
fn bounded_slots_refuse() {
    let pool = |name: &str| {
        let builder: AnyBuilder =
            format!("{name}:capacity=4KiB,slots=2").parse().expect("settings are right");
        builder.build().expect("settings are right")
    };
    let (mut bounded, mut falling) = (pool("bounded-slot"), pool("slot"));
    let held: Vec<_> = (0..2).map(|_| bounded.acquire(100).expect("a slot for each")).collect();
    assert!(matches!(bounded.acquire(100), Err(bufworks::AcquireError::Exhausted { .. })));
    assert!(held.iter().all(|buf| !buf.lease().is_fallback()));
    let held: Vec<_> = (0..3).map(|_| falling.acquire(100).expect("the heap has room")).collect();
    assert!(held[2].lease().is_fallback() && !held[1].lease().is_fallback());
}

/// Strategies that threads share give further handles, to one pool; the others give none.
#[test]
fn shared_handles() {
    for name in AnyBuilder::NAMES {
        let mut pool = built(name);
        let shared = pool.share();
        match *name {
            "heap" | "slot" | "bounded-slot" | "ring" => assert!(shared.is_none(), "{name}"),
            "bump" | "shard" => assert!(shared.is_some(), "{name}"),
            _ => {}
        }
        if let Some(mut other) = shared {
            let held = other.acquire(1 << 12).expect("there is room");
            #[cfg(feature = "stats")]
            assert_eq!(pool.stats().in_use, 1, "{name}");
            drop(held);
            pool.trim();
            #[cfg(feature = "shard")]
            if *name == "shard" {
                assert_eq!(other.stats().reserved_bytes, 0);
            }
        }
    }
}

/// High-water marks start again from what is out; other counters only ever go up, and have a
/// difference.
#[cfg(feature = "stats")]
#[test]
fn counters_that_start_again() {
    for name in AnyBuilder::NAMES {
        let mut pool = built(name);
        let held = pool.acquire(1000).expect("there is room");
        drop((pool.acquire(100).expect("there is room"), pool.acquire(100).expect("there is room")));
        let before = pool.stats();
        assert_eq!((before.acquired, before.in_use, before.high_water), (3, 1, 3), "{name}");
        pool.reset_high_water();
        let now = pool.stats();
        assert_eq!((now.acquired, now.high_water, now.high_water_bytes), (3, 1, now.in_use_bytes), "{name}");
        drop(pool.acquire(100).expect("there is room"));
        let lately = pool.stats().since(&before);
        assert_eq!((lately.acquired, lately.in_use, lately.high_water), (1, 1, 2), "{name}");
        assert_eq!(lately.acquired, lately.reused + lately.fresh, "{name}");
        drop(held);
        pool.reset_high_water();
        assert_eq!((pool.stats().high_water, pool.stats().high_water_bytes), (0, 0), "{name}");
    }
}

#[cfg(feature = "serde")]
#[test]
fn files() {
    for name in AnyBuilder::NAMES {
        let builder = AnyBuilder::named(name).expect("it is there");
        let text = serde_json::to_string(&builder).expect("it can be written");
        assert_eq!(serde_json::from_str::<AnyBuilder>(&text).expect("as it was written"), builder, "{text}");
        // The name alone is enough, and what is no setting is refused.
        let text = format!(r#"{{"strategy": "{name}"}}"#);
        assert_eq!(serde_json::from_str::<AnyBuilder>(&text).expect("all has a default"), builder);
        let text = format!(r#"{{"strategy": "{name}", "no_such_setting": 1}}"#);
        assert!(serde_json::from_str::<AnyBuilder>(&text).is_err(), "{name}");
        let text = format!(r#"{{"strategy": "{name}", "wipe": true}}"#);
        assert_eq!(serde_json::from_str::<AnyBuilder>(&text).is_ok(), cfg!(feature = "wipe"), "{name}");
        let text = format!(r#"{{"strategy": "{name}", "alignment": -1}}"#);
        assert!(serde_json::from_str::<AnyBuilder>(&text).is_err(), "{name}");
    }
    // Every setting is in files, and all of a file are settings.
    for name in AnyBuilder::NAMES {
        let mut builder = AnyBuilder::named(name).expect("it is there");
        let mut settings = builder.settings().to_vec();
        for setting in &settings {
            let set = ["3", "true", "advise"].iter().find(|value| builder.set(setting, value).is_ok());
            // That of a switch which is on.
            if *set.expect("one of them") == "true" && *setting == "stagger" {
                builder.set(setting, "false").expect("a switch");
            }
        }
        let file = serde_json::to_value(builder).expect("it can be written");
        let keys = file.as_object().expect("a table").keys().map(String::as_str);
        let mut keys: Vec<_> = keys.filter(|key| *key != "strategy").collect();
        keys.sort_unstable();
        settings.sort_unstable();
        assert_eq!(keys, settings, "{name}");
        assert_eq!(serde_json::from_value::<AnyBuilder>(file).expect("as it was written"), builder);
        assert_eq!(builder.to_string().matches('=').count(), settings.len(), "{builder}");
    }
    assert!(serde_json::from_str::<AnyBuilder>(r#"{"strategy": "sloth"}"#).is_err());
    assert!(serde_json::from_str::<AnyBuilder>("{}").is_err());
}
