//! The contenders, as data: one table of names and closures. A new peer is one entry in [`table`].
//!
//! Each entry knows how to get from nothing to a full filter, how to ask a slice of keys, and how large
//! the filter is. The closures are generic all the way into the loop over the keys and boxed only around
//! it, so that no dynamic call is timed per key.

use std::hash::{BuildHasher, DefaultHasher, Hasher};

use foldhash::fast::{FixedState, FoldHasher};
use mayhap::bits::words_for;
use mayhap::{Bloom, Removal, Spec, Words};
use mem_dbg::{MemSize, SizeFlags};
use sux::bits::BitFieldVec;
use sux::dict::VFilter;
use sux::func::VBuilder;
use sux::utils::FromSlice;
// One trait of xorf and one of jdb_xorf bring methods of these names.
use xorf::Filter as _;

use crate::keys::{BenchKey, Kind, foldhash};
use crate::limits;

/// What every contender is asked to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Task {
    pub(crate) kind: Kind,
    pub(crate) keys: u64,
    pub(crate) fpr: f64,
}

/// Whose it is, and what it is compared with at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Of this project; its floor is the best limit with this text in its name.
    Ours {
        floor: &'static str,
    },
    Peer,
    /// Inserts nothing: its answers only keep the loop alive.
    Limit,
}

/// The peers that the bars are written against.
pub(crate) const AGAINST: [&str; 2] = [SBBF, FASTBLOOM];

/// The same for filters that remove.
pub(crate) const AGAINST_REMOVING: [&str; 2] = [QFILTER, CUCKOOFILTER];

/// The same for filters that grow.
pub(crate) const AGAINST_GROWING: [&str; 1] = [QFILTER_GROWN];

const SBBF: &str = "sbbf foldhash";
const FASTBLOOM: &str = "fastbloom foldhash";
pub(crate) const QFILTER: &str = "qfilter foldhash";
pub(crate) const QFILTER_GROWN: &str = "qfilter grown foldhash";
pub(crate) const EXPANDING: &str = "mayhap expanding";
pub(crate) const CUCKOOFILTER: &str = "cuckoofilter foldhash";
/// Of ours, and what each must not be slower than.
pub(crate) const OURS_AGAINST: [(&str, &str); 2] = [(DLEFT, COUNTING), (DLEFT_BATCH, COUNTING_BATCH)];

const COUNTING: &str = "mayhap counting";
const COUNTING_BATCH: &str = "mayhap counting batch";
const DLEFT: &str = "mayhap dleft";
const DLEFT_BATCH: &str = "mayhap dleft batch";
pub(crate) const LINES: &str = "limit lines";
pub(crate) const PROBES: &str = "limit probes";
pub(crate) const TOUCHES: &str = "limit touches";
pub(crate) const XORF: &str = "xorf BinaryFuse8";
pub(crate) const JDB_XORF: &str = "jdb_xorf Bf8";
pub(crate) const JDB_XORF_BATCH: &str = "jdb_xorf Bf8 batch";

/// One row of the tables.
pub(crate) struct Contender<'k, K> {
    pub(crate) name: &'static str,
    pub(crate) role: Role,
    pub(crate) fill: Fill<'k, K>,
}

/// From nothing to a filter that holds the keys.
type Fill<'k, K> = Box<dyn Fn(&[K]) -> Box<dyn Filled<K> + 'k> + 'k>;

/// A filter that holds keys, its type forgotten.
pub(crate) trait Filled<K> {
    /// How many of these keys it admits; of a limit, any number.
    fn ask(&self, keys: &[K]) -> u64;

    /// Its bytes, as it says itself.
    fn bytes(&self) -> Option<u64>;

    /// Removes these keys, each once, and says of how many it had one; `None` if it cannot remove.
    fn remove(&mut self, keys: &[K]) -> Option<u64>;
}

struct Held<F, A, B, R> {
    filter: F,
    ask: A,
    bytes: B,
    remove: R,
}

impl<K, F, A, B, R> Filled<K> for Held<F, A, B, R>
where
    A: Fn(&F, &[K]) -> u64,
    B: Fn(&F) -> Option<u64>,
    R: Fn(&mut F, &[K]) -> Option<u64>,
{
    fn ask(&self, keys: &[K]) -> u64 {
        (self.ask)(&self.filter, keys)
    }

    fn bytes(&self) -> Option<u64> {
        (self.bytes)(&self.filter)
    }

    fn remove(&mut self, keys: &[K]) -> Option<u64> {
        (self.remove)(&mut self.filter, keys)
    }
}

