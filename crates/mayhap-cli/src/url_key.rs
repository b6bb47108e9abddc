//! The normal form of a URL: one key for the many ways to write an address.
//!
//! A record is read as the URL Standard says, that is, as browsers read it. **The same** are then:
//! - scheme and host in upper and lower case, and a host in Unicode and in Punycode (IDNA); only the hosts of
//!   `http`, `https`, `ws`, `wss` and `ftp`, since `ipfs://Qm…` means another thing in lower case;
//! - a default port (`http://a:80/`) and none; no path (`http://a`) and `/`, with those schemes;
//! - `/a/./b/../c` and `/a/c`; `\` and `/` in the path, with those schemes;
//! - `%7E` and `~` (RFC 3986, 6.2.2.2), `%3a` and `%3A` (6.2.2.1), `é` and `%C3%A9`, a space and `%20`;
//! - with a fragment and without; with white space around and without;
//! - `?b=2&a=1` and `?a=1&b=2`. Values of one name keep their order: `?a=2&a=1` is not `?a=1&a=2`;
//! - `?` with nothing behind it and no query; `a&&b` and `a&b`;
//! - with and without the query names that are to be stripped.
//!
//! **Not the same**, since servers may tell them apart: `http` and `https`; `www.a` and `a`; `/a` and `/a/`; letters of
//! the path or query in upper and lower case; `+` and `%20`; `%2F` and `/`; `?a` and `?a=`; user names and passwords.
//!
//! A record that is no URL with a host (`foo`, `mailto:x`, `file:…`, what is not UTF-8) is its own key. It is never taken
//! for a URL: a normal form is a URL itself, and its own normal form. A record with a tab or a line break inside is no
//! URL either, although the URL Standard drops them: `http://a/1⇥2` is a line of two columns, not `http://a/12`.

use std::borrow::Cow;

use memchr::{memchr, memchr3};
use url::{Position, Url};

/// How the URL of a record becomes its key.
#[derive(Clone, Debug, Default)]
pub(crate) struct UrlRule {
    stripped: Vec<Names>,
    /// The names in order, with commas between them: equal lists are equal rules.
    pub(crate) list: String,
}

/// Query names.
#[derive(Clone, Debug)]
enum Names {
    One(String),
    StartingWith(String),
}

impl Names {
    fn contain(&self, name: &str) -> bool {
        match self {
            Self::One(one) => name == one,
            Self::StartingWith(start) => name.starts_with(start),
        }
    }
}

/// Names that are stripped from the query, with commas between them, such as `gclid,utm_*`.
pub(crate) fn stripping(list: &str) -> Result<UrlRule, String> {
    let names = |text: &str| {
        let (name, all) = text.strip_suffix('*').map_or((text, false), |start| (start, true));
        if name.contains(['*', '=', '&', '#']) || text.is_empty() {
            return Err(format!(
                "{text:?} is no name in a query; give names with commas between them, such as gclid,utm_*, or * for all"
            ));
        }
        Ok(if all { Names::StartingWith(name.into()) } else { Names::One(name.into()) })
    };
    let stripped = list.split(',').map(names).collect::<Result<_, _>>()?;
    let mut sorted: Vec<&str> = list.split(',').collect();
    sorted.sort_unstable();
    sorted.dedup();
    Ok(UrlRule { stripped, list: sorted.join(",") })
}

impl UrlRule {
    /// The key of a text, if it is not the text itself.
    pub(crate) fn rewritten(&self, text: &[u8]) -> Option<Vec<u8>> {
        let Some(Plain { address, query }) = Plain::of(text) else { return self.normal(text) };
        let has_fragment = text.len() > address.len() + query.map_or(0, |query| 1 + query.len());
        let is_normal = !has_fragment && query.is_none_or(|query| self.is_normal(query));
        (!is_normal).then(|| self.with_query(address, query.unwrap_or_default()))
    }

