//! The file remembers how its keys are spelled: what the command line says against what the file says.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::{Result, anyhow, bail};
use mayhap::key_rules::{Cut, JsonKeys, KeyKind, KeyRules, Spelling};
use mayhap::{AnyFilter, with_key_rules};

use crate::args::{Common, KeyArgs};
use crate::keys::{Kind, pointer};
use crate::url_key::{self, UrlRule};

impl Kind {
    fn stored(self) -> KeyKind {
        match self {
            Self::Bytes => KeyKind::Bytes,
            Self::Hex => KeyKind::Hex,
            Self::U64 => KeyKind::U64,
            Self::I64 => KeyKind::I64,
            Self::I32 => KeyKind::I32,
            Self::Utf16 => KeyKind::Utf16,
        }
    }

    fn of_stored(kind: KeyKind) -> Self {
        match kind {
            KeyKind::Bytes => Self::Bytes,
            KeyKind::Hex => Self::Hex,
            KeyKind::U64 => Self::U64,
            KeyKind::I64 => Self::I64,
            KeyKind::I32 => Self::I32,
            KeyKind::Utf16 => Self::Utf16,
        }
    }
}

impl KeyArgs {
    /// The rules of a new file with these keys, after all of them were read.
    pub(crate) fn rules(&self) -> KeyRules {
        let is_typed = self.json_key.is_some() && self.tells_json_types() && self.kind() == Kind::Bytes;
        let json = match (is_typed, self.others.load(Ordering::Relaxed)) {
            (false, _) => JsonKeys::None,
            (true, false) => JsonKeys::Strings,
            (true, true) => JsonKeys::Mixed,
        };
        let spelling = Spelling {
            crlf: self.crlf,
            trim: self.trim,
            ignore_case: self.ignore_case,
            kind: self.kind().stored(),
            url: self.url_rule().map(|rule| rule.list),
            json,
        };
        KeyRules { spelling, cut: self.cut(), ..KeyRules::default() }
    }

    /// Which part of a record is the key.
    fn cut(&self) -> Cut {
        Cut {
            delimiter: self.field.map(|_| self.between().into()),
            field: self.field.map(|number| u32::try_from(number).unwrap_or(u32::MAX)),
            header: false,
            pointer: self.json_key.as_deref().map(pointer),
        }
    }

    /// A filter with the rules of its keys, all of which were read by these arguments.
    pub(crate) fn describe(&self, filter: Box<dyn AnyFilter>) -> Box<dyn AnyFilter> {
        with_key_rules(filter, Some(self.rules()))
    }

    /// The same arguments for keys of a file: they are spelled as the file says. A file that says nothing takes them as they
    /// are, and values of JSON by their text.
    pub(crate) fn for_file(&self, path: &Path, filter: &dyn AnyFilter) -> Result<Self> {
        let mut keys = self.clone();
        let Some(KeyRules { spelling, .. }) = filter.key_rules() else {
            keys.json_as_text = true;
            return Ok(keys);
        };
        let contradicting = self.contradicting(spelling);
        if !contradicting.is_empty() {
            let (options, verb) =
                (contradicting.join(" and "), if contradicting.len() > 1 { "say" } else { "says" });
            bail!(
                "{}: its keys are spelled {}, and {options} {verb} otherwise; leave {} out, or build the filter so",
                path.display(),
                as_options(spelling),
                if contradicting.len() > 1 { "them" } else { "it" },
            );
        }
        if spelling.json == JsonKeys::Mixed && self.json_key.is_none() {
            bail!(
                "{}: its keys are JSON values, not all of them strings, and plain text is none of them; name the field \
                 with --json-key, or build the filter with --json-raw",
                path.display(),
            );
        }
        keys.strip_query = match spelling.url.as_deref() {
            None => None,
            Some("") => Some(UrlRule::default()),
            Some(names) => Some(
                url_key::stripping(names).map_err(|e| anyhow!("{}: --strip-query: {e}", path.display()))?,
            ),
        };
        keys.crlf = spelling.crlf;
        keys.trim = spelling.trim;
        keys.ignore_case = spelling.ignore_case;
        keys.kind = Some(Kind::of_stored(spelling.kind));
        keys.json_as_text = spelling.json == JsonKeys::None;
        keys.others = Arc::default();
        Ok(keys)
    }