/// A contender that takes and asks whole slices.
fn slices<'k, K: BenchKey + 'k, F: 'k>(
    name: &'static str,
    role: Role,
    fill: impl Fn(&[K]) -> F + 'k,
    ask: impl Fn(&F, &[K]) -> u64 + Copy + 'k,
    bytes: impl Fn(&F) -> Option<u64> + Copy + 'k,
) -> Contender<'k, K> {
    removing_slices(name, role, fill, ask, bytes, |_, _| None)
}

/// The same for one that also removes.
fn removing_slices<'k, K: BenchKey + 'k, F: 'k>(
    name: &'static str,
    role: Role,
    fill: impl Fn(&[K]) -> F + 'k,
    ask: impl Fn(&F, &[K]) -> u64 + Copy + 'k,
    bytes: impl Fn(&F) -> Option<u64> + Copy + 'k,
    remove: impl Fn(&mut F, &[K]) -> Option<u64> + Copy + 'k,
) -> Contender<'k, K> {
    let fill: Fill<'k, K> = Box::new(move |keys| Box::new(Held { filter: fill(keys), ask, bytes, remove }));
    Contender { name, role, fill }
}

/// A contender that takes, is asked and removes keys one by one.
fn removing_singles<'k, K: BenchKey + 'k, F: 'k>(
    name: &'static str,
    make: impl Fn() -> F + 'k,
    insert: impl Fn(&mut F, K) + 'k,
    contains: impl Fn(&F, K) -> bool + Copy + 'k,
    bytes: impl Fn(&F) -> Option<u64> + Copy + 'k,
    remove: impl Fn(&mut F, K) -> bool + Copy + 'k,
) -> Contender<'k, K> {
    let fill = move |keys: &[K]| {
        let mut filter = make();
        keys.iter().for_each(|&key| insert(&mut filter, key));
        filter
    };
    let ask = move |filter: &F, keys: &[K]| keys.iter().filter(|&&key| contains(filter, key)).count() as u64;
    let remove = move |filter: &mut F, keys: &[K]| {
        Some(keys.iter().filter(|&&key| remove(filter, key)).count() as u64)
    };
    removing_slices(name, Role::Peer, fill, ask, bytes, remove)
}

/// A peer that is built from all keys at once and asked one by one.
fn built<'k, K: BenchKey + 'k, F: 'k>(
    name: &'static str,
    build: impl Fn(&[K]) -> F + 'k,
    contains: impl Fn(&F, K) -> bool + Copy + 'k,
    bytes: impl Fn(&F) -> Option<u64> + Copy + 'k,
) -> Contender<'k, K> {
    let ask = move |filter: &F, keys: &[K]| keys.iter().filter(|&&key| contains(filter, key)).count() as u64;
    slices(name, Role::Peer, build, ask, bytes)
}

/// A contender that takes and is asked keys one by one: what most users write.
fn singles<'k, K: BenchKey + 'k, F: 'k>(
    name: &'static str,
    make: impl Fn() -> F + 'k,
    insert: impl Fn(&mut F, K) + 'k,
    contains: impl Fn(&F, K) -> bool + Copy + 'k,
    bytes: impl Fn(&F) -> Option<u64> + Copy + 'k,
) -> Contender<'k, K> {
    let fill = move |keys: &[K]| {
        let mut filter = make();
        keys.iter().for_each(|&key| insert(&mut filter, key));
        filter
    };
    built(name, fill, contains, bytes)
}

impl<K> Contender<'_, K> {
    fn ours(mut self, floor: &'static str) -> Self {
        self.role = Role::Ours { floor };
        self
    }
}

/// Keys per call of a batch method: as many as the command line hands over at once.
const BATCH: usize = 1024;

/// The sum over batches, for methods that answer into a vector.
fn count_batches<K>(keys: &[K], mut ask: impl FnMut(&[K], &mut Vec<bool>)) -> u64 {
    let mut hits = Vec::with_capacity(BATCH);
    let mut count = 0;
    for batch in keys.chunks(BATCH) {
        hits.clear();
        ask(batch, &mut hits);
        count += hits.iter().filter(|&&hit| hit).count() as u64;
    }
    count
}

/// The same for removals.
fn count_removed<K>(keys: &[K], mut remove: impl FnMut(&[K], &mut Vec<Removal>)) -> u64 {
    let mut outcomes = Vec::with_capacity(BATCH);
    let mut count = 0;
    for batch in keys.chunks(BATCH) {
        outcomes.clear();
        remove(batch, &mut outcomes);
        count += outcomes.iter().filter(|outcome| outcome.is_removed()).count() as u64;
    }
    count
}

/// Everybody, for one task.
pub(crate) fn table<'k, K: BenchKey + 'k>(task: Task) -> Vec<Contender<'k, K>> {
    let mut table = ours(task);
    table.extend(blocked(task));
    table.extend(cuckoo(task));
    table.extend(counting(task));
    table.extend(dleft(task));
    table.extend(spectral(task));
    table.extend(expanding(task, [EXPANDING, "mayhap expanding batch"], GROWN_FROM));
    table.extend(known(task));
    table.extend(bloom_peers(task));
    table.extend(slot_peers(task));
    table.extend(static_peers(task));
    table.extend(physical(task));
    table
}

