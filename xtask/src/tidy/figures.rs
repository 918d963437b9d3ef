//! Figures belong to a commit: tables of SPECIFICATION.md follow a line that names it.

use super::Finding;
use super::files::File;

const FILE: &str = "SPECIFICATION.md";
/// Prefix of the line about the run, which `cargo xtask bench --record` writes.
const RUN: &str = "*Measured* is one run of commit ";
/// Minimum number of digits of an abbreviated commit hash.
const MIN_DIGITS: usize = 7;

/// The figures of the specification without a preceding line that names their commit.
pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let specification = files.iter().find(|file| file.path == FILE);
    specification.map_or_else(Vec::new, |file| without_commit(&file.text))
}

fn without_commit(text: &str) -> Vec<Finding> {
    let mut has_commit = false;
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        has_commit |= line.strip_prefix(RUN).is_some_and(begins_with_commit);
        if !has_commit && is_figure(line) {
            findings.push(Finding {
                file: FILE.to_owned(),
                line: number,
                rule: "a figure without its commit".to_owned(),
                remedy: "`cargo xtask bench --record` writes both",
            });
        }
    }
    findings
}

fn begins_with_commit(text: &str) -> bool {
    let letters = text.chars().take_while(char::is_ascii_hexdigit);
    letters.count() >= MIN_DIGITS
}

/// A row whose first cell is a name and whose last one, of five, is a number.
fn is_figure(line: &str) -> bool {
    let Some(cells) = line.strip_prefix("| `") else {
        return false;
    };
    let cells: Vec<&str> = cells.trim_end_matches('|').split('|').collect();
    let last = cells.last().map_or("", |cell| cell.trim());
    cells.len() == 5 && last.parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_follows_the_commit_it_was_measured_on() {
        let row = "| `rss_mib_0` | memory, MiB | 10 | 73 | 3.73 |\n";
        let lines = |text: &str| {
            without_commit(text)
                .iter()
                .map(|one| one.line)
                .collect::<Vec<_>>()
        };
        assert_eq!(lines(row), [1]);
        assert_eq!(
            lines(&format!("*Measured* is one run of today.\n{row}")),
            [2]
        );
        let good = format!("{RUN}4c55ba51459d on 2026-11-23: 2 cores.\n\n{row}");
        assert_eq!(lines(&good), [0; 0]);
        // Not measured, and another table.
        let others = "| `a_ms` | x, ms | 10 | | |\n| name | what | 3 |\n| `field` | 4 |\n";
        assert_eq!(lines(others), [0; 0]);
    }
}
