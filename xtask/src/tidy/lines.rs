//! Rules about the text of files: length, first line, notes to oneself, things of one machine.

use super::Finding;
use super::files::is_generated;

/// The most lines that a Rust file may have, its tests included.
const MOST_LINES: usize = 800;
/// Marks of unfinished work. Written in halves, so that this file doesn't find itself.
const UNFINISHED: [&str; 3] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X:"),
];
/// Parts of host names of package registries and their mirrors.
const REGISTRIES: [&str; 6] = [
    concat!("debian", ".org/debian"),
    concat!("index.crates", ".io"),
    concat!("static.crates", ".io"),
    concat!("pypi", ".org"),
    concat!("npmjs", ".org"),
    concat!("proxy.golang", ".org"),
];
/// Folders of the machines that the project is worked on.
const MACHINE_PATHS: [&str; 4] = [
    concat!("/work", "/main"),
    concat!("/work", "/shared"),
    concat!("/work", "/."),
    concat!("/root/.", "cargo"),
];

const SPLIT: &str = "split it; one file holds one idea";
const SAY: &str = "say in a first line `//! ...` what the file is about";
const FINISH: &str = "finish it now, or open an issue and leave no note";
const BY_NAME: &str = "take packages by name through the machine's own configuration";
const ANYWHERE: &str = "the project must work in any folder of any machine";

/// What is wrong with the text of the file at `path`.
pub(super) fn check(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut complain = |line, rule, remedy| {
        findings.push(Finding {
            file: path.to_owned(),
            line,
            rule,
            remedy,
        });
    };
    if path.ends_with(".rs") && !is_generated(path) {
        let count = text.lines().count();
        if count > MOST_LINES {
            complain(0, format!("{count} lines, more than {MOST_LINES}"), SPLIT);
        }
        if !text.starts_with("//!") {
            complain(1, "the file doesn't say what it is about".to_owned(), SAY);
        }
    }
    for (number, line) in (1..).zip(text.lines()) {
        if let Some(mark) = UNFINISHED.iter().find(|mark| has_word(line, mark)) {
            complain(number, format!("`{mark}`: unfinished work"), FINISH);
        }
        if let Some(host) = REGISTRIES.iter().find(|host| line.contains(**host)) {
            complain(number, format!("`{host}`: a registry's host name"), BY_NAME);
        }
        if let Some(found) = MACHINE_PATHS.iter().find(|found| line.contains(**found)) {
            complain(
                number,
                format!("`{found}`: a path of one machine"),
                ANYWHERE,
            );
        }
    }
    findings
}

/// Whether `word` stands in `line` by itself, not as part of a longer word.
pub(super) fn has_word(line: &str, word: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        !line[..at].ends_with(is_word) && !line[at + word.len()..].starts_with(is_word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(path: &str, text: &str) -> Vec<usize> {
        check(path, text)
            .iter()
            .map(|finding| finding.line)
            .collect()
    }

    #[test]
    fn a_rust_file_begins_by_saying_what_it_is_about() {
        let nothing: [usize; 0] = [];
        assert_eq!(rules("a.rs", "//! An idea.\n"), nothing);
        assert_eq!(rules("a.rs", "use x;\n"), [1]);
        assert_eq!(rules("crates/a/src/generated/a.rs", "use x;\n"), nothing);
        assert_eq!(rules("a.md", "text\n"), nothing);
    }

    #[test]
    fn a_file_of_more_than_800_lines_is_too_long() {
        assert_eq!(
            check("a.rs", &format!("//! x\n{}", "\n".repeat(799))).len(),
            0
        );
        assert_eq!(
            check("a.rs", &format!("//! x\n{}", "\n".repeat(800))).len(),
            1
        );
    }

    #[test]
    fn notes_to_oneself_and_things_of_one_machine_are_found_with_their_line() {
        for text in [
            format!("x\n# {}: later\n", UNFINISHED[0]),
            format!("x\nhttp://deb.{}\n", REGISTRIES[0]),
            format!("x\ncd {}\n", MACHINE_PATHS[0]),
        ] {
            assert_eq!(rules("README.md", &text), [2], "{text}");
        }
        assert!(rules("a.md", &format!("{}S of life\n", UNFINISHED[0])).is_empty());
    }
}
