//! Rules about the text of files: first lines, to-do marks, machine-specific names.

use super::Finding;
use super::files::is_generated;

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
/// Directories of developers' machines.
const MACHINE_PATHS: [&str; 4] = [
    concat!("/work", "/main"),
    concat!("/work", "/shared"),
    concat!("/work", "/."),
    concat!("/root/.", "cargo"),
];

/// The words after three backticks with which rustdoc compiles a block.
const RUST: [&str; 4] = ["rust", "no_run", "should_panic", "compile_fail"];

const SAY: &str = "say in a first line `//! ...` what the file is about";
const SHOW: &str = "show the main type in an example of Rust, between two lines of three backticks";
const FINISH: &str = "finish it now, or open an issue and leave no note";
const BY_NAME: &str = "take packages by name through the machine's own configuration";
const ANYWHERE: &str = "the project must work in any directory of any machine";

/// The violations in the text of the file at `path`.
pub(super) fn check(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut report = |line, rule, remedy| {
        findings.push(Finding {
            file: path.to_owned(),
            line,
            rule,
            remedy,
        });
    };
    if path.ends_with(".rs") && !is_generated(path) {
        if !text.starts_with("//!") {
            report(1, "the file does not begin with `//!`".to_owned(), SAY);
        }
        if is_front_page(path) && !has_example(text) {
            report(1, "the crate's front page has no example".to_owned(), SHOW);
        }
    }
    for (number, line) in (1..).zip(text.lines()) {
        if let Some(mark) = UNFINISHED.iter().find(|mark| has_word(line, mark)) {
            report(number, format!("`{mark}`: unfinished work"), FINISH);
        }
        if let Some(host) = REGISTRIES.iter().find(|host| line.contains(**host)) {
            report(number, format!("`{host}`: a registry's host name"), BY_NAME);
        }
        if let Some(found) = MACHINE_PATHS.iter().find(|found| line.contains(**found)) {
            report(
                number,
                format!("`{found}`: a path of one machine"),
                ANYWHERE,
            );
        }
    }
    findings
}

/// Whether the documentation of a crate begins in the file at `path`.
fn is_front_page(path: &str) -> bool {
    let in_crate = path.strip_prefix("crates/");
    in_crate.is_some_and(|path| {
        path.split_once('/')
            .is_some_and(|(_, file)| file == "src/lib.rs")
    })
}

/// Whether the documentation at the top of a file has an example that rustdoc compiles: a block of
/// Rust. Blocks of other languages (```` ```text ````), and Rust that is ignored, are not.
fn has_example(text: &str) -> bool {
    let mut opens = true;
    for line in text.lines() {
        let Some(info) = line.strip_prefix("//! ```") else {
            continue;
        };
        let mut words = info.split([',', ' ']).filter(|word| !word.is_empty());
        if opens && words.all(|word| RUST.contains(&word)) {
            return true;
        }
        // The line that ends a block looks as one that begins a block of Rust.
        opens = !opens;
    }
    false
}

/// Whether `word` is in `line` as a whole word.
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
    fn a_rust_file_begins_with_its_documentation() {
        let nothing: [usize; 0] = [];
        assert_eq!(rules("a.rs", "//! An idea.\n"), nothing);
        assert_eq!(rules("a.rs", "use x;\n"), [1]);
        assert_eq!(rules("crates/a/src/generated/a.rs", "use x;\n"), nothing);
        assert_eq!(rules("a.md", "text\n"), nothing);
    }

    #[test]
    fn the_front_page_of_a_crate_shows_an_example() {
        let example = "//! An idea.\n//!\n//! ```\n//! f();\n//! ```\n";
        assert_eq!(rules("crates/a/src/lib.rs", "//! An idea.\n"), [1]);
        for (path, text) in [
            ("crates/a/src/lib.rs", example),
            ("crates/a/src/b/lib.rs", "//! An idea.\n"),
            ("xtask/src/lib.rs", "//! An idea.\n"),
        ] {
            assert!(rules(path, text).is_empty(), "{path}");
        }
    }

    #[test]
    fn the_example_of_a_front_page_is_of_rust() {
        let block = |info: &str| format!("//! ```{info}\n//! f();\n//! ```\n");
        for (page, has_one) in [
            (block(""), true),
            (block("no_run"), true),
            (block("should_panic"), true),
            (block("compile_fail"), true),
            (block("rust,no_run"), true),
            (block("text"), false),
            (block("ignore"), false),
            (block("text") + &block("yaml"), false),
            (block("text") + &block(""), true),
        ] {
            let found = rules("crates/a/src/lib.rs", &format!("//! An idea.\n//!\n{page}"));
            assert_eq!(found.is_empty(), has_one, "{page}");
        }
    }

    #[test]
    fn to_do_marks_and_machine_specific_names_are_found() {
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
