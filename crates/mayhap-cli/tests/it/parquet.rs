//! The filters that Parquet files have for their columns.

use std::sync::Arc;

use crate::foreign;
use crate::foreign::{Sample, samples};
use crate::runner::{Folder, lines};
use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::file::metadata::{ParquetMetaDataReader, ParquetMetaDataWriter};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

fn whole_files() -> Vec<Sample> {
    let files: Vec<Sample> =
        samples("parquet", 18).into_iter().filter(|sample| sample.format == "parquet").collect();
    assert_eq!(files.len(), 9);
    files
}

#[test]
fn columns_of_golden_files_answer_as_duckdb_does() {
    for sample in whole_files() {
        let (folder, name) = (Folder::new(), &sample.name);
        folder.write("file", &sample.file);
        sample.must_answer(&folder, "file", "--column c");
        sample.must_answer(&folder, "file", "--format parquet --column c");
        let info = folder.mayhap("info --json file --column c").run().ends(0).json();
        let told = [&info["format"], &info["rule"], &info["family"], &info["checksum"]];
        assert_eq!(told, ["parquet", "sbbf", "blocked", "none"], "{name}");
        assert_eq!(info["bits"].as_f64(), sample.number("num_bytes").map(|bytes| 8.0 * bytes), "{name}");
        folder.mayhap(&format!("convert file -o ours --to mayhap --column c {}", sample.kind)).run().ends(0);
        sample.must_answer(&folder, "ours", "");
        folder.mayhap("convert file -o cut --to sbbf --column c").run().ends(0);
        sample.must_answer(&folder, "cut", "");
        let cut = samples("parquet", 18).into_iter().find(|other| &other.name == name).unwrap();
        assert!(folder.read("cut") == cut.file, "{name}: another file");
    }
}

/// Names `group-g-0`, ... and numbers `1000 g + 0`, ... of each row group, with filters, and measures without one.
fn of_row_groups(groups: i64, rows: i64) -> Vec<u8> {
    let schema = "message rows { required binary name (UTF8); required int64 id; required double measure; }";
    let mut properties = WriterProperties::builder().set_compression(Compression::UNCOMPRESSED);
    for column in ["name", "id"] {
        properties = properties
            .set_column_bloom_filter_enabled(ColumnPath::from(column), true)
            .set_column_bloom_filter_max_ndv(ColumnPath::from(column), rows as u64);
    }
    let mut file = Vec::new();
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut writer = SerializedFileWriter::new(&mut file, schema, Arc::new(properties.build())).unwrap();
    for group in 0..groups {
        let mut row_group = writer.next_row_group().unwrap();
        let names: Vec<ByteArray> =
            (0..rows).map(|row| ByteArray::from(format!("group-{group}-{row}").as_str())).collect();
        let ids: Vec<i64> = (0..rows).map(|row| 1000 * group + row).collect();
        let measures: Vec<f64> = ids.iter().map(|&id| id as f64).collect();
        let mut column = row_group.next_column().unwrap().unwrap();
        column.typed::<ByteArrayType>().write_batch(&names, None, None).unwrap();
        column.close().unwrap();
        let mut column = row_group.next_column().unwrap().unwrap();
        column.typed::<Int64Type>().write_batch(&ids, None, None).unwrap();
        column.close().unwrap();
        let mut column = row_group.next_column().unwrap().unwrap();
        column.typed::<DoubleType>().write_batch(&measures, None, None).unwrap();
        column.close().unwrap();
        row_group.close().unwrap();
    }
    writer.close().unwrap();
    file
}

#[test]
fn a_column_of_several_row_groups_is_asked_as_one() {
    let folder = Folder::new();
    folder.write("file", of_row_groups(2, 300));
    let names = lines("group-0-", 300) + &lines("group-1-", 300);
    let ids = lines("", 300) + &(1000..1300).map(|id| format!("{id}\n")).collect::<String>();
    let absent = lines("nobody-", 1000);
    let info = folder.mayhap("info --json file --column name").run().ends(0).json();
    assert_eq!([&info["format"], &info["rule"], &info["family"]], ["parquet", "sbbf", "scalable"]);
    assert_eq!(info["layers"].as_array().map(Vec::len), Some(2));
    for layer in info["layers"].as_array().unwrap() {
        let keys = layer["keys"].as_f64().unwrap();
        assert!((250.0..350.0).contains(&keys), "{keys}");
    }
    folder.mayhap("info file --column name").run().ends(0).shows("layers");

    folder.mayhap("convert file -o ours --to mayhap --column name").run().ends(0);
    let annotated = |file: &str| folder.mayhap(&format!("check --annotate {file}")).input(&absent).run().out;
    for file in ["file --column name", "ours"] {
        folder.mayhap(&format!("check {file}")).input(&names).run().ends(0).prints(&names);
    }
    assert_eq!(annotated("ours"), annotated("file --column name"));
    let admitted = foreign::said(&annotated("ours")).matches('1').count();
    assert!(admitted < 200, "{admitted} of 1000 absent names");

    folder.mayhap("check file --column id --as i64").input(&ids).run().ends(0).prints(&ids);
    folder.mayhap("check -c file --column id --as i64 --key -5 --key 5").run().ends(0).prints("1\n");
    for (arguments, said) in [
        ("info file", "file: a Parquet file; name a column with --column (name, id, measure)"),
        ("info file --column nam", "file: there is no column \"nam\"; there are name, id, measure"),
        (
            "check file --column measure --as hex --key 00",
            "file: column \"measure\" has no filter in row group 0, which may hold any value; write the file with one",
        ),
        (
            "check file --column measure --key 1.5",
            "file: column \"measure\": its values are of the type DOUBLE; say --as hex, with the bytes in little-endian order",
        ),
    ] {
        folder.mayhap(arguments).run().ends(2).prints("").says_only(&format!("mayhap: {said}"));
    }
    // A filter of two row groups is no filter of one.
    folder
        .mayhap("convert file -o cut --to sbbf --column name")
        .run()
        .ends(2)
        .says("cannot become a file of the format");
    assert!(!folder.path("cut").exists());
}

