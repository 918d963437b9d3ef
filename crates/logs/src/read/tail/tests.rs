//! Tests of `tail`.

use super::*;

impl ReadAt for Vec<u8> {
    fn size(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn fill_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let rest = &self[usize::try_from(offset).expect("small").min(self.len())..];
        let read = rest.len().min(into.len());
        into[..read].copy_from_slice(&rest[..read]);
        Ok(read)
    }
}

fn entry(stream: &str, tag: &str, content: &str) -> String {
    format!("2024-01-01T00:00:00Z {stream} {tag} {content}\n")
}

fn at(files: &[String], requested: u64) -> Start {
    let files: Vec<Vec<u8>> = files.iter().map(|text| text.clone().into_bytes()).collect();
    find(&files, requested, None).expect("memory can be read")
}

fn place(file: usize, offset: usize) -> LogOffset {
    LogOffset {
        file,
        offset: offset as u64,
    }
}

#[test]
fn counts_lines_and_not_their_parts() {
    let (a, b, c) = (
        entry("stdout", "F", "a"),
        entry("stdout", "P", "b"),
        entry("stdout", "F", "c"),
    );
    let log = [format!("{a}{b}{b}{c}")];
    assert_eq!(at(&log, 1).show, place(0, a.len()));
    assert_eq!(at(&log, 2).show, place(0, 0));
    assert_eq!(at(&log, 9).show, place(0, 0));
    assert_eq!(at(&log, 0).show, place(0, log[0].len()));
}

#[test]
fn a_line_that_begins_before_the_last_skipped_one_is_kept_whole() {
    let (part, other, end) = (
        entry("stdout", "P", "a"),
        entry("stderr", "F", "x"),
        entry("stdout", "F", "b"),
    );
    let log = [format!("{other}{part}{other}{end}")];
    let start = at(&log, 1);
    assert_eq!(start.read, place(0, other.len()));
    assert_eq!(start.show, place(0, other.len() + part.len() + other.len()));
}

#[test]
fn the_search_continues_in_the_previous_file() {
    let (a, b) = (entry("stdout", "F", "a"), entry("stdout", "F", "b"));
    let log = [format!("{a}{b}"), String::new(), b.clone()];
    assert_eq!(at(&log, 1).show, place(2, 0));
    assert_eq!(at(&log, 2).show, place(0, a.len()));
    assert_eq!(at(&log, 3).show, place(0, 0));
}

#[test]
fn a_line_being_written_comes_in_addition() {
    let a = entry("stdout", "F", "a");
    let log = [format!("{a}{a}2024-01-01T00:00:00Z std")];
    assert_eq!(at(&log, 0).show, place(0, 2 * a.len()));
    assert_eq!(at(&log, 1).show, place(0, a.len()));
}

#[test]
fn lines_that_are_not_of_the_format_count() {
    let log = ["x\n\ny\n".to_owned()];
    assert_eq!(at(&log, 1).show, place(0, 3));
    assert_eq!(at(&log, 2).show, place(0, 2));
    assert_eq!(at(&log, 3).show, place(0, 0));
}

#[test]
fn lines_may_be_longer_than_a_block() {
    let long = entry("stdout", "F", &"x".repeat(3 * BLOCK));
    let short = entry("stdout", "F", "x");
    let log = [format!("{short}{long}{short}{long}")];
    assert_eq!(at(&log, 1).show, place(0, 2 * short.len() + long.len()));
    assert_eq!(at(&log, 3).show, place(0, short.len()));
}
