//! One small program per use of a filter, in `src/bin`. Here is what all of them need: how many keys, and whether a count
//! of errors is as it should be.

use mayhap_eval::Proportion;

/// With fewer keys there would be hardly an error to show.
const LEAST: u64 = 1000;

/// The number of keys that the program was given as its argument, or the usual one.
///
/// # Errors
/// Says what was given and what can be.
pub fn keys_or(usual: u64) -> Result<u64, String> {
    let Some(given) = std::env::args().nth(1) else { return Ok(usual) };
    let refused = || {
        format!(
            "{given} was given, but a number of keys from {LEAST} on is expected; without one it is {usual}"
        )
    };
    given.parse().ok().filter(|&keys| keys >= LEAST).ok_or_else(refused)
}

/// Whether so many errors among so many questions are what a rate lets expect.
///
/// The rate of a single filter is itself up to 2% from the expected one, since its bits fell as they did. A right filter
/// fails at five deviations once in a million.
pub fn agrees(errors: u64, questions: u64, rate: f64) -> bool {
    Proportion { hits: errors, trials: questions }.agrees_with(rate, 0.02, 5.0)
}