fn ours<'k, K: BenchKey + 'k>(Task { keys, fpr, .. }: Task) -> Vec<Contender<'k, K>> {
    let make = move || Bloom::new(keys, fpr).expect("memory");
    let bytes = |bloom: &Bloom| Some(bloom.words().len() as u64 * 8);
    vec![
        singles(
            "mayhap bloom",
            make,
            |bloom, key| {
                bloom.insert(key);
            },
            |bloom, key| bloom.contains(key),
            bytes,
        )
        .ours(PROBES),
        slices(
            "mayhap bloom batch",
            Role::Ours { floor: PROBES },
            move |keys| {
                let mut bloom = make();
                bloom.insert_all(keys);
                bloom
            },
            |bloom: &Bloom, keys| count_batches(keys, |batch, hits| bloom.contains_each(batch, hits)),
            bytes,
        ),
    ]
}

/// The family `blocked` in both layouts, one key at a time and by its batch methods.
fn blocked<'k, K: BenchKey + 'k>(Task { keys, fpr, .. }: Task) -> Vec<Contender<'k, K>> {
    use mayhap::{Blocked, Layout};

    let layouts = [
        ("mayhap blocked compact", "mayhap blocked compact batch", Layout::Compact),
        ("mayhap blocked fastest", "mayhap blocked fastest batch", Layout::Fastest),
    ];
    let bytes = |blocked: &Blocked| Some(blocked.bits() / 8);
    layouts
        .into_iter()
        .flat_map(|(single, batch, layout)| {
            let make =
                move || Blocked::from_spec(&Spec::sized(keys, fpr).with_layout(layout)).expect("memory");
            [
                singles(
                    single,
                    make,
                    |blocked, key| {
                        blocked.insert(key);
                    },
                    |blocked, key| blocked.contains(key),
                    bytes,
                )
                .ours(LINES),
                slices(
                    batch,
                    Role::Ours { floor: LINES },
                    move |keys| {
                        let mut blocked = make();
                        blocked.insert_all(keys);
                        blocked
                    },
                    |blocked: &Blocked, keys| {
                        count_batches(keys, |batch, hits| blocked.contains_each(batch, hits))
                    },
                    bytes,
                ),
            ]
        })
        .collect()
}

/// The family `cuckoo` in both layouts, one key at a time and by its batch methods.
fn cuckoo<'k, K: BenchKey + 'k>(Task { keys, fpr, .. }: Task) -> Vec<Contender<'k, K>> {
    use mayhap::{Cuckoo, Layout};

    let layouts = [
        ("mayhap cuckoo", "mayhap cuckoo batch", Layout::Fastest),
        ("mayhap cuckoo compact", "mayhap cuckoo compact batch", Layout::Compact),
    ];
    let bytes = |cuckoo: &Cuckoo| Some(cuckoo.size_in_bytes());
    layouts
        .into_iter()
        .flat_map(|(single, batch, layout)| {
            let make =
                move || Cuckoo::from_spec(&Spec::sized(keys, fpr).with_layout(layout)).expect("memory");
            [
                removing_singles(
                    single,
                    make,
                    |cuckoo, key| {
                        cuckoo.insert(key).expect("made for so many");
                    },
                    |cuckoo, key| cuckoo.contains(key),
                    bytes,
                    |cuckoo, key| cuckoo.remove(key).is_removed(),
                )
                .ours(LINES),
                removing_slices(
                    batch,
                    Role::Ours { floor: LINES },
                    move |keys| {
                        let mut cuckoo = make();
                        cuckoo.insert_all(keys).expect("made for so many");
                        cuckoo
                    },
                    |cuckoo: &Cuckoo, keys| {
                        count_batches(keys, |batch, hits| cuckoo.contains_each(batch, hits))
                    },
                    bytes,
                    |cuckoo: &mut Cuckoo, keys| {
                        Some(count_removed(keys, |batch, removed| cuckoo.remove_all(batch, removed)))
                    },
                ),
            ]
        })
        .collect()
}

