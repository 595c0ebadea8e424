//! The choice as a program takes it in: as Rust.

use bufworks::any::AnyBuilder;

use super::candidate::Candidate;
use super::strategies::Owner;

/// Returns the settings as Rust.
pub(crate) fn rust(pick: &Candidate) -> String {
    // `bounded-slot` is in the package of `slot`.
    let feature = pick.strategy().trim_start_matches("bounded-");
    let source = env!("CARGO_PKG_REPOSITORY");
    let head = format!(
        "// bufworks = {{ git = \"{source}\", default-features = false, features = [\"std\", \"{feature}\"] }}\n\n/// The strategy with its settings, as `AnyBuilder` reads them.\npub const SETTINGS: &str = \"{pick}\";\n"
    );
    let Candidate::Pool(builder) = pick else { return head };
    let settings = set(builder);
    let are_numbers = settings.iter().all(|(_, value)| value.is_u64());
    let strategy = pick.in_table().filter(|_| are_numbers);
    let Some((path, owner)) = strategy.map(|strategy| (strategy.pool_type, strategy.owner)) else {
        return format!(
            "{head}\n\
             /// Builds the pool.\n\
             pub fn pool() -> Result<bufworks::AnyPool, Box<dyn std::error::Error>> {{\n    \
             Ok(SETTINGS.parse::<bufworks::any::AnyBuilder>()?.build()?)\n}}\n"
        );
    };
    let calls: String = settings.iter().map(|(setting, value)| format!(".{setting}({value})")).collect();
    format!(
        "{head}\n/// Builds the pool: {}.\npub fn pool() -> Result<bufworks::{path}, bufworks::ConfigError> {{\n    \
         bufworks::{path}::builder(){calls}.build()\n}}\n",
        match owner {
            Owner::Thread => "one for each thread that acquires. Buffers may be dropped on any thread",
            Owner::All => "all threads share it, each has a clone",
        }
    )
}

/// Returns the settings that differ from the defaults, with their values.
fn set(builder: &AnyBuilder) -> Vec<(String, serde_json::Value)> {
    let object = |builder: &AnyBuilder| serde_json::to_value(builder).unwrap_or_default();
    let (own, usual) = (object(builder), AnyBuilder::named(builder.name()).map(|usual| object(&usual)));
    let usual = usual.unwrap_or_default();
    let own = own.as_object().into_iter().flatten();
    own.filter(|(name, value)| *name != "strategy" && usual.get(name) != Some(value))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// What is written, as a program takes it in: compiled here.
#[cfg(test)]
#[path = "../../tests/generated/mod.rs"]
#[allow(unreachable_pub, dead_code, reason = "the interface of a program's module")]
mod generated;

#[cfg(test)]
mod tests {
    use bufcore::BufferPool;

    use super::*;

    #[test]
    fn emitted_rust_compiles_and_serves() {
        for (settings, file) in [
            ("slot:capacity=64KiB,slots=16", include_str!("../../tests/generated/slot.rs")),
            ("ring:capacity=1500000,buffers=9", include_str!("../../tests/generated/ring.rs")),
            ("bump:shard_size=64KiB,max_idle_bytes=3MiB", include_str!("../../tests/generated/bump.rs")),
            ("shard:shard_buffers=115,thread_cache=4", include_str!("../../tests/generated/shard.rs")),
            ("bounded-slot:slots=9", include_str!("../../tests/generated/any.rs")),
        ] {
            let candidate: Candidate = settings.parse().expect("settings");
            let written = format!("//! A pool.\n\n{}", rust(&candidate));
            assert_eq!(written, file, "write it again: {settings}\n{written}");
        }
        fn serves(mut pool: impl BufferPool) {
            assert!(pool.acquire(1000).expect("there is room").capacity() >= 1000);
        }
        serves(generated::slot::pool().expect("settings are right"));
        serves(generated::ring::pool().expect("settings are right"));
        serves(generated::bump::pool().expect("settings are right"));
        serves(generated::shard::pool().expect("settings are right"));
        serves(generated::any::pool().expect("settings are right"));
    }
}