    /// The given options that spell keys in another way than a file does.
    fn contradicting(&self, spelling: &Spelling) -> Vec<String> {
        let mut found = Vec::new();
        for (option, is_given, is_stored) in [
            ("--crlf", self.crlf, spelling.crlf),
            ("--trim", self.trim, spelling.trim),
            ("--ignore-case", self.ignore_case, spelling.ignore_case),
            ("--json-raw", self.json_raw, spelling.json == JsonKeys::None),
        ] {
            if is_given && !is_stored {
                found.push(option.to_string());
            }
        }
        if let Some(kind) = self.kind.map(Kind::stored).filter(|&kind| kind != spelling.kind) {
            found.push(format!("--as {}", kind.name()));
        }
        match self.url_rule() {
            Some(rule) if spelling.url.as_ref() != Some(&rule.list) => found.push(match &*rule.list {
                "" => "--url".into(),
                list => format!("--strip-query {list}"),
            }),
            _ => {}
        }
        found
    }

    /// Whether keys that were cut out of records in this way are cut in another way now: what, and what it was.
    pub(crate) fn other_cut(&self, stored: &Cut) -> Option<(String, String)> {
        let ours = self.cut();
        let is_same = (&ours.delimiter, ours.field, &ours.pointer)
            == (&stored.delimiter, stored.field, &stored.pointer);
        (!is_same).then(|| (described(&ours), described(stored)))
    }

    /// The rules of a file to which keys were added by these arguments, which were made for it.
    pub(crate) fn rules_after(&self, rules: &KeyRules) -> KeyRules {
        let mut rules = rules.clone();
        if rules.spelling.json == JsonKeys::Strings && self.others.load(Ordering::Relaxed) {
            rules.spelling.json = JsonKeys::Mixed;
        }
        rules
    }
}

/// Which part of a record a key is, in words.
pub(crate) fn described(cut: &Cut) -> String {
    match (&cut.pointer, cut.field) {
        (Some(pointer), _) => format!("the JSON field {pointer:?}"),
        (None, Some(number)) => {
            let between = cut.delimiter.as_deref().unwrap_or(b"\t");
            format!("field {number} between {:?}", String::from_utf8_lossy(between))
        }
        (None, None) => "the whole record".into(),
    }
}

/// How keys are spelled, as the options that say so.
pub(crate) fn as_options(spelling: &Spelling) -> String {
    let mut options: Vec<Cow<'_, str>> = Vec::new();
    let mut add = |is_set: bool, option: &'static str| options.extend(is_set.then_some(option.into()));
    add(spelling.crlf, "--crlf");
    add(spelling.trim, "--trim");
    add(spelling.ignore_case, "--ignore-case");
    if spelling.kind != KeyKind::Bytes {
        options.push(format!("--as {}", spelling.kind.name()).into());
    }
    match spelling.url.as_deref() {
        None => {}
        Some("") => options.push("--url".into()),
        Some(names) => options.push(format!("--strip-query {names}").into()),
    }
    match spelling.json {
        JsonKeys::None => {}
        JsonKeys::Strings => options.push("JSON strings".into()),
        JsonKeys::Mixed => options.push("JSON values".into()),
    }
    if options.is_empty() { "as they stand".into() } else { options.join(" ") }
}

/// Says what a format has no place for.
pub(crate) fn warn_of_loss(common: &Common, output: &Path, format: &str, filter: &dyn AnyFilter) {
    let Some(rules) = filter.key_rules().filter(|rules| !rules.spelling.is_plain()) else { return };
    common.say(format_args!(
        "warning: {}: a file of the format {format} does not say how its keys are spelled: {}; keys that are looked up in it \
         have to be spelled so",
        output.display(),
        as_options(&rules.spelling),
    ));
}

/// Refuses filters whose keys are spelled differently, and names both.
pub(crate) fn must_be_alike(one: (&Path, &dyn AnyFilter), other: (&Path, &dyn AnyFilter)) -> Result<()> {
    let spelling =
        |filter: &dyn AnyFilter| filter.key_rules().map(|rules| rules.spelling.clone()).unwrap_or_default();
    let (ours, theirs) = (spelling(one.1), spelling(other.1));
    if ours.joined(&theirs).is_none() {
        bail!(
            "{} and {}: their keys are spelled differently: {}, and {}",
            one.0.display(),
            other.0.display(),
            as_options(&ours),
            as_options(&theirs),
        );
    }
    Ok(())
}