/// The family `counting`, one key at a time and by its batch methods.
fn counting<'k, K: BenchKey + 'k>(Task { keys, fpr, .. }: Task) -> Vec<Contender<'k, K>> {
    use mayhap::Counting;

    let make = move || Counting::new(keys, fpr).expect("memory");
    let bytes =
        |counting: &Counting| Some((counting.cells() * u64::from(counting.counter_bits())).div_ceil(8));
    vec![
        removing_singles(
            COUNTING,
            make,
            |counting, key| {
                counting.insert(key);
            },
            |counting, key| counting.contains(key),
            bytes,
            |counting, key| counting.remove(key).is_removed(),
        )
        .ours(PROBES),
        removing_slices(
            COUNTING_BATCH,
            Role::Ours { floor: PROBES },
            move |keys| {
                let mut counting = make();
                counting.insert_all(keys);
                counting
            },
            |counting: &Counting, keys| {
                count_batches(keys, |batch, hits| counting.contains_each(batch, hits))
            },
            bytes,
            |counting: &mut Counting, keys| {
                Some(count_removed(keys, |batch, removed| counting.remove_all(batch, removed)))
            },
        ),
    ]
}

/// The family `dleft`, one key at a time and by its batch methods.
fn dleft<'k, K: BenchKey + 'k>(Task { keys, fpr, .. }: Task) -> Vec<Contender<'k, K>> {
    use mayhap::{AnyFilter, Dleft};

    let make = move || Dleft::new(keys, fpr).expect("memory");
    let bytes = |dleft: &Dleft| Some(dleft.report().bits.div_ceil(8));
    vec![
        removing_singles(
            DLEFT,
            make,
            |dleft, key| {
                dleft.insert(key).expect("made for so many");
            },
            |dleft, key| dleft.contains(key),
            bytes,
            |dleft, key| dleft.remove(key).is_removed(),
        )
        .ours(LINES),
        removing_slices(
            DLEFT_BATCH,
            Role::Ours { floor: LINES },
            move |keys| {
                let mut dleft = make();
                dleft.insert_all(keys).expect("made for so many");
                dleft
            },
            |dleft: &Dleft, keys| count_batches(keys, |batch, hits| dleft.contains_each(batch, hits)),
            bytes,
            |dleft: &mut Dleft, keys| {
                Some(count_removed(keys, |batch, removed| dleft.remove_all(batch, removed)))
            },
        ),
    ]
}

/// The family `spectral` by its default rule, one key at a time and by its batch methods.
fn spectral<'k, K: BenchKey + 'k>(Task { keys, fpr, .. }: Task) -> Vec<Contender<'k, K>> {
    use mayhap::{AnyFilter, Spectral};

    let make = move || Spectral::new(keys, fpr).expect("memory");
    let bytes = |spectral: &Spectral| Some(spectral.report().bits.div_ceil(8));
    vec![
        singles(
            "mayhap spectral",
            make,
            |spectral, key| {
                spectral.insert(key);
            },
            |spectral, key| spectral.contains(key),
            bytes,
        )
        .ours(PROBES),
        slices(
            "mayhap spectral batch",
            Role::Ours { floor: PROBES },
            move |keys| {
                let mut spectral = make();
                spectral.insert_all(keys);
                spectral
            },
            |spectral: &Spectral, keys| {
                count_batches(keys, |batch, hits| spectral.contains_each(batch, hits))
            },
            bytes,
        ),
    ]
}

/// What the filters that grow are made for at first.
pub(crate) const GROWN_FROM: u64 = 1024;

/// The family `expanding`, one key at a time and by its batch methods, made for so many keys at first.
pub(crate) fn expanding<'k, K: BenchKey + 'k>(
    Task { fpr, .. }: Task,
    [single, batch]: [&'static str; 2],
    capacity: u64,
) -> [Contender<'k, K>; 2] {
    use mayhap::Expanding;

    let bytes = |expanding: &Expanding| Some(expanding.size_in_bytes());
    let make = move || Expanding::new(capacity, fpr).expect("memory");
    [
        removing_singles(
            single,
            make,
            |expanding, key| {
                expanding.insert(key).expect("memory");
            },
            |expanding, key| expanding.contains(key),
            bytes,
            |expanding, key| expanding.remove(key).is_removed(),
        )
        .ours(LINES),
        removing_slices(
            batch,
            Role::Ours { floor: LINES },
            move |keys| {
                let mut expanding = make();
                expanding.insert_all(keys).expect("memory");
                expanding
            },
            |expanding: &Expanding, keys| {
                count_batches(keys, |batch, hits| expanding.contains_each(batch, hits))
            },
            bytes,
            |expanding: &mut Expanding, keys| {
                Some(count_removed(keys, |batch, removed| expanding.remove_all(batch, removed)))
            },
        ),
    ]
}

/// The names of one of our static filters: asked one key at a time, by batches, and built by two threads.
pub(crate) struct Known {
    pub(crate) single: &'static str,
    pub(crate) batch: &'static str,
    pub(crate) two_threads: &'static str,
    /// What the time of its questions is held against.
    pub(crate) floor: KnownFloor,
    /// How many times that time a question may take.
    pub(crate) most_times: f64,
    /// The bits per key that it must not take more than, at 8 bits of fingerprint and a million keys or more.
    pub(crate) most_bits: f64,
}

/// What the questions of a static filter are held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KnownFloor {
    /// So many prefetched loads per key.
    Touches(u32),
    /// Batches of the family `fuse`.
    Fuse,
}