/// A row group without a filter may hold anything, so that nothing can be denied.
#[test]
fn one_row_group_without_a_filter_is_enough_to_refuse() {
    let folder = Folder::new();
    let file = of_row_groups(2, 100);
    let metadata = ParquetMetaDataReader::decode_metadata(footer(&file)).unwrap();
    let mut builder = metadata.into_builder();
    let mut groups = builder.take_row_groups();
    let group = groups.pop().unwrap();
    let columns = group.columns().iter().cloned().map(|column| {
        let column = column.into_builder().set_bloom_filter_offset(None).set_bloom_filter_length(None);
        column.build().unwrap()
    });
    let columns = columns.collect();
    groups.push(group.into_builder().set_column_metadata(columns).build().unwrap());
    // The old footer stays before the new one, and is nothing then.
    let mut changed = file;
    let metadata = builder.set_row_groups(groups).build();
    ParquetMetaDataWriter::new(&mut changed, &metadata).finish().unwrap();
    folder.write("file", changed);
    folder.mayhap("check file --column name --key group-0-1").run().ends(2).says_only(
        "mayhap: file: column \"name\" has no filter in row group 1, which may hold any value; write the file with one",
    );
}

#[test]
fn a_file_without_rows_has_no_filters() {
    let folder = Folder::new();
    folder.write("file", of_row_groups(0, 0));
    folder
        .mayhap("check file --column name --key a")
        .run()
        .ends(2)
        .says_only("mayhap: file: a Parquet file without rows, and without filters");
}

/// The metadata, behind which are its length and four letters.
fn footer(file: &[u8]) -> &[u8] {
    let end = file.len() - 8;
    let length = u32::from_le_bytes(file[end..end + 4].try_into().unwrap()) as usize;
    &file[end - length..end]
}

/// Every byte of the footer and of the filter's header, changed; no answer of the changed file matters, but that there is
/// one, or an error.
#[test]
fn damaged_parquet_files_never_panic() {
    let folder = Folder::new();
    let sample = whole_files().into_iter().find(|sample| sample.name == "pa-int").unwrap();
    let file = &sample.file;
    let header = sample.number("bloom_filter_offset").unwrap() as usize;
    let begin = file.len() - 8 - footer(file).len();
    for place in (header..header + 16).chain(begin..file.len()) {
        for change in [0x01, 0x80, 0xff] {
            let mut changed = file.clone();
            changed[place] ^= change;
            folder.write("file", changed);
            let done = folder.mayhap("check file --column c --as i32 --key 5").run();
            let status = done.status.code();
            assert!(status.is_some_and(|status| status <= 2), "{place}: {done:?}");
            assert!(!done.err.contains("panicked"), "{place} changed by {change}: {}", done.err);
        }
    }
    for end in [0, 3, 4, 8, 12, header, header + 8, begin, file.len() - 9, file.len() - 1] {
        folder.write("file", &file[..end]);
        for options in ["--column c", "--format parquet --column c"] {
            let done = folder.mayhap(&format!("info file {options}")).run().ends(2).prints("");
            assert_eq!(done.err.lines().count(), 1, "cut at {end}: {}", done.err);
            done.says("mayhap: file: ");
        }
    }
}

/// The author of a file chooses the names of its columns, and could have chosen what the terminal does.
#[test]
fn names_of_columns_are_escaped() {
    let folder = Folder::new();
    let mut file = of_row_groups(1, 10);
    for start in 0..file.len() - 7 {
        if &file[start..start + 7] == b"measure" {
            file[start..start + 7].copy_from_slice(b"\x1b]0;me\x07");
        }
    }
    folder.write("file", file);
    for arguments in ["info file", "check file --column nope --key a"] {
        let done = folder.mayhap(arguments).run().ends(2).prints("").says("name, id, \\u{1b}]0;me\\u{7}");
        assert!(!done.err.contains(['\u{1b}', '\u{7}']), "{}", done.err);
    }
}
