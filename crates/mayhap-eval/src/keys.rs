//! Keys to insert and keys to ask, made from a seed and an index.
//!
//! Key `index` is made without the ones before it, so threads can share the work and a test can name one key.
//! Distinct indexes give distinct keys, by construction: every kind writes the whole index, plain or through
//! a bijection. The bytes are pinned by tests, because golden files depend on them.

use core::fmt;
use core::str::FromStr;

use crate::SplitMix64;

/// The first index of absent keys.
///
/// Members use the indexes below it, probes that must be absent use `ABSENT + i` with the same seed. The two
/// sets are disjoint by construction, because distinct indexes give distinct keys.
pub const ABSENT: u64 = 1 << 40;

/// The shortest length that [`write_url`] can write, in bytes.
pub const URL_MIN: usize = SCHEME.len() + 5 + 1 + 4 + DOMAIN.len() + 1 + 1 + ID_LEN;

const SCHEME: &str = "https://";
/// Reserved by RFC 2606: no generated address can belong to anybody.
const DOMAIN: &str = ".example/";
/// 64 bits in digits of 6 bits.
const ID_LEN: usize = 11;
/// The lengths of [`KeyKind::Url`] are spread evenly over this range, whose middle is 50.
const URL_LENGTHS: core::ops::RangeInclusive<u64> = 42..=58;

/// What keys look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyKind {
    /// The index itself as 8 little-endian bytes. Hard for weak hash functions. The seed has no effect.
    Sequential,
    /// 64 random-looking bits: output number `index` of [`SplitMix64`], as 8 little-endian bytes.
    Random,
    /// The address of a web page: ASCII, one line, 42 to 58 bytes, 50 on average. See [`write_url`] for an
    /// exact length.
    Url,
    /// A UUID of version 4 in its text form, 36 bytes.
    Uuid,
    /// A constant prefix of 64 bytes and the index in decimal: only the last bytes differ. The seed has no
    /// effect.
    CommonPrefix,
}

impl KeyKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [Self::Sequential, Self::Random, Self::Url, Self::Uuid, Self::CommonPrefix];

    /// The name of this kind, as [`FromStr`] reads it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::Random => "random",
            Self::Url => "url",
            Self::Uuid => "uuid",
            Self::CommonPrefix => "common-prefix",
        }
    }

    /// Appends key number `index` of `seed` to `out`.
    ///
    /// ```
    /// use mayhap_eval::KeyKind;
    ///
    /// let mut keys = Vec::new();
    /// KeyKind::Sequential.write_key(0, 1, &mut keys);
    /// KeyKind::Sequential.write_key(0, 258, &mut keys);
    /// assert_eq!(keys, [1, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0]);
    /// ```
    pub fn write_key(self, seed: u64, index: u64, out: &mut Vec<u8>) {
        match self {
            Self::Sequential => out.extend_from_slice(&index.to_le_bytes()),
            Self::Random => out.extend_from_slice(&SplitMix64::at(seed, index).to_le_bytes()),
            Self::Url => {
                let id = SplitMix64::at(seed, index);
                let spread = URL_LENGTHS.end() - URL_LENGTHS.start() + 1;
                push_url(id, (URL_LENGTHS.start() + id % spread) as usize, out);
            }
            Self::Uuid => push_uuid(SplitMix64::at(seed, index), out),
            Self::CommonPrefix => {
                out.extend_from_slice(PREFIX);
                push_decimal(index, out);
            }
        }
    }

    /// Key number `index` of `seed`, for places where an allocation per key does not matter.
    pub fn key(self, seed: u64, index: u64) -> Vec<u8> {
        let mut out = Vec::new();
        self.write_key(seed, index, &mut out);
        out
    }
}

impl fmt::Display for KeyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for KeyKind {
    type Err = UnknownKeyKind;

    fn from_str(name: &str) -> Result<Self, UnknownKeyKind> {
        let known = Self::ALL.into_iter().find(|kind| kind.name() == name);
        known.ok_or_else(|| UnknownKeyKind { name: name.to_owned() })
    }
}

