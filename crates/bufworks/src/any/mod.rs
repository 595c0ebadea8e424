//! A pool whose strategy is chosen at run time: by a name on a command line, or by a configuration file.
//!
//! ```
//! # #[cfg(feature = "ring")] {
//! use bufworks::BufferPool;
//! use bufworks::any::AnyBuilder;
//!
//! let builder: AnyBuilder = "ring:capacity=64KiB,buffers=16".parse()?;
//! let mut pool = builder.build()?;
//! let buf = pool.acquire(1500)?;
//! assert_eq!((pool.strategy(), buf.capacity() >= 1500), ("ring", true));
//!
//! let unknown = "ring:slots=16".parse::<AnyBuilder>().unwrap_err();
//! assert_eq!(unknown.to_string(), "strategy `ring` has no setting `slots`");
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! With the `serde` feature, from any format, with the strategy's name as `strategy` beside its settings:
//!
//! ```
//! # #[cfg(all(feature = "shard", feature = "serde"))] {
//! use bufworks::any::AnyBuilder;
//!
//! let text = r#"{ "strategy": "shard", "thread_cache": 8, "max_bytes": 268435456 }"#;
//! let builder: AnyBuilder = serde_json::from_str(text).unwrap();
//! assert_eq!(builder, AnyBuilder::Shard(bufworks::shard::Builder::new().thread_cache(8).max_bytes(256 << 20)));
//! # }
//! ```
//!
//! A program that knows its strategy when it is compiled is better off with that strategy's own pool: it is a little faster, its buffers
//! are a word or two shorter, and it has what the others have not (frames, typed vectors, splits, waiting for a budget).

mod builder;
mod lease;
mod pool;
mod setting;

pub use builder::{AnyBuilder, HeapBuilder};
pub use lease::AnyLease;
pub use pool::AnyPool;
pub use setting::SettingError;