pub(crate) const FUSE: Known = Known {
    single: "mayhap fuse",
    batch: "mayhap fuse batch",
    two_threads: "mayhap fuse 2 threads",
    floor: KnownFloor::Touches(3),
    most_times: 1.4,
    most_bits: 9.02,
};

pub(crate) const FUSE_COMPACT: Known = Known {
    single: "mayhap fuse compact",
    batch: "mayhap fuse compact batch",
    two_threads: "mayhap fuse compact 2 threads",
    floor: KnownFloor::Touches(4),
    most_times: 1.4,
    most_bits: 8.65,
};

pub(crate) const RIBBON: Known = Known {
    single: "mayhap ribbon",
    batch: "mayhap ribbon batch",
    two_threads: "mayhap ribbon 2 threads",
    floor: KnownFloor::Fuse,
    most_times: 3.0,
    most_bits: 8.1,
};

pub(crate) const RIBBON_COMPACT: Known = Known {
    single: "mayhap ribbon compact",
    batch: "mayhap ribbon compact batch",
    two_threads: "mayhap ribbon compact 2 threads",
    floor: KnownFloor::Fuse,
    most_times: 3.0,
    most_bits: 8.1,
};

/// Our static families.
pub(crate) const KNOWN: [Known; 4] = [FUSE, FUSE_COMPACT, RIBBON, RIBBON_COMPACT];

/// Our static families: one line here and one in [`KNOWN`] each.
pub(crate) fn known<'k, K: BenchKey + 'k>(Task { fpr, .. }: Task) -> Vec<Contender<'k, K>> {
    use mayhap::{Fuse, Layout, Ribbon};

    let fuse = |layout| {
        let spec = Spec::new().with_fpr(fpr).with_layout(layout);
        move |keys: &[K], threads| Fuse::build_with(keys, &spec, threads).expect("memory")
    };
    let (contains, contains_each) = (|fuse: &Fuse, key: K| fuse.contains(key), Fuse::contains_each::<K>);
    let mut table = Vec::new();
    table.extend(one_known(&FUSE, fuse(Layout::Fastest), contains, contains_each, Fuse::size_in_bytes));
    table.extend(one_known(
        &FUSE_COMPACT,
        fuse(Layout::Compact),
        contains,
        contains_each,
        Fuse::size_in_bytes,
    ));
    let ribbon = |layout| {
        let spec = Spec::new().with_fpr(fpr).with_layout(layout);
        move |keys: &[K], threads| Ribbon::build_with(keys, &spec, threads).expect("memory")
    };
    for (known, layout) in [(&RIBBON, Layout::Fastest), (&RIBBON_COMPACT, Layout::Compact)] {
        let contains = |ribbon: &Ribbon, key: K| ribbon.contains(key);
        let contains_each = Ribbon::contains_each::<K>;
        table.extend(one_known(known, ribbon(layout), contains, contains_each, Ribbon::size_in_bytes));
    }
    table
}

fn one_known<'k, K: BenchKey + 'k, F: 'k>(
    names: &Known,
    build: impl Fn(&[K], usize) -> F + Copy + 'k,
    contains: impl Fn(&F, K) -> bool + Copy + 'k,
    contains_each: impl Fn(&F, &[K], &mut Vec<bool>) + Copy + 'k,
    bytes: impl Fn(&F) -> u64 + Copy + 'k,
) -> [Contender<'k, K>; 3] {
    let bytes = move |filter: &F| Some(bytes(filter));
    let ask =
        move |filter: &F, keys: &[K]| count_batches(keys, |batch, hits| contains_each(filter, batch, hits));
    let role = Role::Ours { floor: TOUCHES };
    [
        built(names.single, move |keys| build(keys, 1), contains, bytes).ours(TOUCHES),
        slices(names.batch, role, move |keys| build(keys, 1), ask, bytes),
        slices(names.two_threads, role, move |keys| build(keys, 2), ask, bytes),
    ]
}

/// As many prefetched loads per key as a static filter has, from as much memory.
pub(crate) fn touches<'k>(name: &'static str, bytes: u64, touches: u32) -> Contender<'k, u64> {
    let written = move |_: &[u64]| {
        let mut words = Words::zeroed(bytes.div_ceil(8)).expect("memory");
        words.as_mut_slice().fill(0x5555_5555_5555_5555);
        words
    };
    slices(
        name,
        Role::Limit,
        written,
        move |words, keys| limits::prefetched_touches(words, keys, touches),
        |words: &Words| Some(words.len() as u64 * 8),
    )
}

