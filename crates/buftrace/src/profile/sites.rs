//! Estimates what the call sites of a program requested, from the sampled objects.

use core::hash::Hash;
use std::collections::HashMap;

use super::{Object, Profile};
use crate::Lifetimes;

/// The objects that were requested with the same call stack. Counts and bytes are estimates, unless
/// the recording is exact.
///
/// ```no_run
/// let profile = buftrace::Profile::load("app.heap")?;
/// for site in profile.sites() {
///     let zeroed = 100.0 * site.zeroed / site.count;
///     println!("{:.0} ± {:.0} objects, {zeroed:.0} % zeroed", site.count, site.count_error);
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Site {
    /// The call stack: see [`Profile::stack`].
    pub stack: u32,
    /// The number of sampled objects. Estimates from few objects are poor.
    pub samples: usize,
    /// Estimates the number of requested objects.
    pub count: f64,
    /// The standard error of `count`.
    pub count_error: f64,
    /// Estimates the bytes of all requested objects, each at its largest size.
    pub bytes: f64,
    /// The bytes of the largest sampled object.
    pub largest: u64,
    /// Estimates how many objects were requested zeroed.
    pub zeroed: f64,
    /// Estimates how many objects were reallocated.
    pub grown: f64,
    /// Estimates how many reallocations there were.
    pub resizes: f64,
    /// Estimates how many objects were in use at the end.
    pub out_at_end: f64,
    /// Estimates the bytes of these objects.
    pub out_at_end_bytes: f64,
    /// Estimates the sum of bytes times seconds in use, each object with its size at that time.
    pub byte_seconds: f64,
    /// Estimates how long the released objects were in use.
    pub lifetimes: Lifetimes,
}

impl Profile {
    /// Returns the call sites of the program, those with the most requested bytes first.
    ///
    /// Each call stack is a call site. A reader with symbols may merge the stacks that it shows as
    /// one: see [`sites_by`](Self::sites_by).
    ///
    /// ```no_run
    /// let profile = buftrace::Profile::load("app.heap")?;
    /// let bytes: f64 = profile.sites().iter().map(|site| site.bytes).sum();
    /// println!("about {bytes:.0} bytes were requested");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn sites(&self) -> Vec<Site> {
        self.sites_by(|stack| stack)
    }

    /// Returns the call sites, where call stacks with the same value of `key` are merged. The
    /// number of the first of them is in [`Site::stack`].
    ///
    /// ```no_run
    /// let profile = buftrace::Profile::load("app.heap")?;
    /// // By the innermost function, whatever its callers.
    /// for site in profile.sites_by(|stack| profile.stack(stack).first()) {
    ///     println!("{:.0} bytes", site.bytes);
    /// }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn sites_by<K: Eq + Hash>(&self, mut key: impl FnMut(u32) -> K) -> Vec<Site> {
        let held = self.byte_seconds();
        let mut by_key: HashMap<K, Vec<(&Object, f64)>> = HashMap::new();
        for (object, held) in self.objects().iter().zip(held) {
            by_key.entry(key(object.stack)).or_default().push((object, held));
        }
        let mut sites: Vec<_> = by_key.into_values().map(|objects| site(&objects)).collect();
        sites.sort_by(|a, b| b.bytes.total_cmp(&a.bytes).then(a.stack.cmp(&b.stack)));
        sites
    }

    /// Returns for each object its bytes times the seconds for which it had them.
    fn byte_seconds(&self) -> Vec<f64> {
        let seconds = |from_ns: u64, to_ns: u64| to_ns.saturating_sub(from_ns) as f64 / 1e9;
        let mut sizes: Vec<(u64, u64)> =
            self.objects().iter().map(|object| (object.at_ns, object.bytes)).collect();
        let mut held = vec![0.0; sizes.len()];
        for resize in self.resizes() {
            if let (Some(size), Some(held)) = (sizes.get_mut(resize.object), held.get_mut(resize.object)) {
                *held += size.1 as f64 * seconds(size.0, resize.at_ns);
                *size = (resize.at_ns, resize.bytes);
            }
        }
        for ((held, (since_ns, bytes)), object) in held.iter_mut().zip(sizes).zip(self.objects()) {
            let end_ns = object.released.map_or(self.duration_ns(), |(at_ns, _)| at_ns);
            *held += bytes as f64 * seconds(since_ns, end_ns);
        }
        held
    }
}

/// Returns the estimates for one call site, of its objects and what each held.
fn site(objects: &[(&Object, f64)]) -> Site {
    let byte_seconds = objects.iter().map(|(object, held)| object.weight() * held).sum();
    let objects: Vec<&Object> = objects.iter().map(|(object, _)| *object).collect();
    let sum = |value: &dyn Fn(&Object) -> f64| -> f64 {
        objects.iter().map(|object| object.weight() * value(object)).sum()
    };
    // Objects are drawn independently of each other: the variance of a sum of weights is w (w - 1).
    let error: f64 = objects.iter().map(|object| object.weight() * (object.weight() - 1.0)).sum();
    let share = |value: bool| f64::from(u8::from(value));
    let bytes = |object: &Object| object.largest as f64;
    Site {
        stack: objects.first().map_or(0, |object| object.stack),
        samples: objects.len(),
        count: sum(&|_| 1.0),
        count_error: error.sqrt(),
        bytes: sum(&bytes),
        largest: objects.iter().map(|object| object.largest).max().unwrap_or(0),
        zeroed: sum(&|object| share(object.zeroed)),
        grown: sum(&|object| share(object.resizes > 0 || object.grown_from.is_some())),
        resizes: sum(&|object| f64::from(object.resizes) + share(object.grown_from.is_some())),
        out_at_end: sum(&|object| share(object.released.is_none())),
        out_at_end_bytes: sum(&|object| share(object.released.is_none()) * bytes(object)),
        byte_seconds,
        lifetimes: lifetimes(&objects),
    }
}

/// Returns the quantiles of all objects that the sampled ones stand for.
fn lifetimes(objects: &[&Object]) -> Lifetimes {
    let mut times: Vec<(u64, f64)> =
        objects.iter().filter_map(|object| Some((object.lifetime_ns()?, object.weight()))).collect();
    times.sort_by_key(|(time, _)| *time);
    let all: f64 = times.iter().map(|(_, weight)| weight).sum();
    let quantile = |share: f64| {
        let mut before = 0.0;
        let at = times.iter().find(|(_, weight)| {
            before += weight;
            before >= share * all
        });
        at.or(times.last()).map_or(0, |(time, _)| *time)
    };
    let [p50_ns, p90_ns, p99_ns, p999_ns] = [0.5, 0.9, 0.99, 0.999].map(quantile);
    Lifetimes { p50_ns, p90_ns, p99_ns, p999_ns, max_ns: times.last().map_or(0, |(time, _)| *time) }
}