/// No kind of keys has this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownKeyKind {
    /// The name that was given.
    pub name: String,
}

impl fmt::Display for UnknownKeyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = KeyKind::ALL.map(KeyKind::name).join(", ");
        write!(f, "unknown kind of keys {:?}; expected one of {known}", self.name)
    }
}

impl core::error::Error for UnknownKeyKind {}

/// Appends a URL of exactly `len` bytes, without a line end.
///
/// It is ASCII, and unique per index: its last 11 bytes are a bijection of the index.
///
/// ```
/// let mut url = Vec::new();
/// mayhap_eval::write_url(1, 0, 50, &mut url);
/// assert_eq!(url, b"https://ember-team.example/travel/arch/BzlAJyeLKEJ");
/// ```
///
/// # Panics
///
/// If `len` is less than [`URL_MIN`].
pub fn write_url(seed: u64, index: u64, len: usize, out: &mut Vec<u8>) {
    assert!(len >= URL_MIN, "a URL of {len} bytes was asked, but the shortest has {URL_MIN}");
    push_url(SplitMix64::at(seed, index), len, out);
}

/// Host and path are drawn from `id`; `id` itself ends the URL and makes it unique.
fn push_url(id: u64, len: usize, out: &mut Vec<u8>) {
    let mut draws = SplitMix64::new(id);
    out.reserve(len);
    let id_start = out.len() + len - ID_LEN;

    let host = draws.next_u64();
    out.extend_from_slice(SCHEME.as_bytes());
    out.extend_from_slice(NAMES[(host >> 58) as usize].as_bytes());
    out.push(b'-');
    out.extend_from_slice(SITES[(host & 15) as usize].as_bytes());
    out.extend_from_slice(DOMAIN.as_bytes());

    let mut separator = b'/';
    while out.len() < id_start {
        out.extend_from_slice(WORDS[(draws.next_u64() >> 58) as usize].as_bytes());
        out.push(separator);
        separator = b'-';
    }
    // The last word is cut to fit. Where the cut leaves a separator, a letter replaces it: no empty segment.
    out.truncate(id_start - 1);
    if let Some(last) = out.last_mut().filter(|last| !last.is_ascii_lowercase()) {
        *last = b's';
    }
    out.push(b'/');

    let mut digits = [0; ID_LEN];
    for (place, digit) in digits.iter_mut().enumerate() {
        *digit = BASE64_URL[(id >> (6 * place)) as usize & 63];
    }
    out.extend_from_slice(&digits);
}

/// A UUID has 122 free bits. All 64 of `id` go into them, so distinct ids give distinct UUIDs.
fn push_uuid(id: u64, out: &mut Vec<u8>) {
    // The version takes the place of four bits of `id`; these move behind the variant in the low half.
    let displaced = (id >> 12) & 0xf;
    let high = (id & !0xf000) | 0x4000;
    let low = (0b10 << 62) | (displaced << 58) | (SplitMix64::at(id, 0) >> 6);

    let mut text = [b'-'; 36];
    let mut place = 0;
    for (byte_number, byte) in high.to_be_bytes().into_iter().chain(low.to_be_bytes()).enumerate() {
        if matches!(byte_number, 4 | 6 | 8 | 10) {
            place += 1;
        }
        text[place] = HEX[usize::from(byte >> 4)];
        text[place + 1] = HEX[usize::from(byte & 15)];
        place += 2;
    }
    out.extend_from_slice(&text);
}

