//! The shape of a block: what lies around the bytes of its buffer, and how much that is.

use bufcore::size;
use bufkit::DedicatedPages;

use super::{HEADER_BYTES, KEPT_BYTES, SINGLE_BYTES};
use crate::class::NO_CLASS;

/// Of every block.
pub(crate) const LEAST_ALIGNMENT: usize = 16;
/// From this size on, buffers start at a cache line. At a multiple of 16, one of 256 bytes mostly
/// takes five lines instead of four, and each is fetched by a thread that gets it from another. For
/// smaller ones the bytes in front would be too many.
pub(crate) const LINES_FROM_BYTES: usize = 256;
/// The largest alignment of buffers.
pub(crate) const MOST_ALIGNMENT: usize = 1 << 30;

/// What allocators align all memory to, so that asking for it costs nothing: no byte, and no
/// zeroing by hand. The standard library's `System` takes it for that, processor by processor.
pub(super) const ALLOCATOR_ALIGNMENT: usize =
    if cfg!(all(target_pointer_width = "64", not(target_arch = "powerpc64"))) { 16 } else { 8 };

/// The least that a mapping starts at a multiple of.
const PAGE_BYTES: usize = DedicatedPages::ALIGNMENT;
/// From this alignment on, the header is in an allocation of its own. In front of the bytes it
/// would take as much as the alignment.
const APART_FROM_ALIGNMENT: usize = PAGE_BYTES;
/// Below this size and alignment, the allocator itself aligns what has its header apart: it may
/// know how to do so for nothing, and zeroes so few bytes quickly. More is aligned here: it comes
/// from the system in zeroed pages, and those in front of the start are never touched.
const ALIGNED_HERE_FROM_BYTES: usize = 64 << 10;

/// From this size on, blocks of a class that are allocated one after the other lie the same whole
/// number of lines apart: processors fetch ahead at a step that does not change. Below, it would
/// take too many bytes.
const EVEN_FROM_BYTES: usize = 4 << 10;
/// What common allocators have in front of each allocation.
const ALLOCATOR_BYTES: usize = size_of::<usize>();

/// From this size on, the allocator gives each block pages of its own, which all start alike, and
/// blocks are coloured.
const COLOURED_FROM_BYTES: usize = 64 << 10;
/// Cache lines of the 4 KiB over which the starts are spread.
const COLOURS: usize = 64;

/// Sizes from which on `Layout::total` of blocks outside of the classes is the bytes and some more
/// that are the same up to the next of them. The largest first.
const STEPS: [usize; 3] = [ALIGNED_HERE_FROM_BYTES, LINES_FROM_BYTES, 1];

/// What decides how a block lies in memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    /// The size class, or `NO_CLASS`.
    pub(super) class: u8,
    /// Of the buffer: those of the class, or of the request.
    pub(super) bytes: usize,
    /// What the bytes start at a multiple of; at least `LEAST_ALIGNMENT`.
    pub(super) alignment: usize,
    /// How much further the bytes start, for their colour.
    pub(super) spread: usize,
    /// The pages that the block has to itself, if it has some.
    pub(super) pages: Option<DedicatedPages>,
}

/// From which size on blocks of a pool have pages of their own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mapped {
    from: usize,
    pages: DedicatedPages,
}

impl Mapped {
    /// Makes the rule for blocks of `from` bytes and more, rounded up to whole pages. Rounding
    /// keeps a request from taking less than a smaller one. Returns `None` where pages do not have
    /// `asked`, the alignment of all buffers.
    pub(crate) fn new(from: usize, asked: usize, pages: DedicatedPages) -> Option<Self> {
        if asked > PAGE_BYTES {
            return None;
        }
        // What has its header apart and is aligned here may take more than a mapping.
        let from = if is_apart(asked) { from.min(ALIGNED_HERE_FROM_BYTES) } else { from };
        Some(Self { from: size::align_up(from.max(1), PAGE_BYTES)?, pages })
    }
}

impl Layout {
    /// Returns the shape of a block whose bytes start at a multiple of `alignment`. The block is of
    /// a class, or for one buffer of `bytes` bytes if `class` is `NO_CLASS`. It has the first
    /// colour, which takes the least.
    pub(crate) fn of(class: u8, bytes: usize, alignment: usize, mapped: Option<Mapped>) -> Self {
        let pages = mapped.filter(|mapped| bytes >= mapped.from).map(|mapped| mapped.pages);
        Self { class, bytes, alignment, spread: 0, pages }
    }

    /// Returns the same shape with bytes that start `colour` lines further, if they are many.
    pub(crate) fn coloured(self, colour: usize) -> Self {
        let lines = if is_coloured(self.bytes, self.alignment) { colour % COLOURS } else { 0 };
        Self { spread: lines * size::CACHE_LINE_BYTES, ..self }
    }

