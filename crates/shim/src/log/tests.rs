//! Entries, and a disk that fills up.

use proptest::prelude::*;

use super::*;

fn entries(limit: usize, reads: &[&[u8]]) -> Vec<(bool, String)> {
    let mut lines = Lines::new(StdStream::Stdout, limit);
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

#[test]
fn a_full_disk_drops_whole_entries_and_counts_them() {
    let mount = crate::supervisor::test_mount::Tmpfs::new("log-full", 64 << 10);
    let path = mount.path().join("0.log");
    let mut log = LogFile::open(Some(&path)).unwrap();
    let entry = [b"T stdout F ".as_slice(), &[b'x'; 1000], b"\n"].concat();
    let batch = entry.repeat(10);
    let mut why = None;
    for _ in 0..20 {
        why = why.or(log.append(&batch));
    }
    assert!(why.unwrap().contains("No space left"));
    let text = std::fs::read(&path).unwrap();
    assert_eq!(text.len() % entry.len(), 0, "half an entry is in the file");
    let written = (text.len() / entry.len()) as u64;
    assert!(written > 30, "{written}");
    assert_eq!(log.state().lost_lines, 200 - written);
    assert_eq!(log.state().lost_bytes, (200 - written) * entry.len() as u64);

    // Space comes back: so do the entries, without a gap in the format.
    std::fs::rename(&path, mount.path().join("old")).unwrap();
    std::fs::remove_file(mount.path().join("old")).unwrap();
    log.reopen().unwrap();
    assert_eq!(log.append(&entry), None);
    assert_eq!(std::fs::read(&path).unwrap(), entry);
    assert_eq!(log.state().lost_lines, 200 - written);
}

#[test]
fn a_log_that_was_moved_away_is_written_to_until_it_is_reopened() {
    let dir = tempfile::tempdir().unwrap();
    let (path, moved) = (dir.path().join("0.log"), dir.path().join("0.log.1"));
    let mut log = LogFile::open(Some(&path)).unwrap();
    log.append(b"a\n");
    std::fs::rename(&path, &moved).unwrap();
    log.append(b"b\n");
    log.reopen().unwrap();
    log.append(b"c\n");
    assert_eq!(std::fs::read(&moved).unwrap(), b"a\nb\n");
    assert_eq!(std::fs::read(&path).unwrap(), b"c\n");
}
