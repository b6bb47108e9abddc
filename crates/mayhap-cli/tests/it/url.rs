//! `--url` and `--strip-query`: one key for the many ways to write an address.

use crate::runner::Folder;

#[test]
fn the_first_line_of_each_address_is_printed_as_it_stands() {
    let folder = Folder::new();
    let input = "HTTP://Example.org:80/a?b=2&a=1#top\n\
                 http://example.org/a?a=1&b=2\n\
                 http://example.org/./a?a=1&b=2\r\n\
                 http://example.org/a?a=1\n\
                 not a URL\n\
                 Not a URL\n\
                 not a URL\n\
                 http://example.org/ÿ\n";
    let input = [input.as_bytes(), b"\xffhttp://example.org/a?a=1\n\xffhttp://example.org/a?a=1\n"].concat();
    let kept = "HTTP://Example.org:80/a?b=2&a=1#top\n\
                http://example.org/a?a=1\n\
                not a URL\n\
                Not a URL\n\
                http://example.org/ÿ\n";
    let kept = [kept.as_bytes(), b"\xffhttp://example.org/a?a=1\n"].concat();
    folder.write("input", &input);
    folder.mayhap("dedup --url input").run().ends(0).prints(&kept).stays_quiet();
    folder.mayhap("dedup --url").input(&input).run().ends(0).prints(&kept).stays_quiet();
}

#[test]
fn addresses_that_a_server_may_tell_apart_are_all_printed() {
    let folder = Folder::new();
    let input = "http://a.org/b\nhttps://a.org/b\nhttp://www.a.org/b\nhttp://a.org/b/\nhttp://a.org/B\nhttp://a.org/b?c\n\
                 http://a.org/b?c=\nhttp://a.org/b?x=1&x=2\nhttp://a.org/b?x=2&x=1\nhttp://a.org/1\t2\nhttp://a.org/12\n";
    folder.mayhap("dedup --url").input(input).run().ends(0).prints(input);
}

#[test]
fn query_names_are_stripped_and_that_implies_url() {
    let folder = Folder::new();
    let input = "http://a.org/?id=1&utm_source=x\nhttp://A.org/?id=1&gclid=7\nhttp://a.org/?id=1\nhttp://a.org/?id=2\n";
    let cases = [
        ("utm_*,gclid", "http://a.org/?id=1&utm_source=x\nhttp://a.org/?id=2\n"),
        ("utm_*", "http://a.org/?id=1&utm_source=x\nhttp://A.org/?id=1&gclid=7\nhttp://a.org/?id=2\n"),
        ("*", "http://a.org/?id=1&utm_source=x\n"),
    ];
    for (list, kept) in cases {
        folder.mayhap("dedup --strip-query").arg(list).input(input).run().ends(0).prints(kept);
        folder.mayhap("dedup --url --strip-query").arg(list).input(input).run().ends(0).prints(kept);
    }
}

#[test]
fn a_url_may_be_a_column_or_a_field() {
    let folder = Folder::new();
    let rows = "1,HTTP://a.org,x\n2,http://a.org/#y,z\n3,http://b.org/,x\n";
    let kept = "1,HTTP://a.org,x\n3,http://b.org/,x\n";
    folder.mayhap("dedup --url -d, -k2").input(rows).run().ends(0).prints(kept);
    let objects = "{\"u\":\"HTTP://a.org\"}\n{\"u\":\"http:\\/\\/a.org\\/\"}\n{\"u\":\"http://b.org\"}\n";
    let kept = "{\"u\":\"HTTP://a.org\"}\n{\"u\":\"http://b.org\"}\n";
    folder.mayhap("dedup --url --json-key /u").input(objects).run().ends(0).prints(kept);
}

#[test]
fn a_filter_of_addresses_is_asked_for_addresses() {
    let folder = Folder::new();
    let addresses = "http://A.org/x?b&a\nhttps://b.org/?utm_id=5\nfoo\n";
    folder.mayhap("build --family exact --strip-query utm_* -o f").input(addresses).run().ends(0);
    let asked = "http://a.org:80/x?a&b#c\nhttp://a.org/x?a\nhttps://B.org\nfoo\nFoo\n";
    let found = "http://a.org:80/x?a&b#c\nhttps://B.org\nfoo\n";
    folder.mayhap("check f").input(asked).run().ends(0).prints(found);
    folder.mayhap("check --strip-query utm_* f").input(asked).run().ends(0).prints(found);
    folder
        .mayhap("check --url f")
        .input(asked)
        .run()
        .ends(2)
        .says("--strip-query utm_*, and --url says otherwise");
    folder.mayhap("check f --key HTTP://A.ORG/x?b&a").run().ends(0).prints("HTTP://A.ORG/x?b&a\n");
    folder.mayhap("add f").input("http://c.org?utm_a#1\n").run().ends(0);
    folder.mayhap("check f").input("http://c.org/\n").run().ends(0).prints("http://c.org/\n");
}

#[test]
fn nonsense_is_refused() {
    let folder = Folder::new();
    for list in ["", "a,,b", "a=1", "*a"] {
        let call = folder.mayhap("dedup --strip-query").arg(list);
        call.run()
            .ends(2)
            .prints("")
            .says("give names with commas between them, such as gclid,utm_*, or * for all");
    }
    folder.mayhap("dedup --url --as u64").run().ends(2).says("--as <KIND>");
    folder.mayhap("dedup --strip-query a --as hex").run().ends(2).says("--as <KIND>");
    folder.mayhap("sort --url").run().ends(2).says("leave out --as, --url and --strip-query");
}