    /// The normal form of a URL; `None` for what is no URL with a host.
    fn normal(&self, text: &[u8]) -> Option<Vec<u8>> {
        let text = std::str::from_utf8(text).ok()?.trim_matches(|c| c <= ' ');
        if memchr3(b'\t', b'\n', b'\r', text.as_bytes()).is_some() {
            return None;
        }
        // Before parsing, so that the parser sees the dots of dot segments. Not in the scheme, where it has no meaning.
        let (scheme, rest) = text.split_once(':')?;
        let text = match with_normal_percents(rest) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(rest) => Cow::Owned(format!("{scheme}:{rest}")),
        };
        // Drive letters make other hosts and paths of some `file` URLs each time that they are parsed.
        let url = Url::parse(&text).ok().filter(|url| url.scheme() != "file")?;
        url.host_str().filter(|host| !host.is_empty())?;
        Some(self.with_query(&url[..Position::AfterPath], url.query().unwrap_or_default()))
    }

    /// An address with the pairs of a query that stay, sorted.
    fn with_query(&self, address: &str, query: &str) -> Vec<u8> {
        let stays = |pair: &&str| !pair.is_empty() && !self.strips(name(pair));
        let mut pairs: Vec<&str> = query.split('&').filter(stays).collect();
        pairs.sort_by_key(|pair| name(pair));
        let mut normal = Vec::with_capacity(address.len() + 1 + query.len());
        normal.extend_from_slice(address.as_bytes());
        let mut before = b'?';
        for pair in pairs {
            normal.push(before);
            normal.extend_from_slice(pair.as_bytes());
            before = b'&';
        }
        normal
    }

    /// Whether all pairs of a query stay, and where they are.
    fn is_normal(&self, query: &str) -> bool {
        let mut before = "";
        query.split('&').all(|pair| {
            let name = name(pair);
            !pair.is_empty() && !self.strips(name) && std::mem::replace(&mut before, name) <= name
        })
    }

    fn strips(&self, name: &str) -> bool {
        self.stripped.iter().any(|names| names.contain(name))
    }
}

/// A URL of which it is seen without parsing that it is in normal form, but for its query's pairs and a fragment. So are
/// most lines of most files.
struct Plain<'a> {
    /// All before the query.
    address: &'a str,
    query: Option<&'a str>,
}

impl<'a> Plain<'a> {
    /// `None` means that it takes the parser to know.
    fn of(text: &'a [u8]) -> Option<Self> {
        let scheme =
            [&b"https://"[..], b"http://"].into_iter().find(|scheme| text.starts_with(scheme))?.len();
        let path = scheme + memchr(b'/', &text[scheme..])?;
        let end = memchr(b'#', text).unwrap_or(text.len());
        let mark = memchr(b'?', text).map_or(end, |mark| mark.min(end));
        if path > mark || !is_plain_host(&text[scheme..path]) {
            return None;
        }
        // A segment that starts with a dot may be a dot segment.
        let mut previous = b'/';
        for &byte in &text[path..mark] {
            if !IS_PLAIN[usize::from(byte)] || (byte == b'.' && previous == b'/') {
                return None;
            }
            previous = byte;
        }
        let query = text[..end].get(mark + 1..);
        // The parser percent-encodes an apostrophe here, and not in paths.
        let is_plain = |byte: u8| byte == b'?' || (IS_PLAIN[usize::from(byte)] && byte != b'\'');
        if !query.unwrap_or_default().iter().all(|&byte| is_plain(byte)) {
            return None;
        }
        // White space at the end is not part of it, and a tab in it makes the record no URL.
        if !text[end..].iter().all(u8::is_ascii_graphic) {
            return None;
        }
        let address = std::str::from_utf8(&text[..mark]).ok()?;
        let query = query.map(std::str::from_utf8).transpose().ok()?;
        Some(Self { address, query })
    }
}

/// The name of a query's pair.
fn name(pair: &str) -> &str {
    pair.split_once('=').map_or(pair, |(name, _)| name)
}

/// Bytes that stand for themselves in paths: RFC 3986's `pchar` without percent signs, and the slash.
const IS_PLAIN: [bool; 256] = {
    let mut plain = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        plain[byte] = is_unreserved(byte as u8);
        byte += 1;
    }
    let others = b"!$&'()*+,;=:@/";
    let mut index = 0;
    while index < others.len() {
        plain[others[index] as usize] = true;
        index += 1;
    }
    plain
};

