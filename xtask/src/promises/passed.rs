//! Which tests have passed, by what the test runner has printed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Tests by the name of their function alone, with all that are called so and what became of each.
#[derive(Debug, Default)]
pub(super) struct Passed(BTreeMap<String, Vec<(String, String)>>);

impl Passed {
    /// Reads the output of a run.
    ///
    /// # Errors
    ///
    /// There was no run.
    pub(super) fn read(log: &Path) -> Result<Self, String> {
        let text = fs::read_to_string(log).map_err(|error| {
            format!("no run of the tests is known ({}: {error}); run `cargo xtask promises`", log.display())
        })?;
        Ok(Self::of(&text))
    }

    fn of(text: &str) -> Self {
        let mut tests = BTreeMap::new();
        for line in text.lines() {
            let Some((path, outcome)) = line.strip_prefix("test ").and_then(|line| line.split_once(" ... "))
            else {
                continue;
            };
            let path = path.split(" - ").next().unwrap_or(path);
            let name = path.rsplit("::").next().unwrap_or(path);
            let all: &mut Vec<_> = tests.entry(name.to_owned()).or_default();
            all.push((path.to_owned(), outcome.to_owned()));
        }
        Self(tests)
    }

    /// Whether the tests of this name have passed, all of them.
    ///
    /// # Errors
    ///
    /// None is called so, or one has not passed.
    pub(super) fn named(&self, name: &str) -> Result<String, String> {
        let Some(tests) = self.0.get(name) else {
            return Err(format!("no test called {name} was in the run"));
        };
        match tests.iter().find(|(_, outcome)| outcome != "ok") {
            None => Ok("passed".into()),
            Some((path, outcome)) => Err(format!("the test {path} was not passed: {outcome}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_ran_and_passed_counts() {
        let run = "running 4 tests\ntest it::one ... ok\ntest a::two ... ok\ntest b::two ... FAILED\n\
                   test slow ... ignored, takes an hour\ntest result: ok. 1 passed\n";
        let passed = Passed::of(run);
        assert!(passed.named("one").is_ok());
        assert!(passed.named("two").unwrap_err().contains("b::two"));
        assert!(passed.named("slow").unwrap_err().contains("ignored"));
        assert!(passed.named("three").is_err());
    }
}
