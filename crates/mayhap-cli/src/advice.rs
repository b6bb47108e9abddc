//! The flags and commands that help against an error of the library, whose own text names none.

use std::error::Error;
use std::fmt::Write;

use mayhap::interop::ConvertError;
use mayhap::{AdviseError, BuildError, DecodeError, Full, Knob, Limit, Mismatch, Parameter, SpecError};
use mayhap_store::StoreError;

/// An error with its causes on one line, and behind each the flags that do what it advises.
pub(crate) fn chain(error: &anyhow::Error) -> String {
    let causes: Vec<String> = error.chain().map(shown).collect();
    causes.join(": ")
}

/// The same for an error without a cause.
pub(crate) fn shown(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    // Writing to a string does not fail.
    let _ = add_flags(&mut text, error);
    text
}

/// What an error advises, in flags. A type that repeats the text of another is looked into.
fn add_flags(text: &mut String, error: &(dyn Error + 'static)) -> std::fmt::Result {
    if let Some(error) = error.downcast_ref() {
        match error {
            mayhap::Error::Spec(error) => add_flags(text, error),
            mayhap::Error::Decode(error) => add_flags(text, error),
            mayhap::Error::Mismatch(error) => add_flags(text, error),
            mayhap::Error::Full(error) => add_flags(text, error),
            mayhap::Error::Build(error) => add_flags(text, error),
            mayhap::Error::Advise(error) => add_flags(text, error),
            _ => Ok(()),
        }
    } else if let Some(StoreError::Decode { source, .. }) = error.downcast_ref() {
        add_flags(text, source)
    } else if let Some(BuildError::Spec(error)) = error.downcast_ref() {
        add_flags(text, error)
    } else if let Some(AdviseError::Spec(error)) = error.downcast_ref() {
        add_flags(text, error)
    } else if let Some(SpecError::NotFor { knob, others: [_, ..], .. }) = error.downcast_ref() {
        flag_of(*knob).map_or(Ok(()), |flag| write!(text, "; leave {flag} out or choose another --family"))
    } else if let Some(
        SpecError::NotFor { knob, .. } | SpecError::Range { knob, .. } | SpecError::Step { knob, .. },
    ) = error.downcast_ref()
    {
        flag_of(*knob).map_or(Ok(()), |flag| write!(text, " ({flag})"))
    } else if let Some(Mismatch::Differ { what, .. }) = error.downcast_ref() {
        text.push_str(to_agree(*what));
        Ok(())
    } else if let Some(Full { limit, .. }) = error.downcast_ref() {
        text.push_str(match limit {
            Limit::Damaged => "; mayhap info --verify says more",
            Limit::Copies { .. } | Limit::Repeats { .. } => " (mayhap dedup drops repeats)",
            _ => "",
        });
        Ok(())
    } else if let Some(DecodeError::HashRule { known }) = error.downcast_ref() {
        write!(text, " (--hash {known})")
    } else if let Some(ConvertError::OtherRule { format, makes: true, .. }) = error.downcast_ref() {
        write!(text, ", with --to {format}")
    } else {
        Ok(())
    }
}

/// The flag that sets a knob.
fn flag_of(knob: Knob) -> Option<&'static str> {
    Some(match knob {
        Knob::Capacity => "-n",
        Knob::Fpr => "-p",
        Knob::Bits => "--bits",
        Knob::Probes => "--probes",
        Knob::Layout => "--layout",
        Knob::Foldable => "--foldable",
        Knob::CounterBits => "--counter-bits",
        Knob::CountingRule => "--counting-rule",
        Knob::Areas => "--label",
        Knob::Growth => "--growth",
        Knob::Tightening => "--tightening",
        Knob::MaxCount => "--max-count",
        Knob::Doublings => "--doublings",
        Knob::Others => "--universe",
        Knob::Seed => "--seed",
        _ => return None,
    })
}

/// The flags that must be the same for two filters to agree in a parameter.
fn to_agree(what: Parameter) -> &'static str {
    match what {
        Parameter::Seed => " (--seed)",
        Parameter::Secret => " (--key-file)",
        Parameter::Layout => " (--layout)",
        Parameter::CounterBits => " (--counter-bits)",
        Parameter::CountingRule => " (--counting-rule)",
        Parameter::Buckets | Parameter::Slots => " (-n)",
        Parameter::Bits
        | Parameter::Bytes
        | Parameter::Probes
        | Parameter::FingerprintBits
        | Parameter::DistinctKeys => " (-n and -p)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_stand_behind_the_error_that_they_belong_to() {
        let full = Full { limit: Limit::Copies { most: 8 }, inserted: 0 };
        let error = anyhow::Error::from(mayhap::Error::from(Mismatch::Full(full))).context("one and two");
        let text = chain(&error);
        assert!(
            text.starts_with("one and two: the keys of both do not fit: the key is in 8 times"),
            "{text}"
        );
        assert!(text.ends_with("or use a family that counts (mayhap dedup drops repeats)"), "{text}");
        assert_eq!(text.matches("do not fit: ").count(), 1, "{text}");
        let decode = DecodeError::HashRule { known: "sha256" };
        let path = "f".into();
        let text = chain(&StoreError::Decode { path, source: decode }.into());
        assert!(text.starts_with("f: ") && text.ends_with(" (--hash sha256)"), "{text}");
    }
}