    /// Returns the shape of a block that was made with another colour, where `lead` is what its
    /// header says.
    pub(super) fn again(self, lead: usize) -> Self {
        self.coloured(lead / size::CACHE_LINE_BYTES)
    }

    /// Returns the distance from the start of a mapping, which the header is in, to the bytes.
    pub(super) fn mapped_lead(&self) -> usize {
        KEPT_BYTES.next_multiple_of(self.alignment) + self.spread
    }

    /// Returns the bytes that are allocated to align the block's own pages, and lie outside of
    /// them.
    pub(super) fn aligning_bytes(&self) -> usize {
        self.pages.map_or(0, DedicatedPages::aligning_bytes)
    }

    /// Returns the bytes of all that is allocated for the block.
    pub(crate) fn total(&self) -> usize {
        if let Some(pages) = self.pages {
            // A size that does not exist is refused when it is taken.
            let rounded = |len| pages.rounded(len).unwrap_or(len);
            let whole = if is_apart(self.alignment) {
                KEPT_BYTES + rounded(self.bytes)
            } else {
                rounded(self.mapped_lead() + self.bytes)
            };
            return whole + pages.aligning_bytes();
        }
        if is_apart(self.alignment) {
            let aligning = if self.is_aligned_here() { self.alignment - 1 } else { 0 };
            return KEPT_BYTES + self.bytes + aligning;
        }
        let all = self.front() + self.bytes + (self.alignment - ALLOCATOR_ALIGNMENT) + self.spread;
        if !self.is_even() {
            return all;
        }
        (all + ALLOCATOR_BYTES).next_multiple_of(size::CACHE_LINE_BYTES) - ALLOCATOR_BYTES
    }

    /// Returns whether the block takes whole lines, with what the allocator has in front.
    fn is_even(&self) -> bool {
        let is_amid_others = (EVEN_FROM_BYTES..COLOURED_FROM_BYTES).contains(&self.bytes);
        is_amid_others && self.class != NO_CLASS && self.alignment <= size::CACHE_LINE_BYTES
    }

    /// Returns the bytes of the header in front of the bytes, with what belongs to it.
    pub(super) fn front(&self) -> usize {
        if self.class == NO_CLASS { SINGLE_BYTES } else { HEADER_BYTES }
    }

    /// Returns whether a block with its header apart takes more bytes than its buffer has.
    pub(super) fn is_aligned_here(&self) -> bool {
        self.bytes.max(self.alignment) >= ALIGNED_HERE_FROM_BYTES
    }
}

/// Returns whether blocks of this alignment have their headers apart.
pub(crate) fn is_apart(alignment: usize) -> bool {
    alignment >= APART_FROM_ALIGNMENT
}

/// Returns the most bytes of a block outside of the classes whose `total` is at most `limit`; 0
/// when there are none. `alignment_of` maps a number of bytes to the alignment of their start. It
/// does not fall as the number grows, and it rises only at one of `STEPS`.
pub(crate) fn most_single(
    limit: usize,
    mapped: Option<Mapped>,
    alignment_of: impl Fn(usize) -> usize,
) -> usize {
    let layout = |from| Layout::of(NO_CLASS, from, alignment_of(from), mapped);
    let mut end = size::MAX_BYTES;
    if let Some(mapped) = mapped {
        // All pages, less what is around the bytes.
        let apart = if is_apart(alignment_of(mapped.from)) { KEPT_BYTES } else { 0 };
        let around = if apart > 0 { 0 } else { layout(mapped.from).mapped_lead() };
        let room = limit.saturating_sub(apart + mapped.pages.aligning_bytes());
        let pages = room - room % mapped.pages.page_bytes();
        let most = pages.saturating_sub(around).min(end);
        if most >= mapped.from {
            return most;
        }
        end = mapped.from - 1;
    }
    for from in STEPS {
        if from > end {
            continue;
        }
        let around = layout(from).total() - from;
        let most = limit.saturating_sub(around).min(end);
        if most >= from {
            return most;
        }
        end = from - 1;
    }
    0
}