/// Bloom filters of others.
fn bloom_peers<'k, K: BenchKey + 'k>(Task { keys, fpr, .. }: Task) -> Vec<Contender<'k, K>> {
    let n = keys as usize;
    vec![
        singles(
            "fastbloom siphash",
            move || fastbloom::BloomFilter::with_false_pos(fpr).seed(&1).expected_items(n),
            |filter, key| {
                filter.insert(&key);
            },
            |filter, key| filter.contains(&key),
            |filter| Some(filter.num_bits() as u64 / 8),
        ),
        singles(
            FASTBLOOM,
            move || fastbloom::BloomFilter::with_false_pos(fpr).hasher(foldhash()).expected_items(n),
            |filter, key| {
                filter.insert(&key);
            },
            |filter, key| filter.contains(&key),
            |filter| Some(filter.num_bits() as u64 / 8),
        ),
        // Takes hashes only and sizes by whole bits per key.
        singles(
            SBBF,
            move || (sbbf_rs_safe::Filter::new(sbbf_bits_per_key(fpr), n), foldhash()),
            |(filter, hasher), key| {
                filter.insert_hash(hasher.hash_one(key));
            },
            |(filter, hasher), key| filter.contains_hash(hasher.hash_one(key)),
            |(filter, _)| Some(filter.as_bytes().len() as u64),
        ),
        // The halves of the seed are the keys of its two hashes: equal ones would ruin its rate.
        singles(
            "bloomfilter",
            move || {
                let seed = std::array::from_fn(|index| index as u8);
                bloomfilter::Bloom::<K>::new_for_fp_rate_with_seed(n, fpr, &seed).expect("memory")
            },
            |filter, key| filter.set(&key),
            |filter, key| filter.check(&key),
            |filter| Some(filter.len() / 8),
        ),
        singles(
            "datasketches",
            move || {
                datasketches::bloom::BloomFilterBuilder::with_accuracy(keys, fpr)
                    .seed(1)
                    .build()
                    .expect("a size that it supports")
            },
            |filter, key| filter.insert(key),
            |filter, key| filter.contains(&key),
            |filter| Some(filter.estimated_size() as u64),
        ),
        // Made for as many keys as come, so that it does not grow. It does not say how large it is.
        singles(
            "growable-bloom-filter",
            move || growable_bloom_filter::GrowableBloom::new(fpr, n),
            |filter, key| {
                filter.insert(key);
            },
            |filter, key| filter.contains(key),
            |_| None,
        ),
    ]
}

/// The least whole number of bits per key with which a split block Bloom filter keeps the rate.
fn sbbf_bits_per_key(fpr: f64) -> usize {
    (4..64).find(|&bits| sbbf_fpr(bits as f64) <= fpr).unwrap_or(64)
}

/// Blocks of 256 bits get keys by a Poisson distribution; each key sets one bit in each of 8 words of 32.
/// Putze, Sanders, Singler, *Cache-, Hash- and Space-Efficient Bloom Filters*, 2007, equation 3.
fn sbbf_fpr(bits_per_key: f64) -> f64 {
    let mean = 256.0 / bits_per_key;
    let mut chance = (-mean).exp();
    let mut rate = 0.0;
    for keys in 0..400 {
        rate += chance * (1.0 - (31.0_f64 / 32.0).powi(keys)).powi(8);
        chance *= mean / f64::from(keys + 1);
    }
    rate
}

