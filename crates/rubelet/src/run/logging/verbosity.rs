//! Which lines are written: `logging.verbosity`, and `logging.vmodule` for single source files.

use tracing::{Metadata, level_filters::LevelFilter};

/// The verbosity of all files.
#[derive(Debug, Clone, Default)]
pub(super) struct Verbosity {
    /// That of files that no pattern names.
    general: u32,
    /// Patterns of file names, and the verbosity there.
    files: Vec<(String, u32)>,
}

impl Verbosity {
    pub(super) fn new(general: u32, files: impl IntoIterator<Item = (String, u32)>) -> Self {
        Self {
            general,
            files: files.into_iter().collect(),
        }
    }

    /// True if the line is written.
    pub(super) fn shows(&self, line: &Metadata<'_>) -> bool {
        let is_own = line.target().starts_with("rubelet");
        *line.level() <= self.limit(is_own, line.file().unwrap_or_default())
    }

    /// The most detailed level of any line.
    pub(super) fn most(&self) -> LevelFilter {
        let files = self.files.iter().map(|(_, verbosity)| level(*verbosity));
        let general = [self.of_others(), level(self.general)];
        files.chain(general).max().unwrap_or(LevelFilter::INFO)
    }

    fn limit(&self, is_own: bool, path: &str) -> LevelFilter {
        let general = match is_own {
            true => level(self.general),
            false => self.of_others(),
        };
        // As in klog: the first pattern that matches counts, and it only adds lines.
        let mut files = self.files.iter();
        let named = files.find(|(pattern, _)| matches(pattern, path));
        named.map_or(general, |(_, verbosity)| general.max(level(*verbosity)))
    }

    /// Warnings and errors of libraries are always shown.
    fn of_others(&self) -> LevelFilter {
        match self.general {
            0..8 => LevelFilter::WARN,
            _ => LevelFilter::TRACE,
        }
    }
}

fn level(verbosity: u32) -> LevelFilter {
    match verbosity {
        0..=3 => LevelFilter::INFO,
        4..=5 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    }
}

/// True if a pattern names the source file: its name without `.rs`, or, if the pattern has a slash, the
/// end of its path.
fn matches(pattern: &str, path: &str) -> bool {
    let path = path.strip_suffix(".rs").unwrap_or(path);
    let parts = pattern.split('/').count();
    let starts = path.rmatch_indices('/').nth(parts - 1);
    let end = starts.map_or(path, |(at, _)| &path[at + 1..]);
    fits(pattern.as_bytes(), end.as_bytes())
}

/// `*` stands for any bytes but a slash, `?` for one of them.
fn fits(pattern: &[u8], text: &[u8]) -> bool {
    // Where the last star is, and how many bytes of the text it has taken: only that one may have to
    // take more, which keeps the time within the product of the lengths.
    let (mut at, mut read, mut star) = (0, 0, None);
    while read < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, read));
                at += 1;
                continue;
            }
            Some(b'?') if text[read] != b'/' => {
                (at, read) = (at + 1, read + 1);
                continue;
            }
            Some(byte) if *byte == text[read] => {
                (at, read) = (at + 1, read + 1);
                continue;
            }
            _ => {}
        }
        match star {
            Some((before, taken)) if text[taken] != b'/' => {
                star = Some((before, taken + 1));
                (at, read) = (before + 1, taken + 1);
            }
            _ => return false,
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_name_files_as_in_klog() {
        let path = "crates/kubelet/src/pod_task/run.rs";
        for (pattern, expected) in [
            ("run", true),
            ("r*", true),
            ("*", true),
            ("r?n", true),
            ("*u*", true),
            ("run*", true),
            ("ru", false),
            ("un", false),
            ("run?", false),
            ("run.rs", false),
            ("pod_task", false),
            ("pod_task/run", true),
            ("pod_*/run", true),
            ("*/*/run", true),
            ("src/run", false),
            ("src/*", false),
            ("kubelet/src/*/run", true),
            ("a/b/c/d/e/f/g/*", false),
        ] {
            assert_eq!(matches(pattern, path), expected, "{pattern}");
        }
        assert!(matches("main", "main.rs") && !matches("main", ""));
        let stars = "*a".repeat(40);
        assert!(!matches(&stars, &"a".repeat(39)));
    }

    #[test]
    fn a_file_has_more_lines_and_never_fewer() {
        let files = [("run*", 4), ("run", 9), ("quiet", 0)];
        let files = files.map(|(pattern, verbosity)| (pattern.to_owned(), verbosity));
        let verbosity = Verbosity::new(2, files.clone());
        let limit = |is_own, file: &str| verbosity.limit(is_own, file);
        assert_eq!(limit(true, "a/other.rs"), LevelFilter::INFO);
        assert_eq!(limit(true, "a/run.rs"), LevelFilter::DEBUG, "the first one");
        assert_eq!(limit(false, "a/run.rs"), LevelFilter::DEBUG);
        assert_eq!(limit(false, "a/other.rs"), LevelFilter::WARN);
        let verbosity = Verbosity::new(6, files);
        assert_eq!(verbosity.limit(true, "a/quiet.rs"), LevelFilter::TRACE);
        assert_eq!(verbosity.most(), LevelFilter::TRACE);
        assert_eq!(Verbosity::new(0, []).most(), LevelFilter::INFO);
        assert_eq!(Verbosity::new(8, []).limit(false, ""), LevelFilter::TRACE);
    }
}
