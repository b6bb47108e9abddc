//! `mayhap build --universe` and `--smallest`: sets that are known, and all others too.

use crate::runner::{Folder, lines};

#[test]
fn no_answer_about_the_universe_is_wrong() {
    let folder = Folder::new();
    folder.write("revoked", lines("bad-", 1000));
    folder.write("others", lines("good-", 100_000));
    folder.write("all", lines("good-", 100_000) + &lines("bad-", 1000));
    for universe in ["others", "all"] {
        for options in ["", "--layout compact", "--memory 64MiB --threads 1", "-p 1e-4"] {
            let built =
                folder.mayhap(&format!("build --universe {universe} {options} -o f revoked")).run().ends(0);
            assert!(built.err.contains("universe") && built.err.contains("1,000 keys"), "{}", built.err);
            folder.mayhap("check -c f revoked").run().ends(0).prints("1000\n");
            folder.mayhap("check -c f others").run().ends(1).prints("0\n");
            folder.mayhap("check -vc f all").run().ends(0).prints("100000\n");
            folder.mayhap("test f revoked --absent others").run().ends(0);
        }
    }
    folder.mayhap("build --universe others -o f revoked --json").run().ends(0);
    let info = folder.mayhap("info f --json").run().ends(0);
    let info = String::from_utf8_lossy(&info.out);
    assert!(info.contains("\"others\":100000") || info.contains("\"others\": 100000"), "{info}");
    let text = folder.mayhap("info f").run().ends(0);
    let text = String::from_utf8_lossy(&text.out);
    assert!(text.contains("exact for every key of its universe"), "{text}");
    // As many bits as the formula says, and two directories.
    let bytes = payload(&folder, "f");
    assert!(bytes < 1000 * 10 / 8 + 256, "{bytes} bytes");
}

/// The length of a file without its header and sections.
fn payload(folder: &Folder, name: &str) -> u64 {
    let file = folder.read(name);
    mayhap::wire::Header::decode(&file, file.len() as u64).unwrap().payload.length
}

#[test]
fn what_makes_no_universe_is_refused() {
    let folder = Folder::new();
    folder.write("keys", "a\nb\n");
    folder.write("others", "c\n");
    let refused = |arguments: &str, text: &str| {
        let run = folder.mayhap(arguments).input("x\n").run().ends(2);
        assert!(run.err.contains(text), "{arguments}: {}", run.err);
        assert!(!folder.path("f").exists(), "{arguments}");
    };
    refused("build --family universe -o f keys", "name a file of those with --universe");
    refused(
        "build --family bloom --universe others -o f keys",
        "bloom takes no other keys; universe does; leave --universe out",
    );
    refused("build --universe - -o f", "cannot both be standard input");
    refused("build --universe f -o f keys", "");
    refused("build --universe none -o f keys", "none");
    refused("build --universe others -p 1e-15 -o f keys", "in this family, not 1e-15");
    refused("build --universe others --static -o f keys", "cannot be used with");
    refused("add others keys", "others");
    folder.mayhap("build --universe others -o f keys").run().ends(0);
    folder.mayhap("add f others").run().ends(2);
    folder.mayhap("merge -o g f f").run().ends(2);
    folder.mayhap("build --universe - -o g keys").input("c\nd\n").run().ends(0);
    folder.mayhap("check g").input("a\nb\nc\nd\n").run().ends(0).prints("a\nb\n");
}

/// The smallest of all at the same rate.
#[test]
fn smallest_is_smaller_than_static() {
    let folder = Folder::new();
    folder.write("keys", lines("key-", 50_000));
    folder.mayhap("build --static -p 1% -o static keys").run().ends(0);
    let built = folder.mayhap("build --smallest -p 1% -o smallest keys").run().ends(0);
    assert!(built.err.contains("ribbon (fastest) with 50,000 keys"), "{}", built.err);
    let size = |name: &str| payload(&folder, name);
    assert!((size("smallest") * 8) as f64 / 50_000.0 < 6.85, "{} bytes", size("smallest"));
    assert!(size("smallest") * 10 < size("static") * 9);
    folder.mayhap("build --smallest -p 1% --layout compact -o compact keys").run().ends(0);
    assert!(size("compact") < size("smallest"));
    for name in ["smallest", "compact"] {
        folder.mayhap(&format!("check -c {name} keys")).run().ends(0).prints("50000\n");
        folder.mayhap(&format!("info --verify {name}")).run().ends(0);
    }
    folder.mayhap("build --smallest -p 1% --memory 16MiB --threads 1 -o again keys").run().ends(0);
    assert!(folder.read("again") == folder.read("smallest"));
}
