//! Reading and following real files.

use std::{
    fs::{self, File, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
    pin::Pin,
    time::Duration,
};

use futures_util::StreamExt;
use proptest::prelude::*;
use tokio::time::timeout;

use super::*;

const PATIENCE: Duration = Duration::from_secs(60);

/// A log as a runtime writes it.
struct Log {
    dir: tempfile::TempDir,
    file: File,
    rotations: u32,
}

impl Log {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let file = append(&dir.path().join("0.log"));
        Self {
            dir,
            file,
            rotations: 0,
        }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("0.log")
    }

    fn write(&mut self, text: &str) {
        self.file.write_all(text.as_bytes()).unwrap();
    }

    fn line(&mut self, content: &str) {
        self.write(&entry("stdout", "F", content));
    }

    fn put_aside(&mut self) {
        let aside = format!("0.log.20240101-{:06}", self.rotations);
        self.rotations += 1;
        fs::rename(self.path(), self.dir.path().join(aside)).unwrap();
    }

    /// What the kubelet and the runtime do together.
    fn rotate(&mut self) {
        self.put_aside();
        self.file = append(&self.path());
    }
}

fn append(path: &Path) -> File {
    OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .unwrap()
}

fn entry(stream: &str, tag: &str, content: &str) -> String {
    format!("2024-01-01T00:00:00.5Z {stream} {tag} {content}\n")
}

type Shown = Pin<Box<dyn Stream<Item = Result<Bytes, LogError>> + Send>>;

async fn open(path: PathBuf, options: ReadOptions, ended: watch::Receiver<bool>) -> Shown {
    Box::pin(stream(path, options, ended).await.unwrap())
}

async fn all(path: PathBuf, options: ReadOptions) -> String {
    let (_running, ended) = watch::channel(false);
    rest(&mut open(path, options, ended).await).await
}

async fn rest(shown: &mut Shown) -> String {
    let mut text = Vec::new();
    while let Some(bytes) = timeout(PATIENCE, shown.next()).await.expect("an end") {
        text.extend(bytes.unwrap());
    }
    String::from_utf8(text).unwrap()
}

/// Reads until `length` bytes were shown.
async fn next(shown: &mut Shown, length: usize) -> String {
    let mut text = Vec::new();
    while text.len() < length {
        let bytes = timeout(PATIENCE, shown.next())
            .await
            .expect("more")
            .expect("no end yet");
        text.extend(bytes.unwrap());
    }
    String::from_utf8(text).unwrap()
}

fn following() -> ReadOptions {
    ReadOptions {
        follow: true,
        ..ReadOptions::default()
    }
}

#[tokio::test]
async fn the_whole_log_is_shown_with_its_rotated_files() {
    let mut log = Log::new();
    log.line("one");
    log.rotate();
    log.line("two");
    assert_eq!(all(log.path(), ReadOptions::default()).await, "one\ntwo\n");
    let current = ReadOptions {
        current_file_only: true,
        ..ReadOptions::default()
    };
    assert_eq!(all(log.path(), current).await, "two\n");
    let last = ReadOptions {
        tail_lines: Some(2),
        timestamps: true,
        ..ReadOptions::default()
    };
    let time = "2024-01-01T00:00:00.500000000Z";
    assert_eq!(
        all(log.path(), last).await,
        format!("{time} one\n{time} two\n")
    );
    let none = ReadOptions {
        tail_lines: Some(0),
        ..ReadOptions::default()
    };
    assert_eq!(all(log.path(), none).await, "");
}

#[tokio::test]
async fn a_missing_log_and_an_unreadable_one_are_different_errors() {
    let dir = tempfile::tempdir().unwrap();
    let (_running, ended) = watch::channel(false);
    let missing = stream(dir.path().join("0.log"), following(), ended.clone()).await;
    assert!(missing.err().expect("no log").is_not_found());
    let directory = stream(dir.path().to_owned(), following(), ended).await;
    assert!(!directory.err().expect("no log").is_not_found());
}

