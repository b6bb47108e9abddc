//! What a text is expected to contain.

/// The texts that a command must print, in this order, and its exit status.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Expected {
    pub(super) texts: Vec<String>,
    pub(super) status: i32,
    /// The command prints nothing at all.
    pub(super) nothing: bool,
}

impl Expected {
    /// Reads a cell such as `` exit 1 `9,585,059` `{0.009..0.011}` ``.
    ///
    /// # Errors
    ///
    /// Nothing is expected, so that every output would do.
    pub(super) fn of(cell: &str) -> Result<Self, String> {
        let (texts, words) = super::table::quoted(cell);
        let mut status = 0;
        let mut nothing = false;
        let mut words = words.split([' ', ',', ';']).filter(|word| !word.is_empty());
        while let Some(word) = words.next() {
            match word {
                "exit" => {
                    let number = words.next().and_then(|number| number.parse().ok());
                    status = number.ok_or("`exit` is followed by a status")?;
                }
                "nothing" => nothing = true,
                _ => {}
            }
        }
        // A status of its own says something, 0 is what every command ends with.
        if nothing && !texts.is_empty()
            || !nothing && status == 0 && texts.is_empty()
            || texts.iter().any(|text| text.trim_matches(['…', ' ']).is_empty())
        {
            return Err(format!("{cell:?} does not say what the command must print"));
        }
        Ok(Self { texts, status, nothing })
    }

    /// Compares. Returns what was found of the expected texts.
    ///
    /// # Errors
    ///
    /// The first text that is missing.
    pub(super) fn compare(&self, status: Option<i32>, output: &str) -> Result<String, String> {
        if status != Some(self.status) {
            return Err(format!("exit status {status:?} and not {}\n{output}", self.status));
        }
        if self.nothing && !output.is_empty() {
            return Err(format!("it should print nothing, and printed\n{output}"));
        }
        let (mut rest, mut found) = (output, Vec::new());
        for text in &self.texts {
            let Some((start, end)) = find(rest, text) else {
                return Err(format!("expected {text:?} in\n{output}"));
            };
            found.push(rest[start..end].trim().to_owned());
            rest = &rest[end..];
        }
        Ok(if self.nothing { "nothing".into() } else { found.join(", ") })
    }
}

/// The first place of `text` where the pattern matches: `…` is any text within a line, `{a..b}` a number in that range.
pub(super) fn find(text: &str, pattern: &str) -> Option<(usize, usize)> {
    let starts = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    starts.into_iter().find_map(|start| matched(&text[start..], pattern).map(|end| (start, start + end)))
}

/// The end of the match of the whole pattern at the start of the text.
pub(super) fn matched(text: &str, pattern: &str) -> Option<usize> {
    if pattern.is_empty() {
        return Some(0);
    }
    if let Some(rest) = pattern.strip_prefix('…') {
        let line = text.find('\n').unwrap_or(text.len());
        let ends = text[..line].char_indices().map(|(at, _)| at).chain([line]);
        return ends.into_iter().find_map(|end| matched(&text[end..], rest).map(|more| end + more));
    }
    if let Some((low, high, rest)) = range(pattern) {
        let length = number_at(text)?;
        let number: f64 = text[..length].replace(',', "").parse().ok()?;
        let more = matched(&text[length..], rest)?;
        return (low <= number && number <= high).then_some(length + more);
    }
    let (wanted, there) = (pattern.chars().next()?, text.chars().next()?);
    if wanted != there {
        return None;
    }
    let length = wanted.len_utf8();
    matched(&text[length..], &pattern[length..]).map(|more| length + more)
}

/// `{low..high}` at the start of a pattern, and the rest.
fn range(pattern: &str) -> Option<(f64, f64, &str)> {
    let (inside, rest) = pattern.strip_prefix('{')?.split_once('}')?;
    let (low, high) = inside.split_once("..")?;
    Some((low.parse().ok()?, high.parse().ok()?, rest))
}

/// The length of the number at the start of a text.
fn number_at(text: &str) -> Option<usize> {
    let part = |c: char| c.is_ascii_digit() || ".,".contains(c);
    let mut end = text.find(|c| !part(c)).unwrap_or(text.len());
    if end == 0 {
        return None;
    }
    if let Some(exponent) = text[end..].strip_prefix('e') {
        let signed = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        let digits = signed.find(|c: char| !c.is_ascii_digit()).unwrap_or(signed.len());
        if digits > 0 {
            end = text.len() - signed.len() + digits;
        }
    }
    Some(text[..end].trim_end_matches(['.', ',']).len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(cell: &str, status: i32, output: &str) -> bool {
        Expected::of(cell).unwrap().compare(Some(status), output).is_ok()
    }

    #[test]
    fn texts_are_found_in_order() {
        assert!(holds("`a` `b`", 0, "xa\nb"));
        assert!(!holds("`b` `a`", 0, "xa\nb"));
        assert!(!holds("`a` `a`", 0, "a"));
    }

    #[test]
    fn a_false_promise_is_broken() {
        assert!(!holds("`9,585,058`", 0, "9,585,059 bits"));
        assert!(!holds("`rate {0.009..0.011}`", 0, "rate 0.0111"));
        assert!(!holds("`1`", 1, "1"));
        assert!(!holds("exit 1 `1`", 0, "1"));
        assert!(!holds("nothing", 0, "1"));
    }

    #[test]
    fn numbers_and_gaps() {
        assert!(holds("`rate {0.009..0.011}%`", 0, "the rate 0.0101% now"));
        assert!(holds("`{9000000..9600000} bits`", 0, "9,585,059 bits"));
        assert!(holds("`{1e-10..1e-8}`", 0, "4.9e-9."));
        assert!(holds("`a … z`", 0, "a b z"));
        assert!(!holds("`a … z`", 0, "a\nz"));
        assert!(holds("exit 1 nothing", 1, ""));
    }

    #[test]
    fn a_promise_that_cannot_fail_is_an_error() {
        for cell in ["", "passes", "``", "`…`", "nothing `x`", "exit", "exit x `a`"] {
            assert!(Expected::of(cell).is_err(), "{cell}");
        }
    }
}
