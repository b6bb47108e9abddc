//! Which loops a filter takes: by its size, by the processor, by the number of keys and threads.
//!
//! A large filter prefetches, gathers keys by region, or is built in shards by several threads; a small one does not, and
//! the data of tests is small. So every such decision asks the [`Paths`] that the filter carries. Without the feature
//! `internals` they have no size, and every answer is a constant of the family; with it, tests put [`Switches`] into them
//! and run every loop over small data.

use crate::math;

/// Decisions that a test makes instead of the family. `None` leaves one as it is.
#[cfg(feature = "internals")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// Storage of this many bytes and more is prefetched.
    pub prefetch_from_bytes: Option<usize>,
    /// Storage of this many bytes and more is filled region by region, if enough keys come at once.
    pub gather_from_bytes: Option<usize>,
    /// A region has 2 to this bits or slots.
    pub region_shift: Option<u32>,
    /// Memory in which positions wait for their region, in bytes.
    pub gather_bytes: Option<usize>,
    /// Keys that a thread takes at a time.
    pub run_keys: Option<usize>,
    /// A static filter has 2 to this shards.
    pub shard_bits: Option<u32>,
    /// Words that are looked at before a filter is folded on trial.
    pub sample_words: Option<usize>,
    /// No instructions but those that every machine of this kind has.
    pub portable: bool,
}

/// The decisions of one filter.
#[cfg_attr(not(feature = "internals"), allow(unreachable_pub))] // Nothing exports it then.
#[derive(Clone, Copy, Debug, Default)]
pub struct Paths {
    #[cfg(feature = "internals")]
    switches: Option<&'static Switches>,
}

/// They change no answer and no byte: filters that differ in nothing else are equal.
impl PartialEq for Paths {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Paths {}

/// The value of a test, or the usual one.
macro_rules! switch {
    ($paths:ident, $field:ident, $usual:expr) => {{
        #[cfg(feature = "internals")]
        if let Some(Switches { $field: Some(own), .. }) = $paths.switches {
            return *own;
        }
        $usual
    }};
}

impl Paths {
    /// Those of a test.
    #[cfg(feature = "internals")]
    #[must_use]
    pub const fn of(switches: &'static Switches) -> Self {
        Self { switches: Some(switches) }
    }

    #[inline(always)]
    fn prefetch_from_bytes(self, usual: usize) -> usize {
        switch!(self, prefetch_from_bytes, usual)
    }

    /// Whether storage of `bytes` bytes is prefetched, if usually that begins with `usual` bytes.
    #[inline(always)]
    pub(crate) fn is_far(self, bytes: usize, usual: usize) -> bool {
        let is_far = bytes >= self.prefetch_from_bytes(usual);
        #[cfg(all(feature = "internals", feature = "std"))]
        note(|taken| taken.far += u64::from(is_far));
        is_far
    }

    /// From how many bytes on storage is filled region by region.
    #[inline(always)]
    pub(crate) fn gather_from_bytes(self, usual: usize) -> usize {
        switch!(self, gather_from_bytes, usual)
    }

    /// The binary logarithm of the size of a region.
    #[inline(always)]
    pub(crate) fn region_shift(self, usual: u32) -> u32 {
        switch!(self, region_shift, usual)
    }

    /// The memory in which positions wait for their region, in bytes.
    #[inline(always)]
    pub(crate) fn gather_bytes(self, usual: usize) -> usize {
        #[cfg(all(feature = "internals", feature = "std"))]
        note(|taken| taken.gathered += 1);
        switch!(self, gather_bytes, usual)
    }

    /// How many keys a thread takes at a time.
    #[cfg(feature = "std")]
    #[inline(always)]
    pub(crate) fn run_keys(self, usual: usize) -> usize {
        switch!(self, run_keys, usual)
    }

    /// How many bits tell the shard of a key in a static filter of `keys` keys.
    #[inline(always)]
    pub(crate) fn shard_bits(self, keys: u64) -> u32 {
        switch!(self, shard_bits, math::shard_bits(keys))
    }

    /// How many words are looked at before a filter is folded on trial.
    #[inline(always)]
    pub(crate) fn sample_words(self, usual: usize) -> usize {
        switch!(self, sample_words, usual)
    }

    /// Whether a kernel is taken whose instructions not every machine has: this one has them, and no test rules them out.
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), allow(dead_code))]
    #[inline(always)]
    pub(crate) fn takes(self, is_available: impl FnOnce() -> bool) -> bool {
        #[cfg(feature = "internals")]
        let is_available = || !self.switches.is_some_and(|switches| switches.portable) && is_available();
        let takes = is_available();
        #[cfg(all(feature = "internals", feature = "std"))]
        note(|taken| if takes { taken.kernels += 1 } else { taken.portable += 1 });
        takes
    }
}

/// How often this thread took which loops.
#[cfg(all(feature = "internals", feature = "std"))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Kernels with instructions that were detected.
    pub kernels: u64,
    /// Portable loops, where there is a kernel for other machines or another test.
    pub portable: u64,
    /// Loops that prefetch.
    pub far: u64,
    /// Loops that gather keys by region.
    pub gathered: u64,
}

#[cfg(all(feature = "internals", feature = "std"))]
std::thread_local! {
    static TAKEN: core::cell::Cell<Taken> = const {
        core::cell::Cell::new(Taken { kernels: 0, portable: 0, far: 0, gathered: 0 })
    };
}

#[cfg(all(feature = "internals", feature = "std"))]
fn note(change: impl FnOnce(&mut Taken)) {
    let mut taken = TAKEN.get();
    change(&mut taken);
    TAKEN.set(taken);
}

/// What this thread took since the last call.
#[cfg(all(feature = "internals", feature = "std"))]
#[must_use]
pub fn taken() -> Taken {
    TAKEN.take()
}
