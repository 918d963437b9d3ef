//! The progress of a copy, on a terminal.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::termios;
use tokio::time::Instant;

use super::super::terminal::Terminal;

/// Interval between two updates.
const RHYTHM: Duration = Duration::from_millis(100);
/// Columns of the bar.
const WIDTH: u64 = 24;
/// A block of a tar stream, which starts with a header.
const BLOCK: usize = 512;
/// Files that are counted before a copy begins; beyond that, no total is shown.
const MAX_COUNTED: usize = 100_000;

/// A progress bar on stderr, if that is a terminal.
pub(super) struct Progress {
    shown: bool,
    total: Option<u64>,
    passed: u64,
    began: Instant,
    next: Instant,
}

impl Progress {
    pub(super) fn new(quiet: bool, total: Option<u64>, terminal: &Terminal<'_>) -> Self {
        let is_terminal = terminal
            .streams()
            .is_ok_and(|streams| termios::isatty(&streams.stderr));
        let now = Instant::now();
        Self {
            shown: is_terminal && !quiet,
            total,
            passed: 0,
            began: now,
            next: now + RHYTHM,
        }
    }

    /// Counts a piece of the stream.
    pub(super) fn passed(&mut self, piece: &[u8], terminal: &mut Terminal<'_>) {
        if self.passed == 0 && self.total.is_none() {
            self.total = only_file(piece);
        }
        self.passed += u64::try_from(piece.len()).unwrap_or_default();
        let now = Instant::now();
        if self.shown && now >= self.next {
            self.next = now + RHYTHM;
            let line = line(self.passed, self.total, now - self.began);
            terminal.hint(&format!("\r{line}\x1b[K"));
        }
    }

    /// Removes the bar.
    pub(super) fn end(&self, terminal: &mut Terminal<'_>) {
        if self.shown {
            terminal.hint("\r\x1b[K");
        }
    }
}

/// The size of the first file in a stream.
fn only_file(piece: &[u8]) -> Option<u64> {
    let header = tar::Header::from_byte_slice(piece.get(..BLOCK)?);
    let is_file = header.entry_type().is_file() || header.entry_type().is_gnu_sparse();
    is_file.then(|| header.entry_size().ok()).flatten()
}

/// The total size of all files to copy; `None` if there are too many to count.
pub(super) fn size_of(path: &Path) -> Option<u64> {
    let mut left: Vec<PathBuf> = vec![path.to_owned()];
    let (mut size, mut count) = (0_u64, 0);
    while let Some(path) = left.pop() {
        count += 1;
        if count > MAX_COUNTED {
            return None;
        }
        let Ok(found) = fs::symlink_metadata(&path) else {
            continue;
        };
        if found.is_file() {
            size = size.saturating_add(found.len());
        }
        if found.is_dir() {
            let entries = fs::read_dir(&path).into_iter().flatten().flatten();
            left.extend(entries.map(|entry| entry.path()));
        }
    }
    Some(size)
}

fn line(passed: u64, total: Option<u64>, elapsed: Duration) -> String {
    let millis = u64::try_from(elapsed.as_millis())
        .unwrap_or(u64::MAX)
        .max(1);
    let rate = binary(passed.saturating_mul(1000) / millis);
    match total.filter(|total| *total > 0) {
        Some(total) => {
            // The count includes tar headers, so it may exceed the total.
            let done = passed.min(total);
            let filled = usize::try_from(done * WIDTH / total).unwrap_or_default();
            let empty = usize::try_from(WIDTH).unwrap_or_default() - filled;
            format!(
                "[{}{}] {:3}% {} of {}, {rate}/s",
                "#".repeat(filled),
                " ".repeat(empty),
                done * 100 / total,
                binary(done),
                binary(total)
            )
        }
        None => format!("{}, {rate}/s", binary(passed)),
    }
}

/// A number of bytes in binary units.
fn binary(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut tenths = bytes.saturating_mul(10);
    let mut unit = "B";
    for next in units {
        if tenths < 10_240 {
            break;
        }
        tenths /= 1024;
        unit = next;
    }
    match unit {
        "B" => format!("{bytes} B"),
        unit => format!("{}.{} {unit}", tenths / 10, tenths % 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_says_how_much_and_how_fast() {
        let second = Duration::from_secs(1);
        for (passed, total, expected) in [
            (0, None, "0 B, 0 B/s"),
            (1536, None, "1.5 KiB, 1.5 KiB/s"),
            (
                5 << 20,
                Some(10 << 20),
                "[############            ]  50% 5.0 MiB of 10.0 MiB, 5.0 MiB/s",
            ),
            (
                2048,
                Some(1024),
                "[########################] 100% 1.0 KiB of 1.0 KiB, 2.0 KiB/s",
            ),
            (512, Some(0), "512 B, 512 B/s"),
        ] {
            assert_eq!(line(passed, total, second), expected);
        }
    }
}