/// foldhash for a peer that wants a hasher with a default.
struct Fold(FoldHasher<'static>);

impl Default for Fold {
    fn default() -> Self {
        Self(foldhash().build_hasher())
    }
}

impl Hasher for Fold {
    fn finish(&self) -> u64 {
        self.0.finish()
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    // The default of these two goes through `write`, which is slower than what foldhash itself does.
    fn write_u8(&mut self, number: u8) {
        self.0.write_u8(number);
    }

    fn write_u64(&mut self, number: u64) {
        self.0.write_u64(number);
    }
}

/// Filters of fingerprints in slots, which can also remove; and an exact set.
fn slot_peers<'k, K: BenchKey + 'k>(Task { keys, fpr, .. }: Task) -> Vec<Contender<'k, K>> {
    let n = keys as usize;
    let mut table = Vec::new();
    if has_bmi2() {
        table.push(removing_singles(
            "qfilter",
            move || qfilter::Filter::new(keys, fpr).expect("a size that it supports"),
            |filter, key| {
                filter.insert(key).expect("made for so many");
            },
            |filter, key| filter.contains(key),
            |filter| Some(filter.memory_usage() as u64),
            |filter, key| filter.remove(key),
        ));
        table.push(removing_singles(
            QFILTER,
            move || qfilter::Filter::new_with_hasher(keys, fpr, foldhash()).expect("a size that it supports"),
            |filter, key| {
                filter.insert(key).expect("made for so many");
            },
            |filter, key| filter.contains(key),
            |filter| Some(filter.memory_usage() as u64),
            |filter, key| filter.remove(key),
        ));
    }
    if has_bmi2() {
        // It must be told in advance how far it may grow, or its fingerprints are too short for the rate.
        table.push(removing_singles(
            QFILTER_GROWN,
            move || {
                let most = keys.max(GROWN_FROM);
                qfilter::Filter::new_resizeable_with_hasher(GROWN_FROM, most, fpr, foldhash())
                    .expect("a size that it supports")
            },
            |filter, key| {
                filter.insert(key).expect("made for so many");
            },
            |filter, key| filter.contains(key),
            |filter| Some(filter.memory_usage() as u64),
            |filter, key| filter.remove(key),
        ));
    }
    table.extend([
        cuckoofilter::<K, DefaultHasher>("cuckoofilter", n),
        cuckoofilter::<K, Fold>(CUCKOOFILTER, n),
        removing_singles(
            "autoscale_cuckoo_filter",
            move || autoscale_cuckoo_filter::CuckooFilter::<K>::new(n, fpr),
            |filter, key| filter.add::<K>(&key),
            |filter, key| filter.contains::<K>(&key),
            |filter| Some(filter.bytes() as u64),
            |filter, key| filter.remove::<K>(&key),
        ),
        // Exact, at its price: of URLs the table holds the references, and the text is not counted.
        removing_singles(
            "hashbrown foldhash",
            move || hashbrown::HashSet::<K, FixedState>::with_capacity_and_hasher(n, foldhash()),
            |set, key| {
                set.insert(key);
            },
            |set, key| set.contains(&key),
            |set| Some(set.allocation_size() as u64),
            |set, key| set.remove(&key),
        ),
    ]);
    table
}

/// qfilter does nothing on an x86-64 without it.
fn has_bmi2() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("bmi2");
    #[cfg(not(target_arch = "x86_64"))]
    true
}

/// Fingerprints of 8 bits whatever the rate. Near a power of two it may find no room for a key and then
/// forgets another one: the column `lost` counts them.
fn cuckoofilter<'k, K: BenchKey + 'k, H: Hasher + Default + 'k>(
    name: &'static str,
    n: usize,
) -> Contender<'k, K> {
    removing_singles(
        name,
        move || cuckoofilter::CuckooFilter::<H>::with_capacity(n),
        |filter, key| {
            let _ = filter.add(&key);
        },
        |filter, key| filter.contains(&key),
        |filter| Some(filter.memory_usage() as u64),
        |filter, key| filter.delete(&key),
    )
}

/// Filters that are built once from all keys. Those with fingerprints of a whole number of bytes take one
/// byte where that keeps the rate, else two.
fn static_peers<'k, K: BenchKey + 'k>(Task { fpr, .. }: Task) -> Vec<Contender<'k, K>> {
    let mut table = if fpr >= 1.0 / 256.0 {
        let built_from = |keys: &[K]| {
            let filter = jdb_xorf::Bf8::try_from_slice(K::numbers(keys)).expect("distinct keys");
            (filter, foldhash())
        };
        vec![
            built(
                XORF,
                |keys| {
                    let filter = xorf::BinaryFuse8::try_from(&*K::numbers(keys)).expect("distinct keys");
                    (filter, foldhash())
                },
                |(filter, hasher), key| filter.contains(&key.number(hasher)),
                |(filter, _)| Some(filter.len() as u64),
            ),
            built(
                JDB_XORF,
                built_from,
                |(filter, hasher), key| filter.has_key(key.number(hasher)),
                |(filter, _)| Some(filter.bytes() as u64),
            ),
            slices(
                JDB_XORF_BATCH,
                Role::Peer,
                built_from,
                |(filter, hasher), keys| {
                    batches_of_numbers(keys, hasher, |k, hits| filter.contains_batch(k, hits))
                },
                |(filter, _)| Some(filter.bytes() as u64),
            ),
        ]
    } else {
        let built_from = |keys: &[K]| {
            let filter = jdb_xorf::Bf16::try_from_slice(K::numbers(keys)).expect("distinct keys");
            (filter, foldhash())
        };
        vec![
            built(
                "xorf BinaryFuse16",
                |keys| {
                    let filter = xorf::BinaryFuse16::try_from(&*K::numbers(keys)).expect("distinct keys");
                    (filter, foldhash())
                },
                |(filter, hasher), key| filter.contains(&key.number(hasher)),
                |(filter, _)| Some(filter.len() as u64 * 2),
            ),
            built(
                "jdb_xorf Bf16",
                built_from,
                |(filter, hasher), key| filter.has_key(key.number(hasher)),
                |(filter, _)| Some(filter.bytes() as u64),
            ),
            slices(
                "jdb_xorf Bf16 batch",
                Role::Peer,
                built_from,
                |(filter, hasher), keys| {
                    batches_of_numbers(keys, hasher, |k, hits| filter.contains_batch(k, hits))
                },
                |(filter, _)| Some(filter.bytes() as u64),
            ),
        ]
    };
    // Any number of bits per fingerprint; one thread, as everybody here.
    let bits = (-fpr.log2()).ceil() as usize;
    table.push(built(
        "sux VFilter",
        move |keys| {
            let builder = VBuilder::default().expected_num_keys(keys.len()).max_num_threads(1);
            let silent = dsi_progress_logger::no_logging![];
            VFilter::<K::Signed, BitFieldVec<Box<[usize]>>>::try_new_with_builder(
                FromSlice::new(keys),
                bits,
                builder,
                silent,
            )
            .expect("distinct keys")
        },
        |filter, key| filter.contains(key),
        |filter| Some(filter.mem_size(SizeFlags::default()) as u64),
    ));
    table
}