/// Returns whether blocks are spread over lines.
///
/// Blocks whose starts lie a multiple of 4 KiB apart share the same sets of the first-level cache
/// and evict each other; see `bufkit::staggered`. It never costs alignment: a larger one
/// than a line stays as it is.
fn is_coloured(bytes: usize, alignment: usize) -> bool {
    bytes >= COLOURED_FROM_BYTES && alignment <= size::CACHE_LINE_BYTES
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    #[cfg(feature = "mmap")]
    use bufcore::MapOptions;

    use super::*;
    use crate::class::{self, MAX_CLASSES};

    fn of_class(bytes: usize, alignment: usize) -> Layout {
        Layout::of(class::class_of(bytes) as u8, bytes, alignment, None)
    }

    fn of_single(bytes: usize, alignment: usize) -> Layout {
        Layout::of(NO_CLASS, bytes, alignment, None)
    }

    #[test]
    fn totals_are_what_is_needed_and_no_more() {
        let header = 16;
        let spare = 16 - ALLOCATOR_ALIGNMENT;
        for (layout, total) in [
            (of_class(64, 16).coloured(5), header + 64 + spare),
            (of_single(64, 16), 2 * header + 64 + spare),
            (of_class(1024, 64).coloured(5), header + 1024 + 48 + spare),
            (of_class(4096, 64).coloured(5), 4096 + 128 - size_of::<usize>()),
            (of_single(4096, 64), 2 * header + 4096 + 48 + spare),
            (of_class(64 << 10, 64), header + (64 << 10) + 48 + spare),
            (of_class(64 << 10, 64).coloured(5), header + (64 << 10) + 48 + spare + 5 * 64),
            (of_class(64 << 10, 64).coloured(69), header + (64 << 10) + 48 + spare + 5 * 64),
            (of_class(4096, 2048), header + 4096 + 2032 + spare),
            (of_class(4096, 4096).coloured(5), KEPT_BYTES + 4096),
            (of_class(1 << 20, 4096).coloured(5), KEPT_BYTES + (1 << 20) + 4095),
            (of_single(100, 1 << 20), KEPT_BYTES + 100 + (1 << 20) - 1),
        ] {
            assert_eq!(layout.total(), total, "{layout:?}");
        }
        const { assert!(KEPT_BYTES <= 64) };
    }

    /// Checks that a page in front has the header and every colour.
    #[cfg(feature = "mmap")]
    #[test]
    fn mappings_are_whole_pages() {
        let mapped = |asked| Mapped::new(60_000, asked, DedicatedPages::mapped(MapOptions::new()));
        for class in class::class_of(64 << 10)..MAX_CLASSES {
            let bytes = class::bytes_of(class);
            for colour in 0..COLOURS {
                let layout = Layout::of(class as u8, bytes, 64, mapped(1)).coloured(colour);
                assert_eq!(layout.total(), bytes + 4096, "{layout:?}");
            }
            let apart = Layout::of(class as u8, bytes, 4096, mapped(4096));
            assert_eq!(apart.coloured(7).total(), KEPT_BYTES + bytes, "{apart:?}");
        }
        assert!(Layout::of(0, 61_439, 64, mapped(1)).pages.is_none(), "up to whole pages");
        assert!(Layout::of(0, 61_440, 64, mapped(1)).pages.is_some());
        assert!(mapped(8192).is_none(), "pages do not start there");
    }

    #[test]
    fn the_colour_is_found_again() {
        for bytes in (0..MAX_CLASSES).map(class::bytes_of) {
            for alignment in [16, 32, 64, 128, 2048] {
                for colour in 0..COLOURS {
                    let first = of_class(bytes, alignment);
                    let layout = first.coloured(colour);
                    let most = alignment - ALLOCATOR_ALIGNMENT;
                    for aligning in [0, most / 2, most] {
                        let lead = aligning + layout.spread;
                        assert_eq!(first.again(lead).total(), layout.total(), "{layout:?}, {lead}");
                    }
                }
            }
        }
    }

    /// Checks every limit near one where something changes.
    #[test]
    fn the_most_is_exact() {
        let ways = |_asked| {
            [
                None,
                #[cfg(feature = "mmap")]
                Mapped::new(1, _asked, DedicatedPages::mapped(MapOptions::new())),
                #[cfg(feature = "mmap")]
                Mapped::new(70_000, _asked, DedicatedPages::mapped(MapOptions::new())),
            ]
        };
        for asked in [16, 64, 256, 2048, 4096, 1 << 20] {
            let alignment_of = |bytes: usize| asked.max(if bytes < LINES_FROM_BYTES { 16 } else { 64 });
            for mapped in ways(asked) {
                let total = |bytes| Layout::of(NO_CLASS, bytes, alignment_of(bytes), mapped).total();
                for near in [1, LINES_FROM_BYTES, 4096, ALIGNED_HERE_FROM_BYTES, 73_728, 1 << 20] {
                    assert!(total(near - 1) <= total(near), "{near} bytes, aligned to {asked}, {mapped:?}");
                    for limit in total(near).saturating_sub(9000)..total(near) + 200 {
                        let most = most_single(limit, mapped, alignment_of);
                        assert!(most == 0 || total(most) <= limit, "{most} of {limit}, {asked}, {mapped:?}");
                        assert!(total(most + 1) > limit, "{most} of {limit}, {asked}, {mapped:?}");
                    }
                }
            }
        }
    }
}