const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Whether a host is a domain in lower case that nothing can be done about: no port, no number, no Punycode.
fn is_plain_host(host: &[u8]) -> bool {
    let (mut label, mut last_starts_with_letter) = (0, false);
    for (index, &byte) in host.iter().enumerate() {
        match byte {
            b'.' if index > label => (label, last_starts_with_letter) = (index + 1, false),
            b'a'..=b'z' => last_starts_with_letter |= index == label,
            b'0'..=b'9' => {}
            b'-' if index > label && host[index - 1] != b'-' => {}
            _ => return false,
        }
    }
    last_starts_with_letter
}

/// Percent-encoded letters, digits, `-`, `.`, `_` and `~` as they are, and the digits of all others in upper case.
fn with_normal_percents(text: &str) -> Cow<'_, str> {
    if memchr(b'%', text.as_bytes()).is_none() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    // Behind the last percent sign that encodes nothing.
    let mut lone = None;
    while let Some(percent) = memchr(b'%', rest.as_bytes()) {
        out.push_str(&rest[..percent]);
        if let Some(byte) = encoded(&rest.as_bytes()[percent..]) {
            // `%%34%31` must not become `%41`, which would mean something else.
            let completes = lone.is_some_and(|behind: usize| {
                let after = &out.as_bytes()[behind..];
                after.len() < 2 && after.iter().chain([&byte]).all(u8::is_ascii_hexdigit)
            });
            if is_unreserved(byte) && !completes {
                out.push(char::from(byte));
            } else {
                out.push_str(&rest[percent..percent + 3].to_ascii_uppercase());
            }
            rest = &rest[percent + 3..];
        } else {
            out.push('%');
            lone = Some(out.len());
            rest = &rest[percent + 1..];
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The byte that a percent sign and two digits stand for.
fn encoded(text: &[u8]) -> Option<u8> {
    let digit = |index: usize| text.get(index).and_then(|&hex| char::from(hex).to_digit(16));
    digit(1).zip(digit(2)).map(|(high, low)| (high << 4 | low) as u8)
}

#[cfg(test)]
mod tests {
    use mayhap_eval::Random;

    use super::*;

    fn key(rule: &UrlRule, text: &[u8]) -> Vec<u8> {
        rule.rewritten(text).unwrap_or_else(|| text.to_vec())
    }

    #[track_caller]
    fn same(list: Option<&str>, one: &str, other: &str) {
        let rule = list.map_or_else(UrlRule::default, |list| stripping(list).unwrap());
        let [one, other] = [one, other].map(|text| String::from_utf8(key(&rule, text.as_bytes())).unwrap());
        assert_eq!(one, other);
    }

    #[track_caller]
    fn different(list: Option<&str>, one: &str, other: &str) {
        let rule = list.map_or_else(UrlRule::default, |list| stripping(list).unwrap());
        let [one, other] = [one, other].map(|text| String::from_utf8(key(&rule, text.as_bytes())).unwrap());
        assert_ne!(one, other);
    }

    #[test]
    fn one_address_has_one_key() {
        for (one, other) in [
            ("HTTP://Example.ORG/", "http://example.org/"),
            ("http://example.org", "http://example.org/"),
            ("http://example.org:80/a", "http://example.org/a"),
            ("https://example.org:443/a", "https://example.org/a"),
            ("ftp://example.org:21/a", "ftp://example.org/a"),
            ("https://example.org:0443/a", "https://example.org/a"),
            ("https://bücher.example/", "https://xn--bcher-kva.example/"),
            ("https://BÜCHER.example/", "https://bücher.example/"),
            ("https://ｅｘａｍｐｌｅ.org/", "https://example.org/"),
            ("https://ex%61mple.org/", "https://example.org/"),
            ("http://a.org/b#c", "http://a.org/b"),
            ("http://a.org/b#", "http://a.org/b"),
            ("http://a.org/#!/page?x=1", "http://a.org/"),
            ("http://a.org/a/./b/../c", "http://a.org/a/c"),
            ("http://a.org/../../a", "http://a.org/a"),
            ("http://a.org/a/%2e%2E/b", "http://a.org/b"),
            ("http://a.org/a/.%2e", "http://a.org/"),
            ("http://a.org/a\\b", "http://a.org/a/b"),
            ("http://a.org/%7Euser", "http://a.org/~user"),
            ("http://a.org/%61%2D%5f", "http://a.org/a-_"),
            ("http://a.org/%3a%c3%a9", "http://a.org/%3A%C3%A9"),
            ("http://a.org/é", "http://a.org/%c3%a9"),
            ("http://a.org/a b", "http://a.org/a%20b"),
            ("http://a.org/?q=%7e", "http://a.org/?q=~"),
            ("http://a.org/?a=1&b=2", "http://a.org/?b=2&a=1"),
            ("http://a.org/?b&a=1&b=2", "http://a.org/?a=1&b&b=2"),
            ("http://a.org/?%62=2&a=1", "http://a.org/?a=1&b=2"),
            ("http://a.org/?", "http://a.org/"),
            ("http://a.org/?#x", "http://a.org/"),
            ("http://a.org?a=1", "http://a.org/?a=1"),
            ("http://a.org/?&&", "http://a.org/"),
            ("http://a.org/?a&&b&", "http://a.org/?a&b"),
            (" http://a.org/b\r", "http://a.org/b"),
            ("\thttp://a.org/b", "http://a.org/b"),
            ("http://user@a.org/", "http://user@A.org/"),
            ("http://[::0001]/", "http://[::1]/"),
            ("http://0x7f.1/", "http://127.0.0.1/"),
            ("SSH://Host/a/../b", "ssh://Host/b"),
        ] {
            same(None, one, other);
            same(Some("utm_*"), one, other);
        }
    }

    #[test]
    fn addresses_that_a_server_may_tell_apart_have_different_keys() {
        for (one, other) in [
            ("http://a.org/", "https://a.org/"),
            ("http://www.a.org/", "http://a.org/"),
            ("http://a.org/b", "http://a.org/b/"),
            ("http://a.org/b", "http://a.org/B"),
            ("http://a.org/b", "http://a.org//b"),
            ("http://a.org/?b", "http://a.org/?B"),
            ("http://a.org/?a=1&a=2", "http://a.org/?a=2&a=1"),
            ("http://a.org/?a", "http://a.org/?a="),
            ("http://a.org/?a=1", "http://a.org/?a=2"),
            ("http://a.org/?a=1&b=2", "http://a.org/?a=1;b=2"),
            ("http://a.org/?a=1%26b=2", "http://a.org/?a=1&b=2"),
            ("http://a.org/?a%3D1", "http://a.org/?a=1"),
            ("http://a.org/?a=b+c", "http://a.org/?a=b%20c"),
            ("http://a.org/a%2Fb", "http://a.org/a/b"),
            ("http://a.org/a%3Fb", "http://a.org/a?b"),
            ("http://a.org/a%23b", "http://a.org/a#b"),
            ("http://a.org/%2541", "http://a.org/A"),
            ("http://a.org/%2541", "http://a.org/%41"),
            ("http://a.org/%%34%31", "http://a.org/%41"),
            ("http://a.org/%4%31", "http://a.org/A"),
            ("http://a.org:81/", "http://a.org/"),
            ("http://a.org:443/", "http://a.org/"),
            ("http://a.org/", "http://a.org./"),
            ("http://a.org/", "http://user@a.org/"),
            ("http://user@a.org/", "http://User@a.org/"),
            ("http://user:a@a.org/", "http://user:b@a.org/"),
            ("http://a.org/1\t2", "http://a.org/12"),
            ("http://a.org/1\n2", "http://a.org/12"),
            ("http://a.org/1\r2", "http://a.org/12"),
            ("http://a.org/1 2", "http://a.org/12"),
            ("http://a.org/#1\t2", "http://a.org/"),
            ("ipfs://QmYwAPJzv5/", "ipfs://qmywapjzv5/"),
            ("ssh://h/a", "ssh://h:22/a"),
        ] {
            different(None, one, other);
            different(Some("utm_*"), one, other);
        }
    }

    #[test]
    fn names_are_stripped_from_the_query() {
        let url = "http://a.org/?id=7&utm_source=x&utm_medium&gclid=1&b=2";
        same(Some("utm_*,gclid"), url, "http://a.org/?b=2&id=7");
        same(Some("utm_source"), url, "http://a.org/?b=2&gclid=1&id=7&utm_medium");
        same(Some("*"), url, "http://a.org/");
        same(Some("*"), "http://a.org/?=1&&x", "http://a.org/");
        same(Some("utm_*"), "http://a.org/?utm_", "http://a.org/");
        same(Some("utm_*"), "http://a.org/?%75tm_a=1", "http://a.org/");
        same(Some("utm_*"), "http://a.org/b?utm_a#c", "http://a.org/b");
        different(Some("utm_*"), "http://a.org/?utm=1", "http://a.org/");
        different(Some("utm_*"), "http://a.org/?UTM_a=1", "http://a.org/");
        different(Some("utm_*"), "http://a.org/?a=utm_b", "http://a.org/?a");
        different(Some("id"), "http://a.org/?ids=1", "http://a.org/");
        different(Some("*"), "http://a.org/a?x", "http://a.org/b?x");
        for list in ["", "a,,b", "a,", "*_id", "**", "a=1", "a&b"] {
            assert!(stripping(list).is_err(), "{list:?}");
        }
    }

    #[test]
    fn what_is_no_url_with_a_host_is_its_own_key() {
        let texts: [&[u8]; 23] = [
            b"",
            b" foo ",
            b"foo/../bar",
            b"/a/./b",
            b"//a.org/./b",
            b"A.org/./b",
            b"mailto:X@A.org",
            b"localhost:80/../a",
            b"HTTP:",
            b"HTTP://",
            b"http:///",
            b"http://A org/",
            b"http://a.org:99999/./",
            b"http://a.org/./\xff",
            b"\xffhttp://A.org/",
            b"HTT%50://a.org/",
            b"file:///a/../b",
            b"file://Server/a/../b",
            b"foo:///a/../b",
            b"data:text/plain,%41",
            b"http://a.org/./1\t2",
            b"http://%%34%31/",
            b"?b=2&a=1",
        ];
        for text in texts {
            let rule = stripping("*").unwrap();
            assert_eq!(rule.rewritten(text), None, "{}", text.escape_ascii());
            assert_eq!(rule.normal(text), None, "{}", text.escape_ascii());
        }
    }

    /// Pieces that meet in all ways: what is special to a parser, and what is not.
    const PIECES: [&str; 60] = [
        "http://",
        "https://",
        "ftp://",
        "foo://",
        "file://",
        "http:",
        "HTTP://",
        "a",
        "b.org",
        "Example.org",
        "xn--",
        "1",
        "127.0.0.1",
        "0x7f",
        "[::1]",
        "-",
        ".",
        "..",
        "/",
        "/",
        "/",
        "//",
        "\\",
        "/./",
        "/../",
        "%2e",
        "%2E%2e",
        "%",
        "%%",
        "%4",
        "%41",
        "%34",
        "%31",
        "%7e",
        "%2f",
        "%3D",
        "%26",
        "%C3%A9",
        "é",
        "ü",
        "?",
        "?",
        "&",
        "&",
        "=",
        "a=1",
        "b=2",
        "utm_x=1",
        "#",
        ":",
        ":80",
        ":443",
        "@",
        " ",
        "\t",
        "'",
        "|",
        "~",
        "+",
        "C|",
    ];

    fn soup(random: &mut Random) -> String {
        let pieces = random.next_u64() % 14;
        let start = ["http://a.org/", "https://b.c/d?", "http://", "foo://a/", "file://h/", ""];
        let mut text = start[random.next_u64() as usize % start.len()].to_owned();
        (0..pieces).for_each(|_| text.push_str(PIECES[random.next_u64() as usize % PIECES.len()]));
        text
    }

    /// Most of them already normal, or nearly.
    fn tidy(random: &mut Random) -> String {
        let mut pick = |choices: &[&str]| choices[random.next_u64() as usize % choices.len()].to_owned();
        let mut text = pick(&["http://", "https://", "https://", "Https://"]);
        text += &pick(&[
            "a.org",
            "www.example.com",
            "x-y.de",
            "a1.b2.c3",
            "1.2",
            "a-.b",
            "-a.b",
            "xn--a.b",
            "a..b",
            "a.0x1",
        ]);
        for _ in 0..pick(&["", "1", "12", "123"]).len() {
            text += &pick(&[
                "/a", "/b_c", "/~d", "/1.html", "/.e", "/", "/f(1)", "/g:h@i", "/%20", "/A", "/it's",
            ]);
        }
        text += &pick(&["/", "", "/x"]);
        let mut before = '?';
        for _ in 0..pick(&["", "", "1", "12", "123"]).len() {
            text.push(before);
            text += &pick(&[
                "a=1", "a=0", "b", "c=/d?e", "c=x=y", "utm_a=1", "", "it's=1", "=", "d=+", "B=2", "z",
            ]);
            before = '&';
        }
        text + &pick(&["", "", "", "#f", " "])
    }

    #[test]
    fn a_normal_form_is_its_own_normal_form() {
        let mut random = Random::new(7);
        let rules = [
            UrlRule::default(),
            stripping("utm_*").unwrap(),
            stripping("a,b").unwrap(),
            stripping("*").unwrap(),
        ];
        let mut urls = 0;
        for round in 0..200_000 {
            let text = if round % 4 == 0 { tidy(&mut random) } else { soup(&mut random) };
            let rule = &rules[round % rules.len()];
            // What is no URL has no normal form, so that nothing else can have its bytes as a key.
            if let Some(normal) = rule.normal(text.as_bytes()) {
                urls += 1;
                let again = rule.normal(&normal).map(|again| String::from_utf8(again).unwrap());
                assert_eq!(again, Some(String::from_utf8(normal).unwrap()), "of {text:?}");
            }
        }
        assert!(urls > 50_000, "{urls} URLs are too few to say anything");
    }

    #[test]
    fn the_short_way_sees_what_the_parser_sees() {
        let mut random = Random::new(8);
        let rules = [
            UrlRule::default(),
            stripping("utm_*").unwrap(),
            stripping("a,b").unwrap(),
            stripping("*").unwrap(),
        ];
        let mut short = 0;
        for round in 0..300_000 {
            let text = if round % 4 == 0 { soup(&mut random) } else { tidy(&mut random) };
            let rule = &rules[round % rules.len()];
            if Plain::of(text.as_bytes()).is_some() {
                short += 1;
                let parsed = rule.normal(text.as_bytes()).map(|normal| String::from_utf8(normal).unwrap());
                let found = String::from_utf8(key(rule, text.as_bytes())).unwrap();
                assert_eq!(parsed, Some(found), "of {text:?}");
            }
        }
        assert!(short > 10_000, "{short} URLs are too few to say anything");
    }

    #[test]
    fn the_short_way_is_taken_for_common_lines() {
        for text in [
            "https://example.org/",
            "http://www.example.co.uk/a/b_c/d-e.html",
            "https://a.org/?a=1&a=0&b=2",
            "https://a.org/?b=2&a=1&utm_source=x",
            "https://a.org/search?q=x+y#results",
        ] {
            assert!(Plain::of(text.as_bytes()).is_some(), "{text}");
        }
    }

    /// Every single byte in every place.
    #[test]
    fn the_short_way_knows_every_byte() {
        let rule = UrlRule::default();
        for byte in 0..=255u8 {
            for place in 0..25 {
                let mut text = b"http://ab.cd/e/f?g=h&i#jk".to_vec();
                text[place] = byte;
                if Plain::of(&text).is_some() {
                    assert_eq!(rule.normal(&text), Some(key(&rule, &text)), "{}", text.escape_ascii());
                }
            }
        }
    }
}
