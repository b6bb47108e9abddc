//! Filters of other programs, both ways: Guava, Go, DCSO, Spark.

mod foreign;

use foreign::{Golden, insert_all, is_hardened, make, read, through_our_container, write};
use mayhap::interop::guava::{self, Strategy};
use mayhap::interop::{Making, Reading, recognise};

fn utf16(key: Vec<u8>) -> Vec<u8> {
    let text = String::from_utf8(key).expect("UTF-8");
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// Key bytes by what the funnel makes of them.
fn funnel(golden: &Golden) -> fn(Vec<u8>) -> Vec<u8> {
    match golden.text("funnel") {
        "Funnels.unencodedCharsFunnel()" | "Funnels.stringFunnel(UTF-16LE)" => utf16,
        _ => |key| key,
    }
}

#[test]
fn guava_files_are_read_asked_rebuilt_and_written_as_guava_does() {
    for name in Golden::names("guava", 20) {
        let golden = Golden::new("guava", &name);
        let file = golden.file();
        assert_eq!(recognise(&file).unwrap().name, "guava", "{name}");
        let filter = read("guava", file.clone(), &Reading::default());
        golden.check(&*filter, funnel(&golden));
        assert_eq!(write("guava", &*filter), file, "{name}");
        let back = through_our_container(&*filter);
        golden.check(&*back, funnel(&golden));
        assert_eq!(write("guava", &*back), file, "{name}");

        // From the keys, to the bit.
        let strategy = if name.starts_with("g32") { Strategy::Mitz32 } else { Strategy::Mitz64 };
        let version = if name.contains("guava33") { None } else { Some((31, 1)) };
        let capacity = golden.number("expected_insertions").max(1);
        let making = Making { version, ..Making::new(capacity, golden.rate("fpp")) };
        let mut made = guava::create(&making, strategy).unwrap();
        let keys: Vec<Vec<u8>> = golden.inserted().into_iter().map(funnel(&golden)).collect();
        insert_all(&mut *made, &keys);
        assert_eq!(write("guava", &*made), file, "{name}");
    }
}

#[test]
fn hostile_guava_files_are_errors() {
    let file = Golden::new("guava", "g64-bytes").file();
    is_hardened("guava", &file, &Reading::default());
}
