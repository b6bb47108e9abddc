//! Key generators and statistics for measuring filters.
//!
//! Tests, benchmarks and experiments share this crate, so that all of them ask the same keys and judge the
//! answers by the same rule. Experiments with filters are here too; what makes keys and judges counts knows no filter.
//!
//! - [`KeyKind`] makes key number `index` from a seed, without making the ones before it. Members and absent
//!   probes never meet: absent keys start at index [`ABSENT`].
//! - [`Stream`] is a sequence of records with an exact number of repeats; [`UrlLines`] writes one as text.
//! - [`Zipf`] is a sequence of records in which few come often and many rarely, for filters that count.
//! - [`Proportion`] is "so many hits in so many trials", with intervals and the pass rule of the experiments.
//! - [`PAPERS`] are the experiments that papers report, run again with our filters; each gives [`Finding`]s.
//! - [`Chart`] draws what was measured, as SVG.
//! - [`SplitMix64`] and [`Random`] are the only sources of randomness. Both need a seed.
//!
//! ```
//! use mayhap_eval::{ABSENT, KeyKind, Proportion};
//!
//! let member = KeyKind::Url.key(1, 0);
//! let probe = KeyKind::Url.key(1, ABSENT);
//! assert_ne!(member, probe);
//!
//! // 10 false positives in 500 probes look like 2 %, but do not contradict a promise of 1.01 %.
//! let measured = Proportion { hits: 10, trials: 500 };
//! let (low, high) = measured.clopper_pearson(0.95).unwrap();
//! assert!(low < 0.0101 && 0.0101 < high);
//! ```

mod admitted;
mod baseline;
mod chart;
mod classic;
mod data;
mod experiment;
mod finding;
mod hashes;
mod keys;
mod lines;
mod papers;
mod plots;
mod random;
mod statistics;
mod stream;
mod zipf;

pub use admitted::{Admitted, admitted_by_a_java_class, admitted_by_guava};
pub use baseline::{BITMAP_BITS_PER_KEY, Baseline, baselines, with_bloom};
pub use chart::{Axis, Chart, NoChart, Scale, Series, Style};
pub use classic::{
    CLASSIC_KEYS, ClassicFilter, ClassicRate, ClassicTimes, classic_numbers, classic_rates, classic_uuids,
    cuckoo_crossing,
};
pub use data::{Absent, Data, Drawn, Keys, Texts, UnknownData};
pub use experiment::{Candidate, Impossible, Run, Runs, Task, run};
pub use finding::Finding;
pub use hashes::{
    HASH_FUNCTIONS, HASHED_KEYS, HashFunction, HashRun, HashedKeys, TIMED_BYTES, hash_functions,
    murmur3_x86_32, run_hash, time_hash,
};
pub use keys::{ABSENT, KeyKind, URL_MIN, UnknownKeyKind, write_url};
pub use lines::{Occurrence, UrlLines};
pub use papers::{PAPERS, Paper};
pub use plots::{Advance, bits_against_rate, insert_time_against_load, rate_against_keys, time_against_keys};
pub use random::{Random, SplitMix64};
pub use statistics::{Proportion, median, normal_quantile, normal_two_sided_tail};
pub use stream::Stream;
pub use zipf::Zipf;
