//! Texts of `AnyBuilder`: as settings and as JSON, and the small pools that come of them.

use bufworks::any::AnyBuilder;
use serde_json::Value;

/// No pool is built with a larger setting than that.
const SMALL: u64 = 1 << 16;

/// Reads one text.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match text.parse::<AnyBuilder>() {
        Ok(builder) => {
            assert!(AnyBuilder::NAMES.contains(&builder.name()));
            assert_eq!(text.parse::<AnyBuilder>(), Ok(builder));
            assert_eq!(builder.to_string().parse(), Ok(builder));
            through_json(builder);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    if let Ok(builder) = serde_json::from_str::<AnyBuilder>(text) {
        through_json(builder);
    }
}

/// The written text is read as the same settings. If they are small, the pool works.
fn through_json(builder: AnyBuilder) {
    let value = serde_json::to_value(builder).expect("settings can be written");
    assert_eq!(serde_json::from_value::<AnyBuilder>(value.clone()).expect("as it was written"), builder);
    let default = AnyBuilder::named(builder.name()).expect("it has a name");
    let default = serde_json::to_value(default).expect("settings can be written");
    let settings = value.as_object().expect("settings are an object");
    let is_small = |(name, value): (&String, &Value)| match value.as_u64() {
        Some(number) if name == "preallocate" => number <= 16,
        Some(number) => number <= SMALL || default.get(name) == Some(value),
        None => true,
    };
    if !settings.iter().all(is_small) {
        return;
    }
    match builder.build() {
        Ok(mut pool) => {
            assert_eq!(pool.strategy(), builder.name());
            let served: Vec<_> = [0, 1, 100, 5000, 70_000].map(|bytes| pool.acquire(bytes)).into();
            for (buf, bytes) in served.iter().zip([0, 1, 100, 5000, 70_000]) {
                match buf {
                    Ok(buf) => assert!(buf.capacity() >= bytes && buf.is_empty()),
                    Err(error) => assert!(bytes > 0 && !error.to_string().is_empty()),
                }
            }
            drop(pool);
            drop(served);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
