//! What is said of a name that does not exist.

/// Names less alike than this have nothing to do with one another.
const ALIKE: f64 = 0.8;

/// The error for a name that is none of these, with the one that is most like it.
pub(crate) fn unknown(what: &str, given: &str, names: &[&str]) -> String {
    let suggestion =
        nearest(given, names).map(|name| format!("did you mean {name:?}? There")).unwrap_or("there".into());
    format!("no {what} is called {given:?}; {suggestion} are {}", names.join(", "))
}

fn nearest<'a>(given: &str, names: &[&'a str]) -> Option<&'a str> {
    let given = given.to_lowercase();
    let likeness = |name: &str| strsim::jaro_winkler(&given, &name.to_lowercase());
    let names = names.iter().map(|&name| (likeness(name), name)).filter(|(alike, _)| *alike > ALIKE);
    names.max_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested() {
        let names = ["bloom", "blocked", "cuckoo", "windowed"];
        for (given, meant) in
            [("blom", "bloom"), ("CUCKOO", "cuckoo"), ("cukoo", "cuckoo"), ("window", "windowed")]
        {
            let error = unknown("family", given, &names);
            let expected = format!(
                "no family is called {given:?}; did you mean {meant:?}? There are bloom, blocked, cuckoo, windowed"
            );
            assert_eq!(error, expected);
        }
        for given in ["xyz", "nothing", ""] {
            let expected =
                format!("no family is called {given:?}; there are bloom, blocked, cuckoo, windowed");
            assert_eq!(unknown("family", given, &names), expected);
        }
    }
}
