//! Which compression a file has, by its first bytes.

use std::fs::File;
use std::io::{self, Read};

/// What compressed files start with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    Gzip,
    Zstd,
    Xz,
    Bzip2,
}

/// The first bytes, with `None` for a digit from 1 to 9. bzip2's "BZh9" alone is also text, so
/// the start of its first block is looked at too, or of its end if it is empty.
const SIGNATURES: &[(Compression, &[Option<u8>])] = &[
    (Compression::Gzip, &[Some(0x1f), Some(0x8b), Some(8)]),
    (Compression::Zstd, &[Some(0x28), Some(0xb5), Some(0x2f), Some(0xfd)]),
    (Compression::Xz, &[Some(0xfd), Some(b'7'), Some(b'z'), Some(b'X'), Some(b'Z'), Some(0)]),
    (
        Compression::Bzip2,
        &[
            Some(b'B'),
            Some(b'Z'),
            Some(b'h'),
            None,
            Some(0x31),
            Some(0x41),
            Some(0x59),
            Some(0x26),
            Some(0x53),
            Some(0x59),
        ],
    ),
    (
        Compression::Bzip2,
        &[
            Some(b'B'),
            Some(b'Z'),
            Some(b'h'),
            None,
            Some(0x17),
            Some(0x72),
            Some(0x45),
            Some(0x38),
            Some(0x50),
            Some(0x90),
        ],
    ),
];

impl Compression {
    pub(crate) fn of(start: &[u8]) -> Option<Self> {
        let fits = |signature: &[Option<u8>]| start.len() >= signature.len() && agrees(start, signature);
        SIGNATURES.iter().find(|(_, signature)| fits(signature)).map(|(format, _)| *format)
    }
}

fn agrees(start: &[u8], signature: &[Option<u8>]) -> bool {
    let fits = |byte: u8, wanted: Option<u8>| match wanted {
        Some(wanted) => byte == wanted,
        None => (b'1'..=b'9').contains(&byte),
    };
    start.iter().zip(signature).all(|(&byte, &wanted)| fits(byte, wanted))
}

/// Reads as many bytes as it takes to recognise a signature, and not one more than that: a pipe may
/// have brought two bytes and keep us waiting for the third. No signature has a newline in it, so that
/// nothing is read beyond the first line of a text.
pub(crate) fn peek(file: &mut File) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    loop {
        let undecided = SIGNATURES
            .iter()
            .any(|(_, signature)| start.len() < signature.len() && agrees(&start, signature));
        if !undecided || file.by_ref().take(1).read_to_end(&mut start)? == 0 {
            return Ok(start);
        }
    }
}
