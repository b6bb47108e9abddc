//! The loops that filters take, as tests choose them: every one of them over small data.

use mayhap::internals::{Paths, Switches};

/// Nothing but what every machine of this kind can run.
static PORTABLE: Switches = Switches { portable: true, ..USUAL };

/// Large filters, few keys at a time: prefetched, not gathered.
static FAR: Switches = Switches { prefetch_from_bytes: Some(0), ..USUAL };

/// Large filters and many keys: prefetched, gathered by region, built in shards, filled by threads.
static GATHERED: Switches = Switches {
    prefetch_from_bytes: Some(0),
    gather_from_bytes: Some(0),
    region_shift: Some(7),
    gather_bytes: Some(1),
    run_keys: Some(50),
    shard_bits: Some(2),
    sample_words: Some(8),
    portable: false,
};

static GATHERED_PORTABLE: Switches = Switches { portable: true, ..GATHERED };

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

/// All of them, with their names for messages. The first is what a user gets with small data.
pub(crate) const ALL: [(&str, Paths); 5] = [
    ("usual", Paths::of(&USUAL)),
    ("portable", Paths::of(&PORTABLE)),
    ("far", Paths::of(&FAR)),
    ("gathered", Paths::of(&GATHERED)),
    ("gathered, portable", Paths::of(&GATHERED_PORTABLE)),
];
