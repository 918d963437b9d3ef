//! The length of files: maximum, median, ninth decile.

use super::Finding;
use super::files::{File, is_generated};

/// Maximum number of lines of a Rust file, including its tests.
const MOST: usize = 600;
/// Half of the files have at most this many lines.
const MEDIAN: usize = 130;
/// Nine of ten files have at most this many lines.
const NINE_OF_TEN: usize = 300;
/// A long table, with a row for each field of a pod.
const TABLES: [&str; 1] = ["crates/api/src/fields/table.rs"];

const SPLIT: &str = "split it; one file holds one idea";
const SPLIT_SOME: &str = "split the longest files; one file holds one idea";

/// Files that are too long, individually or in total.
pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let counted = |file: &&File| {
        file.path.ends_with(".rs")
            && !is_generated(&file.path)
            && !TABLES.contains(&file.path.as_str())
    };
    let mut lengths: Vec<_> = files
        .iter()
        .filter(counted)
        .map(|file| (file.text.lines().count(), file.path.as_str()))
        .collect();
    lengths.sort_unstable();
    let mut findings: Vec<_> = lengths
        .iter()
        .filter(|(lines, _)| *lines > MOST)
        .map(|(lines, path)| finding(path, format!("{lines} lines, more than {MOST}"), SPLIT))
        .collect();
    for (name, share, most) in [("half", 50, MEDIAN), ("nine of ten", 90, NINE_OF_TEN)] {
        let at = (lengths.len() * share).div_ceil(100).saturating_sub(1);
        if let Some((lines, _)) = lengths.get(at)
            && *lines > most
        {
            let rule = format!("{name} of the files have at most {lines} lines, not {most}");
            findings.push(finding("crates", rule, SPLIT_SOME));
        }
    }
    findings
}

fn finding(path: &str, rule: String, remedy: &'static str) -> Finding {
    Finding {
        file: path.to_owned(),
        line: 0,
        rule,
        remedy,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_lengths(lengths: &[usize]) -> Vec<String> {
        let files: Vec<_> = (0..)
            .zip(lengths)
            .map(|(number, lines)| File {
                path: format!("crates/a/src/{number}.rs"),
                text: "\n".repeat(*lines),
            })
            .collect();
        let rules = check(&files).into_iter().map(|finding| finding.rule);
        rules.collect()
    }

    #[test]
    fn a_file_of_more_than_600_lines_is_too_long() {
        assert!(of_lengths(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 600]).is_empty());
        assert_eq!(
            of_lengths(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 601]),
            ["601 lines, more than 600"]
        );
    }

    #[test]
    fn half_of_the_files_and_nine_of_ten_are_short() {
        assert!(of_lengths(&[130, 130, 300, 300]).is_empty());
        assert_eq!(
            of_lengths(&[131, 131, 131, 131]),
            ["half of the files have at most 131 lines, not 130"]
        );
        let long = [1, 1, 1, 1, 1, 1, 1, 1, 301, 301];
        assert_eq!(
            of_lengths(&long),
            ["nine of ten of the files have at most 301 lines, not 300"]
        );
    }

    #[test]
    fn tables_and_generated_files_do_not_count() {
        for path in [TABLES[0], "crates/cri/src/generated/v1.rs"] {
            let file = File {
                path: path.to_owned(),
                text: "\n".repeat(1000),
            };
            assert!(check(&[file]).is_empty(), "{path}");
        }
    }
}
