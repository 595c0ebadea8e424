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
//! default. The settings are the methods of the strategy's builder, each under its name, and each
//! at most once.
//! [`AnyBuilder::NAMES`] lists the strategies, [`AnyBuilder::settings`] the settings of one.
//!
//! A number of bytes may have a unit behind it: `K`, `M` and `G`, or `KiB`, `MiB` and `GiB`, in
//! letters of any case. Both are powers of 1024, as memory is counted. `KB` is refused, since it is
//! 1000 bytes for some and 1024 for others. Other numbers have no unit.
//!
//! The sharded pool and the bump-pointer shards have `map_options`, with the feature `mmap`. It is
//! one or more words with `+` between: `advise` or `require` for huge pages, `populate`, and
//! `lock`. `plain` is the default.
//!
//! A builder prints as such a text, with the settings that differ from the defaults, and is equal
//! to what is read from that.
//!
//! # Files
//!
//! With the `serde` feature, from any format, with the strategy's name as `strategy` beside its
//! settings:
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
//! `map_options` is a table of its own in a file: `"map_options": { "huge_pages": "advise" }`.
//!
//! # What is no setting
//!
//! Every setting of every builder is in the text and in files. These are left out, since a text
//! cannot say them, or they are no settings of a pool:
//!
//! | what | why |
//! | --- | --- |
//! | the fallback of `bufslot`'s `Builder::build_with` | A value of the program's. `slot` falls back on the heap, and `bounded-slot` refuses. |
//! | the region of `build_in` and `build_static`, of `bufslot` and `bufring` | Memory of the program's. |
//! | the provider of `build_from`, of `bufbump` and `bufshard` | Likewise. |
//! | `ShardPool::preallocate` | An act on a pool that is there, which may be repeated. `preallocate` of `bump` is a setting. |
//! | how long idle memory is kept | A setting of the [`Keeper`](bufkeeper::Keeper), which watches pools of all strategies. |
//! | the mirrored ring | It has bytes that go through it, and hands out no buffers. |
//!
//! # When it is right
//!
//! A program that knows its strategy when it is compiled is better off with that strategy's own
//! pool. That pool is a little faster, and its buffers are a word or two shorter. It also has what
//! the others do not have: frames that grow in place, typed vectors, waiting for a budget.

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