#[tokio::test]
async fn a_follower_sees_lines_as_they_come_and_ends_with_the_container() {
    let mut log = Log::new();
    log.line("old");
    let (running, ended) = watch::channel(false);
    let options = ReadOptions {
        tail_lines: Some(0),
        ..following()
    };
    let mut shown = open(log.path(), options, ended).await;
    log.line("one");
    assert_eq!(next(&mut shown, 4).await, "one\n");
    log.write(&entry("stdout", "P", "prompt> "));
    assert_eq!(next(&mut shown, 8).await, "prompt> ");
    log.line("yes");
    assert_eq!(next(&mut shown, 4).await, "yes\n");
    log.line("last");
    running.send(true).unwrap();
    assert_eq!(rest(&mut shown).await, "last\n");
}

#[tokio::test]
async fn a_follower_ends_with_what_is_there_when_the_container_is_forgotten() {
    let mut log = Log::new();
    log.line("one");
    let (running, ended) = watch::channel(false);
    let mut shown = open(log.path(), following(), ended).await;
    drop(running);
    assert_eq!(rest(&mut shown).await, "one\n");
}

#[tokio::test]
async fn a_follower_stops_at_its_limit_while_the_container_runs() {
    let mut log = Log::new();
    let (_running, ended) = watch::channel(false);
    let options = ReadOptions {
        limit_bytes: Some(6),
        ..following()
    };
    let mut shown = open(log.path(), options, ended).await;
    log.line("one");
    log.line("two");
    assert_eq!(rest(&mut shown).await, "one\ntw");
}

#[tokio::test]
async fn no_line_is_lost_when_the_log_is_rotated() {
    let mut log = Log::new();
    let (running, ended) = watch::channel(false);
    let mut shown = open(log.path(), following(), ended).await;
    log.line("a1");
    assert_eq!(next(&mut shown, 3).await, "a1\n");
    // The runtime continues to write to the rotated file until it opens the new one, and
    // some a little longer.
    log.put_aside();
    log.line("a2");
    assert_eq!(next(&mut shown, 3).await, "a2\n");
    let mut new = append(&log.path());
    new.write_all(entry("stdout", "F", "b1").as_bytes())
        .unwrap();
    log.line("a3");
    log.file = new;
    assert_eq!(next(&mut shown, 6).await, "a3\nb1\n");
    // Two rotations while nobody reads.
    log.line("b2");
    log.rotate();
    log.line("c1");
    log.rotate();
    log.line("d1");
    assert_eq!(next(&mut shown, 9).await, "b2\nc1\nd1\n");
    running.send(true).unwrap();
    assert_eq!(rest(&mut shown).await, "");
}

#[tokio::test]
async fn a_follower_continues_when_the_log_is_replaced_or_truncated() {
    let mut log = Log::new();
    let (running, ended) = watch::channel(false);
    let mut shown = open(log.path(), following(), ended).await;
    log.line("one");
    assert_eq!(next(&mut shown, 4).await, "one\n");
    let fresh = log.dir.path().join("0.log.tmp");
    let mut file = append(&fresh);
    log.line("two");
    fs::rename(&fresh, log.path()).unwrap();
    file.write_all(entry("stdout", "F", "three").as_bytes())
        .unwrap();
    log.file = file;
    assert_eq!(next(&mut shown, 10).await, "two\nthree\n");
    log.file.set_len(0).unwrap();
    log.line("4");
    assert_eq!(next(&mut shown, 2).await, "4\n");
    running.send(true).unwrap();
    assert_eq!(rest(&mut shown).await, "");
}

#[tokio::test]
async fn the_end_of_a_log_makes_a_termination_message() {
    let mut log = Log::new();
    for number in 0..100 {
        log.line(&format!("line {number}"));
    }
    let last = |bytes, lines| tail_of(log.path(), bytes, lines);
    assert_eq!(last(2048, 2).await.unwrap(), "line 98\nline 99\n");
    assert_eq!(last(2048, 80).await.unwrap().lines().count(), 80);
    assert_eq!(last(10, 80).await.unwrap(), "8\nline 99\n");
    log.line("ä€𝄞");
    // Ten bytes with the newline, of which a bound may cut a character.
    for (bytes, text) in [(10, "ä€𝄞\n"), (9, "€𝄞\n"), (7, "𝄞\n"), (4, "\n"), (0, "")]
    {
        assert_eq!(
            tail_of(log.path(), bytes, 1).await.unwrap(),
            text,
            "{bytes}"
        );
    }
    assert!(
        tail_of(log.dir.path().join("9.log"), 1, 1)
            .await
            .unwrap_err()
            .is_not_found()
    );
}

