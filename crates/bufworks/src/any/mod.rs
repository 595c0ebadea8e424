//! A pool whose strategy is chosen at run time: by a name on a command line, or by a configuration
//! file.
//!
//! ```
//! # #[cfg(feature = "ring")] {
//! use bufworks::any::AnyBuilder;
//!
//! let builder: AnyBuilder = "ring:capacity=64KiB,buffers=16".parse()?;
//! let mut pool = builder.build()?;
//! let buf = pool.acquire(1500)?;
//! assert_eq!((pool.strategy(), buf.capacity() >= 1500), ("ring", true));
//!
//! let wrong = "ring:capacity=64KB".parse::<AnyBuilder>().unwrap_err();
//! assert_eq!(
//!     wrong.to_string(),
//!     "invalid value `64KB` for setting `capacity`: expected a number of bytes, such as 65536, 64K or 64KiB \
//!      (K, M and G are powers of 1024)",
//! );
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The text
//!
//! `name`, or `name:setting=value,setting=value`. The name alone is enough: every setting has a
//! default. The settings are named like the methods of the strategy's builder, each at most once.
//! [`AnyBuilder::NAMES`] lists the strategies, [`AnyBuilder::settings`] the settings of one.
//!
//! A number of bytes may be followed by a unit: `K`, `M` and `G`, or `KiB`, `MiB` and `GiB`, in
//! upper or lower case. All are powers of 1024. `KB` is an error, since it means 1000 or 1024
//! bytes. Other numbers have no unit.
//!
//! The sharded pool and the bump-pointer shards have `map_options`, with the feature `mmap`. It is
//! one or more words, joined by `+`: `advise` or `require` for huge pages, `populate`, and `lock`.
//! `plain` is the default.
//!
//! A builder prints in this form, with the settings that differ from the defaults. Parsing the text
//! gives an equal builder.
//!
//! # Files
//!
//! With the `serde` feature, in any format, with the strategy's name as the field `strategy`:
//!
//! ```
//! # #[cfg(all(feature = "shard", feature = "serde"))] {
//! use bufworks::any::AnyBuilder;
//!
//! let text = r#"{ "strategy": "shard", "thread_cache": 8, "max_bytes": 268435456 }"#;
//! let builder: AnyBuilder = serde_json::from_str(text).unwrap();
//! let expected = bufworks::shard::Builder::new().thread_cache(8).max_bytes(256 << 20);
//! assert_eq!(builder, AnyBuilder::Shard(expected));
//! # }
//! ```
//!
//! In a file `map_options` is a table: `"map_options": { "huge_pages": "advise" }`.
//!
//! # What is no setting
//!
//! Every setting of every builder is supported in texts and files. These are not supported, because
//! a text cannot express them, or because they are not settings of a pool:
//!
//! | what | why |
//! | --- | --- |
//! | the fallback of `bufslot`'s `Builder::build_with` | A value of the program. `slot` falls back on the heap, and `bounded-slot` has no fallback. |
//! | the region of `build_in` and `build_static`, of `bufslot` and `bufring` | Memory of the program's. |
//! | the provider of `build_from`, of `bufbump` and `bufshard` | Likewise. |
//! | `ShardPool::preallocate` | A call on an existing pool, which may be repeated. `preallocate` of `bump` is a setting. |
//! | how long idle memory is kept | A setting of the [`Keeper`](bufkeeper::Keeper), which watches pools of all strategies. |
//! | the mirrored ring | It transports bytes, and serves no buffers. |
//!
//! # When it is right
//!
//! If the strategy is known at compile time, use the strategy's own pool. That pool is slightly
//! faster, and its buffers are one or two words smaller. It also has methods that others lack:
//! frames that grow in place, typed vectors, waiting for a budget.

// First: the others use its macros.
#[macro_use]
mod variants;

mod builder;
mod heap;
mod lease;
mod pool;
mod setting;

pub use heap::HeapBuilder;
pub use lease::{AnyBuf, AnyLease, AnyView};
pub use pool::AnyPool;
pub use setting::SettingError;
pub use variants::AnyBuilder;