/// The batch method of jdb_xorf takes numbers: others are hashed into a buffer first.
fn batches_of_numbers<K: BenchKey>(
    keys: &[K],
    hasher: &FixedState,
    ask: impl Fn(&[u64], &mut [bool]),
) -> u64 {
    let (mut numbers, mut hits) = ([0; BATCH], [false; BATCH]);
    let mut count = 0;
    for batch in keys.chunks(BATCH) {
        let (numbers, hits) = (&mut numbers[..batch.len()], &mut hits[..batch.len()]);
        numbers.iter_mut().zip(batch).for_each(|(number, key)| *number = key.number(hasher));
        ask(numbers, hits);
        count += hits.iter().filter(|&&hit| hit).count() as u64;
    }
    count
}

/// See [`limits`].
fn physical<'k, K: BenchKey + 'k>(Task { keys, fpr, .. }: Task) -> Vec<Contender<'k, K>> {
    let size = Spec::sized(keys, fpr).bloom().expect("a rate and a number that make sense");
    let probes = size.probes;
    // Whole cache lines, and never read before they were written: else the system gives the same page of
    // zeros for all of them.
    let written = move |_: &[K]| {
        let mut words = Words::zeroed(words_for(size.bits).next_multiple_of(8)).expect("memory");
        words.as_mut_slice().fill(0x5555_5555_5555_5555);
        words
    };
    let bytes = |words: &Words| Some(words.len() as u64 * 8);
    let mut table = vec![
        slices("limit hash", Role::Limit, |_| (), |(), keys| limits::hash(keys), |()| None),
        slices("limit lines loop", Role::Limit, written, |words, keys| limits::lines(words, keys), bytes),
        slices(
            "limit probes loop",
            Role::Limit,
            written,
            move |words, keys| limits::probes(words, keys, probes),
            bytes,
        ),
    ];
    let wired = Words::zeroed(8).is_ok_and(|words| limits::prefetched_lines(&words, &[]).is_some());
    if wired && K::NUMERIC {
        table.push(slices(
            "limit lines prefetched",
            Role::Limit,
            written,
            |words, keys| limits::prefetched_lines(words, &K::numbers(keys)).unwrap_or(0),
            bytes,
        ));
        table.push(slices(
            "limit probes prefetched",
            Role::Limit,
            written,
            move |words, keys| limits::prefetched_probes(words, &K::numbers(keys), probes).unwrap_or(0),
            bytes,
        ));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The figures of SPEED: 11 bits for 0.82%, 17 for 0.1%; 10.67 for 0.94%.
    #[test]
    fn the_rate_of_a_split_block_filter_is_the_measured_one() {
        assert!((sbbf_fpr(11.0) - 0.0082).abs() < 0.0001, "{}", sbbf_fpr(11.0));
        assert!((sbbf_fpr(10.67) - 0.0094).abs() < 0.0001, "{}", sbbf_fpr(10.67));
        assert_eq!((sbbf_bits_per_key(0.01), sbbf_bits_per_key(0.001)), (11, 17));
    }

    #[test]
    fn names_are_unique_and_can_be_selected() {
        for fpr in [0.01, 0.001] {
            let table = table::<u64>(Task { kind: Kind::U64, keys: 1000, fpr });
            for contender in &table {
                assert!(!contender.name.contains(','), "{}", contender.name);
                assert_eq!(table.iter().filter(|other| other.name == contender.name).count(), 1);
            }
            let ours = OURS_AGAINST.into_iter().flat_map(|(one, other)| [one, other]);
            for name in AGAINST.into_iter().chain(AGAINST_REMOVING).chain(AGAINST_GROWING).chain(ours) {
                assert!(table.iter().any(|contender| contender.name == name), "{name}");
            }
        }
    }
}
