//! Strategies that are chosen at run time: names, settings, and what goes wrong with them.

use bufworks::any::{AnyBuilder, SettingError};
use bufworks::{AnyPool, BufferPool, ConfigError};

/// A pool of ordinary size.
pub(super) fn built(name: &str) -> AnyPool {
    let mut builder = AnyBuilder::named(name).expect("there is such a strategy");
    for (setting, value) in [("capacity", "1MiB"), ("slots", "1000"), ("buffers", "64")] {
        // Those that take their memory as they need it have no such setting.
        if let Err(error) = builder.set(setting, value) {
            assert!(matches!(error, SettingError::UnknownSetting { .. }), "{error}");
        }
    }
    builder.build().expect("settings are right")
}

#[test]
fn every_name_is_a_strategy_of_that_name() {
    for name in AnyBuilder::NAMES {
        let builder: AnyBuilder = name.parse().expect("it is in the list");
        assert_eq!(builder.name(), *name);
        assert_eq!(built(name).strategy(), *name);
    }
}

#[test]
fn what_is_not_there_is_named() {
    let error = "sloth".parse::<AnyBuilder>().expect_err("there is none");
    assert_eq!(error, SettingError::UnknownStrategy { name: "sloth".into() });
    assert!(error.to_string().contains("heap"));
    let error = "heap:slots=3".parse::<AnyBuilder>().expect_err("the heap has none");
    assert_eq!(error, SettingError::UnknownSetting { strategy: "heap", setting: "slots".into() });
}

#[test]
fn values_are_checked() {
    for value in ["", "x", "-1", "1.5", "1kb", "99999999999999999999", "99999999999999GiB", "KiB", "true"] {
        let text = format!("heap:alignment={value}");
        let error = text.parse::<AnyBuilder>().expect_err("no such value");
        assert_eq!(error, SettingError::BadValue { setting: "alignment".into(), value: value.into() });
    }
    for value in ["64", " 64 ", "1KiB", "2 MiB"] {
        format!("heap: alignment = {value} ,").parse::<AnyBuilder>().expect("a number");
    }
    let bad = "heap:alignment=3".parse::<AnyBuilder>().expect("it is a number");
    assert_eq!(bad.build().expect_err("no power of two"), ConfigError::BadAlignment { alignment: 3 });
}

/// What failed has changed nothing.
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
        let pool = built(name);
        let shared = pool.share();
        assert_eq!(shared.is_some(), ["bump", "shard"].contains(name), "{name}");
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
    assert!(serde_json::from_str::<AnyBuilder>(r#"{"strategy": "sloth"}"#).is_err());
    assert!(serde_json::from_str::<AnyBuilder>("{}").is_err());
}
