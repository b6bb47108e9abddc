//! The loops that filters take, as tests choose them: every one of them over small data.

use mayhap::internals::{Paths, Switches};

const USUAL: Switches = Switches {
    prefetch_from_bytes: None,
    gather_from_bytes: None,
    region_shift: None,
    gather_bytes: None,
    run_keys: None,
    shard_bits: None,
    sample_words: None,
    portable: false,
};

const MANY: Switches = Switches {
    prefetch_from_bytes: Some(0),
    gather_from_bytes: Some(0),
    region_shift: Some(7),
    gather_bytes: Some(1),
    run_keys: Some(50),
    shard_bits: Some(2),
    sample_words: Some(8),
    portable: false,
};

/// Nothing but what every machine of this kind can run.
pub(crate) const PORTABLE: Paths = Paths::of(&Switches { portable: true, ..USUAL });

/// Large filters, few keys at a time: prefetched, not gathered.
pub(crate) const FAR: Paths = Paths::of(&Switches { prefetch_from_bytes: Some(0), ..USUAL });

/// Large filters and many keys: prefetched, gathered by region, built in shards, filled by threads.
pub(crate) const GATHERED: Paths = Paths::of(&MANY);

/// The same on any machine.
pub(crate) const GATHERED_PORTABLE: Paths = Paths::of(&Switches { portable: true, ..MANY });

/// All of them, with their names for messages. The first is what a user gets with small data.
#[cfg(target_arch = "x86_64")]
pub(crate) const ALL: &[(&str, Paths)] = &[
    ("usual", Paths::of(&USUAL)),
    ("portable", PORTABLE),
    ("far", FAR),
    ("gathered", GATHERED),
    ("gathered, portable", GATHERED_PORTABLE),
];

/// Other machines are emulated, where everything takes twenty times as long: the two that have all of the loops between them.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) const ALL: &[(&str, Paths)] = &[("gathered", GATHERED), ("portable", PORTABLE)];