/// Lines of both streams, each as the parts in which it is recorded.
fn written_lines() -> impl Strategy<Value = Vec<(bool, Vec<String>)>> {
    let part = "[a-c ]{0,6}";
    let line = (any::<bool>(), prop::collection::vec(part, 1..4));
    prop::collection::vec(line, 0..40)
}

fn shown_lines(lines: &[(bool, Vec<String>)]) -> Vec<String> {
    lines
        .iter()
        .map(|(_, parts)| parts.concat() + "\n")
        .collect()
}

/// Entries of the lines, in which two lines of different streams that follow each other may be
/// interleaved part by part. A line takes the place of its last part, as readers show it.
fn record(lines: &[(bool, Vec<String>)], weave: bool) -> Vec<String> {
    let entries = |(stdout, parts): &(bool, Vec<String>)| -> Vec<String> {
        let stream = if *stdout { "stdout" } else { "stderr" };
        let tag = |at| if at + 1 == parts.len() { "F" } else { "P" };
        parts
            .iter()
            .enumerate()
            .map(|(at, part)| entry(stream, tag(at), part))
            .collect()
    };
    let mut out = Vec::new();
    let mut rest = lines;
    while let [first, after @ ..] = rest {
        let mut mine = entries(first);
        let end = mine.pop();
        match after.split_first() {
            Some((other, others)) if weave && other.0 != first.0 => {
                let mut theirs = entries(other);
                let their_end = theirs.pop();
                let parts = [mine, theirs].map(|parts| parts.into_iter().enumerate());
                let mut woven: Vec<_> = parts.into_iter().flatten().collect();
                woven.sort_by_key(|(at, _)| *at);
                out.extend(woven.into_iter().map(|(_, part)| part));
                out.extend([end, their_end].into_iter().flatten());
                rest = others;
            }
            _ => {
                out.extend(mine);
                out.extend(end);
                rest = after;
            }
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn the_last_lines_are_the_end_of_all_lines(
        lines in written_lines(),
        weave in any::<bool>(),
        rotate_after in prop::collection::vec(any::<prop::sample::Index>(), 0..3),
        requested in 0_u64..50,
    ) {
        let mut log = Log::new();
        let entries = record(&lines, weave);
        let cuts: Vec<usize> = rotate_after.iter().map(|at| at.index(entries.len() + 1)).collect();
        for (at, entry) in entries.iter().enumerate() {
            log.write(entry);
            if cuts.contains(&at) {
                log.rotate();
            }
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let shown = shown_lines(&lines);
        let from = shown.len().saturating_sub(usize::try_from(requested).unwrap());
        runtime.block_on(async {
            assert_eq!(all(log.path(), ReadOptions::default()).await, shown.concat());
            let tail = ReadOptions { tail_lines: Some(requested), ..ReadOptions::default() };
            assert_eq!(all(log.path(), tail).await, shown[from..].concat());
        });
    }

    #[test]
    fn a_follower_shows_each_line_once_whatever_the_writes_and_rotations(
        lines in written_lines(),
        writes in prop::collection::vec(
            (1_usize..60, any::<bool>(), any::<bool>(), any::<bool>()),
            1..20,
        ),
    ) {
        let text: String = record(&lines, false).concat();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut log = Log::new();
            let (running, ended) = watch::channel(false);
            let mut shown = open(log.path(), following(), ended).await;
            let reader = tokio::spawn(async move { rest(&mut shown).await });
            let mut left = text.as_str();
            for (length, rotate, compress, pause) in writes.iter().cycle() {
                let (now, then) = left.split_at((*length).min(left.len()));
                log.write(now);
                left = then;
                // Runtimes rotate between entries.
                if *rotate && now.ends_with('\n') {
                    log.rotate();
                }
                if *compress {
                    crate::rotation::compress(&log.path()).unwrap();
                }
                if *pause {
                    tokio::task::yield_now().await;
                }
                if left.is_empty() {
                    break;
                }
            }
            running.send(true).unwrap();
            let expected = shown_lines(&lines).concat();
            assert_eq!(reader.await.unwrap(), expected);
        });
    }
}
