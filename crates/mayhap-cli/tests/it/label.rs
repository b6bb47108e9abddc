//! `mayhap build --label` and `mayhap label`: which of many sets a key is in.

use crate::runner::{Folder, families, lines};

/// Three areas at a rate at which no answer is a matter of luck. `b` is in two of them.
fn areas() -> Folder {
    let folder = Folder::new();
    folder.write("quiet", "a\nb\n");
    folder.write("work", "b\nc\n");
    folder.write("danger", "d");
    folder
        .mayhap("build -o f -n 100 -p 1e-9 --label quiet=quiet --label work=work --label danger=danger")
        .run()
        .ends(0)
        .prints("")
        .says("f: spatial with 5 keys in");
    folder
}

#[test]
fn prints_each_record_a_tab_and_its_label() {
    let folder = areas();
    let label =
        |arguments: &str, input: &str| folder.mayhap(&format!("label f {arguments}")).input(input).run();
    label("", "x\na\nb\nc\nd\na")
        .ends(0)
        .prints("x\t\na\tquiet\nb\twork\nc\twork\nd\tdanger\na\tquiet\n")
        .stays_quiet();
    label("", "").ends(0).prints("");
    label("", "x\n").ends(0).prints("x\t\n");
    label("--no-mmap", "d\n").ends(0).prints("d\tdanger\n");
    label("-z", "b\0c\0").ends(0).prints("b\twork\0c\twork\0");
    label("-d, -k2", "1,b,x\n2,d,y\n").ends(0).prints("1,b,x\twork\n2,d,y\tdanger\n");
    folder.write("upper", "D\n");
    folder.mayhap("build --trim --ignore-case --label danger=upper -o g").run().ends(0);
    folder.mayhap("label g").input(" d \n").run().ends(0).prints(" d \tdanger\n");
    label("-d, -k2", "1,b\n2\n").ends(2).says("line 2: only 1 field, and the key is field 2");
    folder.mayhap("label f --key d --key x --key -a").run().ends(0).prints("d\tdanger\nx\t\n-a\t\n");
    folder.mayhap("label f --key d file").run().ends(2).says("cannot be used with");
    folder.mayhap("label absent").run().ends(2).says("absent: cannot open");
    // A filter of many sets is asked like any other, too.
    folder.mayhap("check f").input("x\na\nd\n").run().ends(0).prints("a\nd\n");
    folder.mayhap("test f quiet").run().ends(0);
}

#[test]
fn info_tells_of_each_area() {
    let folder = areas();
    let info = folder.mayhap("info --json f").run().ends(0).json();
    assert_eq!(
        (&info["family"], &info["label_bits"], &info["inserted"]),
        (&"spatial".into(), &8.into(), &5.into())
    );
    let names: Vec<_> = info["areas"].as_array().unwrap().iter().map(|area| &area["name"]).collect();
    assert_eq!(names, ["quiet", "work", "danger"]);
    let (quiet, danger) = (&info["areas"][0], &info["areas"][2]);
    assert_eq!((&quiet["area"], &quiet["inserted"]), (&1.into(), &2.into()));
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    for when in ["expected", "now"] {
        assert_eq!(number(&danger[when]["isep"]), 0.0);
        assert_eq!(number(&danger[when]["safeness"]), 1.0);
        assert!(number(&quiet[when]["fpr"]) > 0.0 && number(&quiet[when]["emersion"]) <= 1.0);
    }
    let fill = number(&info["fill"]);
    assert!((number(&info["emptiness"]) + fill - 1.0).abs() < 1e-12);
    assert!(number(&info["safeness"]) > 0.999 && number(&info["safeness_expected"]) > 0.999);
    let text = folder.mayhap("info f").run().ends(0);
    let text = text.shows("areas         3, labels of 8 bits").shows("emptiness").shows("safeness");
    text.shows("area  label   keys  cells").shows("rates of each area: expected / now");
    folder.mayhap("info --verify f").run().ends(0).shows("checksum      ok");
    let plain = folder.mayhap("build -o g").input("a\n").run().ends(0);
    drop(plain);
    assert!(folder.mayhap("info --json g").run().ends(0).json()["areas"].is_null());
}

