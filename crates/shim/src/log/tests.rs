//! How a stream becomes entries.

use proptest::prelude::*;

use super::*;

fn entries(limit: usize, reads: &[&[u8]]) -> Vec<(bool, String)> {
    let mut lines = LineSplitter::new(StdStream::Stdout, limit);
    let mut batch = Vec::new();
    for read in reads {
        lines.push(read, "T", &mut batch);
    }
    lines.end("T", &mut batch);
    let text = String::from_utf8(batch).unwrap();
    text.lines()
        .map(|line| match line.strip_prefix("T stdout F ") {
            Some(content) => (false, content.to_owned()),
            None => (true, line.strip_prefix("T stdout P ").unwrap().to_owned()),
        })
        .collect()
}

fn full(text: &str) -> (bool, String) {
    (false, text.into())
}

fn partial(text: &str) -> (bool, String) {
    (true, text.into())
}

#[test]
fn whole_lines_are_full_and_the_rest_is_partial() {
    assert_eq!(
        entries(16, &[b"a\n", b"b", b"c\n\nd"]),
        [full("a"), full("bc"), full(""), partial("d")]
    );
    assert_eq!(entries(16, &[]), []);
}

#[test]
fn a_line_is_cut_only_if_it_is_longer_than_the_limit() {
    assert_eq!(entries(4, &[b"abcd\n"]), [full("abcd")]);
    assert_eq!(entries(4, &[b"abcd", b"\n"]), [full("abcd")]);
    assert_eq!(entries(4, &[b"abcde\n"]), [partial("abcd"), full("e")]);
    assert_eq!(
        entries(4, &[b"abcdefgh\n"]),
        [partial("abcd"), full("efgh")]
    );
    assert_eq!(
        entries(4, &[b"ab", b"cdef", b"ghi"]),
        [partial("abcd"), partial("efgh"), partial("i")]
    );
}

proptest! {
    #[test]
    fn however_it_is_read_the_entries_are_the_same_and_nothing_is_lost(
        text in "[ab\n]{0,60}",
        cuts in prop::collection::vec(0usize..60, 0..8),
        limit in 1usize..12,
    ) {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
        cuts.sort_unstable();
        let mut reads = Vec::new();
        let mut from = 0;
        for cut in cuts.into_iter().chain([text.len()]) {
            reads.push(&text.as_bytes()[from..cut]);
            from = cut;
        }
        let found = entries(limit, &reads);
        prop_assert_eq!(&found, &entries(limit, &[text.as_bytes()]));
        prop_assert!(found.iter().all(|(_, content)| content.len() <= limit));
        let again: String = found
            .iter()
            .map(|(partial, content)| format!("{content}{}", if *partial { "" } else { "\n" }))
            .collect();
        prop_assert_eq!(again, text);
    }
}
