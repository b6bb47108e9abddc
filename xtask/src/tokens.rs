//! Rust source as the house rules read it: without comments and literals, word by word.

/// Words, line breaks, and all other characters but white space one by one.
pub(crate) fn tokens(code: &str) -> impl Iterator<Item = &str> {
    let mut rest = code;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() && c != '\n');
        let first = rest.chars().next()?;
        let end =
            if is_word(first) { rest.find(|c| !is_word(c)).unwrap_or(rest.len()) } else { first.len_utf8() };
        let (token, after) = rest.split_at(end);
        rest = after;
        Some(token)
    })
}

pub(crate) fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

/// `source` without comments, strings, characters and raw identifiers: a space stands for each.
/// Line breaks stay, so that lines keep their numbers.
pub(crate) fn code_only(source: &str) -> String {
    let mut code = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let (length, is_code) = if let Some(length) = not_code(rest) {
            (length, false)
        } else if is_word(first) {
            // The whole word: the `r` of `for` begins no raw string.
            (rest.find(|c| !is_word(c)).unwrap_or(rest.len()), true)
        } else {
            (first.len_utf8(), true)
        };
        let (piece, after) = rest.split_at(length);
        if is_code {
            code.push_str(piece);
        } else {
            code.push(' ');
            code.extend(piece.chars().filter(|&c| c == '\n'));
        }
        rest = after;
    }
    code
}

/// The length of the comment, literal or raw identifier at the start of `text`, if one is there.
fn not_code(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if text.starts_with("/*") {
        return Some(block_comment(text));
    }
    if text.starts_with('"') {
        return Some(closed_by(text, '"'));
    }
    if text.starts_with('\'') {
        return character(text);
    }
    // `b"…"`, `c"…"` and `b'…'` need no rule: the letter is a word of its own, then comes the literal.
    let raw = ["r", "br", "cr"].into_iter().find_map(|prefix| text.strip_prefix(prefix))?;
    let prefix = text.len() - raw.len();
    let hashes = raw.len() - raw.trim_start_matches('#').len();
    let body = &raw[hashes..];
    if let Some(body) = body.strip_prefix('"') {
        let end = format!("\"{}", "#".repeat(hashes));
        let inside = body.find(&end).map_or(body.len(), |at| at + end.len());
        return Some(prefix + hashes + 1 + inside);
    }
    // `r#unsafe` is a name.
    let is_name = hashes == 1 && body.starts_with(is_word);
    is_name.then(|| prefix + 1 + body.find(|c| !is_word(c)).unwrap_or(body.len()))
}

/// The length of the block comment at the start of `text`; they nest.
fn block_comment(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while let Some(next) = text[at..].find(['/', '*']).map(|found| at + found) {
        let pair = text.as_bytes().get(next..next + 2);
        match pair {
            Some(b"/*") => depth += 1,
            Some(b"*/") => depth -= 1,
            _ => {
                at = next + 1;
                continue;
            }
        }
        at = next + 2;
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

/// The length of the literal that starts with `quote` and ends with the next one not after a backslash.
fn closed_by(text: &str, quote: char) -> usize {
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        if c == '\\' {
            chars.next();
        } else if c == quote {
            return at + c.len_utf8();
        }
    }
    text.len()
}

/// The length of the character literal at the start of `text`; `None` for a lifetime such as `'a`.
fn character(text: &str) -> Option<usize> {
    let mut chars = text.char_indices().skip(1);
    let (_, first) = chars.next()?;
    if first == '\\' {
        return Some(closed_by(text, '\''));
    }
    // One character, then the closing quote. A lifetime has no closing quote there.
    chars.next().filter(|&(_, c)| c == '\'').map(|(at, _)| at + 1)
}