#[test]
fn labels_that_cannot_be_are_refused_before_anything_is_written() {
    let folder = areas();
    let none = families(|family| family.can.labels, " or ");
    let cases = [
        ("--label quiet", "\"quiet\" is not NAME=FILE, such as block=bad.txt"),
        ("--label =quiet", "is not NAME=FILE"),
        ("--label a=", "is not NAME=FILE"),
        ("--label a=quiet work", "cannot be used with"),
        ("--label a=quiet --exact", "cannot be used with"),
        ("--label a=quiet --counts", "cannot be used with"),
        ("--label a=quiet --label a=work", "the label \"a\" is given twice"),
        ("--label a=- --label b=-", "standard input can be read once"),
        ("--label a=absent", "absent: cannot open"),
        ("--label a=quiet --probes 99", "99"),
        ("--label a=quiet --label b=g", "g: is both a file with keys and the file to write"),
        (
            "--family spatial quiet",
            "the family spatial takes keys with labels only; give them with --label NAME=FILE",
        ),
    ];
    folder.mayhap("build -o g").input("old\n").run().ends(0);
    let old = folder.read("g");
    for (arguments, text) in cases {
        folder.mayhap(&format!("build -o g {arguments}")).input("").run().ends(2).prints("").says(text);
        assert_eq!(folder.read("g"), old, "{arguments}");
    }
    folder
        .mayhap("build -o g --family bloom --label a=quiet")
        .run()
        .ends(2)
        .says("bloom takes no areas; spatial does; leave --label out or choose another --family");
    folder.mayhap("build -o g").arg("--label").arg("a\tb=quiet").run().ends(2).says("a control character");
    folder.mayhap("label g").run().ends(2).says("g: ");
    folder.mayhap("build -o h").input("a\n").run().ends(0);
    folder.mayhap("label h").input("a\n").run().ends(2).prints("").says_only(&format!(
        "mayhap: h: the family bloom cannot label; build the filter with --family {none}, or for two sets with --family \
         shifting-association"
    ));
    let inserts = families(|family| family.can.inserts, " or ");
    folder.mayhap("add f").input("a\n").run().ends(2).says_only(&format!(
        "mayhap: f: the family spatial cannot insert; build the filter with --family {inserts}"
    ));
}

#[test]
fn a_label_can_be_read_from_standard_input_and_files_merge() {
    let folder = areas();
    let build = "build -n 100 -p 1e-9 --label quiet=quiet --label work=- --label danger=danger";
    folder.mayhap(&format!("{build} -o g")).input("e\n").run().ends(0);
    folder.mayhap("merge -o h f g").run().ends(0);
    folder
        .mayhap("label h")
        .input("a\nb\nc\nd\ne\nx\n")
        .run()
        .ends(0)
        .prints("a\tquiet\nb\twork\nc\twork\nd\tdanger\ne\twork\nx\t\n");
    // Other names, or the same in another order, mean another thing.
    folder.mayhap("build -o o -n 100 -p 1e-9 --label work=work --label quiet=quiet").run().ends(0);
    folder.mayhap("merge -o p f o").run().ends(2).says("numbers of areas differ: 3 and 2");
    folder
        .mayhap("build -o o -n 100 -p 1e-9 --label work=work --label quiet=quiet --label danger=danger")
        .run()
        .ends(0);
    folder.mayhap("merge -o p f o").run().ends(2).says("the names of area 1 differ");
}

#[test]
fn threads_and_chunks_change_nothing_and_labels_are_never_lowered() {
    let folder = Folder::new();
    for name in ["low", "mid", "top"] {
        folder.write(name, lines(&format!("{name}-"), 20_000));
    }
    let build = "--label low=low --label mid=mid --label top=top";
    for threads in [1, 3] {
        folder.mayhap(&format!("build -o f{threads} {build} --threads {threads}")).run().ends(0);
    }
    assert!(folder.read("f1") == folder.read("f3"));
    let mut wrong = 0;
    for (rank, name) in ["low", "mid", "top"].into_iter().enumerate() {
        let done = folder.mayhap(&format!("label f1 {name}")).run().ends(0);
        let text = String::from_utf8(done.out).unwrap();
        assert_eq!(text.lines().count(), 20_000);
        for line in text.lines() {
            let label = line.split_once('\t').unwrap().1;
            let told = ["low", "mid", "top"].iter().position(|name| *name == label).expect("a label");
            assert!(told >= rank, "{line}");
            wrong += usize::from(told > rank);
        }
    }
    let info = folder.mayhap("info --json f1").run().ends(0).json();
    let expected = info["mislabelled"].as_f64().unwrap();
    // About as many as it says; 5 deviations.
    assert!((wrong as f64 - expected).abs() < 5.0 * expected.sqrt() + 1.0, "{wrong}, expected {expected}");
}

#[test]
fn a_report_at_the_end_on_request() {
    let folder = Folder::new();
    folder.write("k", "a\n");
    folder.mayhap("build --label one=k -n 1000 -p 1e-9 -o f").run().ends(0);
    let report = r#"{"matched":1,"printed":2,"read":2,"verified":true,"warnings":[]}"#;
    for command in ["label f --verify --stats=json", "label f --stats=json --key a --key x"] {
        folder.mayhap(command).input("a\nx\n").run().ends(0).prints("a\tone\nx\t\n").says_only(report);
    }
}
