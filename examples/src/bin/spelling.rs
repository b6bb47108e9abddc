//! A spelling dictionary: `cargo run -p mayhap-examples --bin spelling [WORDS]`
//!
//! What the filter denies is certainly not in the dictionary and is underlined. No word of the dictionary is ever
//! underlined; of the slips, about one in a hundred is not noticed, besides those that happen to be another word. A
//! writer's own words are inserted as they come.

use std::collections::HashSet;
use std::error::Error;

use mayhap::Bloom;
use mayhap_eval::Random;
use mayhap_examples::{agrees, keys_or};

const FPR: f64 = 0.01;
const TEXT: u64 = 500_000;
/// Of so many words, one is written wrong.
const SLIP: u64 = 20;

/// Two to five syllables.
fn word(random: &mut Random) -> String {
    let mut letter = |letters: &str| letters.as_bytes()[random.below(letters.len() as u64) as usize] as char;
    let syllables = 2 + letter("0123") as usize % 4;
    (0..syllables).flat_map(|_| [letter("bcdfghklmnprstvw"), letter("aeiou")]).collect()
}

/// One letter is another one.
fn slip(word: &str, random: &mut Random) -> String {
    let mut letters = word.as_bytes().to_vec();
    let place = random.below(letters.len() as u64) as usize;
    letters[place] = b'a' + (letters[place] - b'a' + 1 + random.below(25) as u8) % 26;
    letters.into_iter().map(char::from).collect()
}

fn main() -> Result<(), Box<dyn Error>> {
    let size = keys_or(200_000)?;
    let mut random = Random::new(6);
    let (mut words, mut exact) = (Vec::new(), HashSet::new());
    while (words.len() as u64) < size {
        let word = word(&mut random);
        if exact.insert(word.clone()) {
            words.push(word);
        }
    }
    let mut dictionary = Bloom::new(size, FPR)?;
    dictionary.insert_all(&words);
    let text: usize = words.iter().map(|word| word.len() + 1).sum();
    println!("words: {size}");
    println!("bytes of the dictionary as text: {text}");
    println!("bytes of the filter: {}", dictionary.to_bytes().len());

    let (mut right, mut underlined_right, mut other_words, mut wrong, mut unnoticed) = (0, 0, 0, 0, 0);
    for _ in 0..TEXT {
        let meant = &words[random.below(size) as usize];
        let written = if random.below(SLIP) == 0 { slip(meant, &mut random) } else { meant.clone() };
        let underlined = !dictionary.contains(&written);
        if exact.contains(&written) {
            right += 1;
            underlined_right += u64::from(underlined);
            other_words += u64::from(written != *meant);
        } else {
            wrong += 1;
            unnoticed += u64::from(!underlined);
        }
    }
    println!("words written: {TEXT}");
    println!("  in the dictionary: {right}");
    println!("  in the dictionary and underlined: {underlined_right}");
    println!("  slips that are another word: {other_words}");
    println!("  other slips: {wrong}");
    println!("  other slips unnoticed: {unnoticed}, expected {:.0}", dictionary.fpr() * wrong as f64);
    assert_eq!(underlined_right, 0, "a word of the dictionary is underlined");
    assert!(agrees(unnoticed, wrong, dictionary.fpr()));

    let own = "mayhap";
    let before = dictionary.contains(own);
    dictionary.insert(own);
    println!("{own} is underlined: {}", !before);
    println!("{own} is underlined after it was inserted: {}", !dictionary.contains(own));
    assert!(dictionary.contains(own));
    Ok(())
}
