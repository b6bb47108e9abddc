//! A list of spam senders as one small file: `cargo run -p mayhap-examples --bin spam_senders [SENDERS]`
//!
//! The list is known when it is shipped and stays as it is until the next one: `fuse` and `ribbon` are made for that.
//! Whoever gets the file maps it and asks for the sender of each mail. No sender on the list gets through; of the
//! others, one in 256 is taken for one and needs a second look.

use std::error::Error;

use mayhap::{AnyFilter, Fuse, Ribbon};
use mayhap_eval::{ABSENT, SplitMix64};
use mayhap_examples::{agrees, keys_or};
use mayhap_store::{Access, open, write};

const FPR: f64 = 1.0 / 256.0;
/// Every fourth of them is spam.
const MAILS: u64 = 400_000;

fn address(index: u64) -> String {
    let id = SplitMix64::at(2, index);
    format!("{:09x}@{:07x}.example", id >> 28, id & 0xfff_ffff)
}

fn main() -> Result<(), Box<dyn Error>> {
    let senders = keys_or(2_000_000)?;
    let list: Vec<String> = (0..senders).map(address).collect();
    let text: usize = list.iter().map(|address| address.len() + 1).sum();
    println!("senders: {senders}");
    println!("bytes of the list as text: {text}");

    let filters: [Box<dyn AnyFilter>; 2] =
        [Box::new(Fuse::build(&list, FPR)?), Box::new(Ribbon::build(&list, FPR)?)];
    let folder = tempfile::tempdir()?;
    for filter in filters {
        let family = filter.family().name;
        let path = folder.path().join(family);
        write(&path, &*filter)?;
        let bytes = std::fs::metadata(&path)?.len();
        println!("{family}");
        println!("  bytes of the file: {bytes}");
        println!("  bits per sender: {:.2}", bytes as f64 * 8.0 / senders as f64);

        let filter = open(&path, Access::Map, None)?.filter;
        let (mut spam, mut stopped, mut held) = (0, 0, 0);
        for mail in 0..MAILS {
            let is_spam = mail % 4 == 0;
            let sender = if is_spam { SplitMix64::at(3, mail) % senders } else { ABSENT + mail };
            let is_perhaps_spam = filter.contains(address(sender).as_bytes());
            spam += u64::from(is_spam);
            stopped += u64::from(is_spam && is_perhaps_spam);
            held += u64::from(!is_spam && is_perhaps_spam);
        }
        let honest = MAILS - spam;
        let expected = filter.report().fpr_now;
        println!("  spam: {spam}");
        println!("  spam stopped: {stopped}");
        println!("  honest mails: {honest}");
        println!("  honest mails held: {held}, expected {:.0}", expected * honest as f64);
        assert_eq!(stopped, spam, "a sender on the list gets through");
        assert!(agrees(held, honest, expected));
        assert!(bytes * 10 < text as u64, "the file is not small");
    }
    Ok(())
}