fn push_decimal(mut number: u64, out: &mut Vec<u8>) {
    // u64::MAX has 20 digits.
    let mut digits = [0; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}

const PREFIX: &[u8; 64] = b"/archive/measurements/station-0001/instrument-0001/series/sample";
const HEX: &[u8; 16] = b"0123456789abcdef";
/// RFC 4648, section 5: the alphabet that is safe in URLs.
const BASE64_URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// First half of a host name: five letters at most, which `URL_MIN` counts on.
const NAMES: [&str; 64] = [
    "acorn", "alder", "amber", "apple", "aspen", "aster", "basil", "beech", "berry", "birch", "bloom",
    "briar", "cedar", "cliff", "cloud", "clove", "coral", "daisy", "delta", "dune", "ebony", "elder", "elm",
    "ember", "fern", "field", "flint", "frost", "glade", "grove", "hazel", "holly", "iris", "ivory", "ivy",
    "jade", "lake", "larch", "lemon", "lilac", "linen", "lotus", "lunar", "maple", "marsh", "mint", "moss",
    "north", "oak", "ocean", "olive", "onyx", "opal", "pearl", "pine", "plum", "quill", "river", "robin",
    "sage", "solar", "stone", "tulip", "wheat",
];

/// Second half of a host name: four letters, which `URL_MIN` counts on.
const SITES: [&str; 16] = [
    "bank", "blog", "book", "cafe", "city", "club", "docs", "farm", "film", "labs", "mail", "maps", "news",
    "shop", "team", "wiki",
];

/// Words of a path.
const WORDS: [&str; 64] = [
    "about", "album", "archive", "article", "author", "basket", "black", "blue", "bread", "bridge",
    "catalog", "chair", "coffee", "comment", "cotton", "detail", "door", "event", "forum", "gallery",
    "garden", "glass", "gold", "green", "guide", "help", "history", "house", "image", "index", "item",
    "kitchen", "lamp", "leather", "letter", "light", "list", "market", "music", "notes", "offer", "order",
    "page", "paper", "photo", "post", "press", "product", "profile", "recipe", "red", "report", "review",
    "school", "search", "silver", "slate", "story", "table", "thread", "travel", "user", "video", "winter",
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use xxhash_rust::xxh3::xxh3_64;

    use super::*;

    fn text(kind: KeyKind, seed: u64, index: u64) -> String {
        String::from_utf8(kind.key(seed, index)).unwrap()
    }

    #[test]
    fn names_are_read_back() {
        for kind in KeyKind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
            assert_eq!(kind.to_string(), kind.name());
        }
        assert_eq!(
            "urls".parse::<KeyKind>().unwrap_err().to_string(),
            "unknown kind of keys \"urls\"; expected one of sequential, random, url, uuid, common-prefix"
        );
    }

    /// Golden files hold these keys. If this test fails, the generator is wrong, not the test.
    #[test]
    fn keys_never_change() {
        assert_eq!(KeyKind::Sequential.key(1, 0x0102), [2, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(KeyKind::Random.key(1_234_567, 0), 6_457_827_717_110_365_317_u64.to_le_bytes());
        assert_eq!(text(KeyKind::Url, 1, 0), "https://ember-team.example/travel/archiv/BzlAJyeLKEJ");
        assert_eq!(text(KeyKind::Url, 1, ABSENT), "https://hazel-team.example/article/d/Zi4GDlSIjsE");
        assert_eq!(text(KeyKind::Uuid, 1, 0), "910a2dec-8902-4cc1-9579-06ac21d0e584");
        assert_eq!(text(KeyKind::Uuid, 1, ABSENT), "4b232129-431b-4899-a1e9-53c4995d6760");
        assert_eq!(
            text(KeyKind::CommonPrefix, 1, 907),
            "/archive/measurements/station-0001/instrument-0001/series/sample907"
        );

        let checksums = KeyKind::ALL.map(|kind| {
            let mut all = Vec::new();
            for seed in [0, 1, u64::MAX] {
                for index in (0..10_000).chain(ABSENT..ABSENT + 10_000) {
                    kind.write_key(seed, index, &mut all);
                }
            }
            xxh3_64(&all)
        });
        let pinned = [
            0xaf87_3908_29ec_ffe2,
            0x282c_5d4d_e2a1_9a13,
            0xb65a_4f40_0723_3cc4,
            0x18f6_8f98_f399_1bcb,
            0xc826_27cc_4943_c9c0,
        ];
        assert_eq!(checksums, pinned, "{checksums:#x?}");
        let mut urls = Vec::new();
        (0..10_000).for_each(|index| write_url(1, index, 50, &mut urls));
        assert_eq!(xxh3_64(&urls), 0x0433_9e7b_2972_942a);
    }

    #[test]
    fn a_million_members_and_a_million_absent_keys_are_all_distinct() {
        for kind in KeyKind::ALL {
            // Distinct hashes prove distinct keys, and are faster to compare.
            let indexes = (0..1_000_000).chain(ABSENT..ABSENT + 1_000_000);
            let mut hashes: Vec<u64> = indexes.map(|index| xxh3_64(&kind.key(42, index))).collect();
            hashes.sort_unstable();
            hashes.dedup();
            assert_eq!(hashes.len(), 2_000_000, "{kind}");
        }
    }

    #[test]
    fn the_seed_changes_the_keys_that_use_it() {
        for kind in [KeyKind::Random, KeyKind::Url, KeyKind::Uuid] {
            let first: HashSet<Vec<u8>> = (0..1_000).map(|index| kind.key(1, index)).collect();
            assert!((0..1_000).all(|index| !first.contains(&kind.key(2, index))), "{kind}");
        }
    }

    #[test]
    fn extreme_indexes_have_keys() {
        for kind in KeyKind::ALL {
            assert_ne!(kind.key(u64::MAX, u64::MAX), kind.key(u64::MAX, 0), "{kind}");
        }
        assert!(text(KeyKind::CommonPrefix, 0, u64::MAX).ends_with("sample18446744073709551615"));
        assert!(text(KeyKind::CommonPrefix, 0, 0).ends_with("sample0"));
    }

    #[test]
    fn keys_are_appended() {
        for kind in KeyKind::ALL {
            let mut out = b"before".to_vec();
            kind.write_key(3, 4, &mut out);
            assert_eq!(out, [b"before".to_vec(), kind.key(3, 4)].concat(), "{kind}");
        }
    }

    #[test]
    fn urls_have_the_length_that_was_asked() {
        for len in URL_MIN..=300 {
            for index in 0..200 {
                let mut out = b"x".to_vec();
                write_url(7, index, len, &mut out);
                assert_eq!(out.len(), len + 1);
            }
        }
        assert_eq!(URL_MIN, 40);
    }

    #[test]
    #[should_panic(expected = "a URL of 39 bytes was asked, but the shortest has 40")]
    fn too_short_a_url_is_refused() {
        write_url(0, 0, 39, &mut Vec::new());
    }

    #[test]
    fn urls_are_one_line_of_clean_text() {
        let mut hosts = HashSet::new();
        let mut bytes = 0;
        for index in 0..100_000 {
            let url = text(KeyKind::Url, 5, index);
            assert!(url.bytes().all(|byte| byte.is_ascii_graphic()), "{url}");
            assert!((42..=58).contains(&url.len()), "{url}");
            let (host, path) = url.strip_prefix("https://").unwrap().split_once('/').unwrap();
            assert!(path.split('/').all(|segment| !segment.is_empty()), "{url}");
            hosts.insert(host.to_owned());
            bytes += url.len();
        }
        assert_eq!(hosts.len(), NAMES.len() * SITES.len());
        assert_eq!((bytes + 50_000) / 100_000, 50);
    }

    #[test]
    fn the_shortest_url_has_room_for_every_host() {
        assert!(NAMES.iter().all(|name| name.len() <= 5));
        assert!(SITES.iter().all(|site| site.len() == 4));
    }

    #[test]
    fn uuids_are_of_version_four() {
        for index in 0..10_000 {
            let uuid = text(KeyKind::Uuid, 5, index);
            let groups: Vec<&str> = uuid.split('-').collect();
            assert_eq!(groups.iter().map(|group| group.len()).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
            assert!(groups.concat().bytes().all(|byte| HEX.contains(&byte)), "{uuid}");
            assert!(groups[2].starts_with('4'), "{uuid}");
            assert!(groups[3].starts_with(['8', '9', 'a', 'b']), "{uuid}");
        }
    }
}
