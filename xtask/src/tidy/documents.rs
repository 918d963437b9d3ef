//! References in documents must exist: files of the project, and tests in them.

use std::collections::HashMap;

use super::Finding;
use super::files::File;

/// First components of paths that are always the project's own.
const TOP: [&str; 7] = [
    "crates/",
    "docs/",
    "examples/",
    "fuzz/",
    "packaging/",
    "proto/",
    "xtask/",
];

/// A document whose paths are also relative to `crates/`.
const ARCHITECTURE: &str = "ARCHITECTURE.md";

const MOVED: &str = "write where it is now, or leave it out";

/// References of the documents among `files` that do not exist.
pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let known: HashMap<&str, &str> = files
        .iter()
        .map(|file| (file.path.as_str(), file.text.as_str()))
        .collect();
    let documents = files.iter().filter(|file| file.path.ends_with(".md"));
    let mut findings = Vec::new();
    for file in documents {
        for (number, line) in (1..).zip(file.text.lines()) {
            let relative = file.path == ARCHITECTURE;
            let in_crates = line_spans(line)
                .filter(|span| relative && is_path(span) && is_in_crate(&known, span))
                .map(|span| (format!("crates/{span}"), None));
            let named = names(line).map(|(path, test)| (path.to_owned(), test));
            let paths = named
                .chain(in_crates)
                .filter_map(|(path, test)| missing(&known, &path, test));
            let sources = ends_of_paths(line).filter(|end| {
                let is_checked = relative && is_in_crate(&known, end);
                !is_checked && !is_end_of_a_path(&known, end)
            });
            let sources = sources.map(|end| format!("no file ends with `{end}`"));
            findings.extend(paths.chain(sources).map(|rule| Finding {
                file: file.path.clone(),
                line: number,
                rule,
                remedy: MOVED,
            }));
        }
    }
    findings
}

/// The code spans of a line.
fn line_spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// Whether a code span is written like a path; capitals are placeholders.
fn is_path(span: &str) -> bool {
    let small = |c: char| c.is_ascii_lowercase() || !c.is_ascii_alphabetic();
    !span.contains(['*', ' ', '{', '<']) && span.chars().all(small)
}

/// Whether a path begins with the name of a crate, and continues below its sources.
fn is_in_crate(known: &HashMap<&str, &str>, path: &str) -> bool {
    let first = path.split_once("/src/").map(|(first, _)| first);
    first.is_some_and(|name| known.contains_key(&*format!("crates/{name}/Cargo.toml")))
}

/// Paths in the code spans of a line, each with the test that may follow.
fn names(line: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    line_spans(line).filter_map(|span| {
        let is_ours = TOP.iter().any(|top| span.starts_with(top)) && is_path(span);
        is_ours.then(|| match span.split_once("::") {
            Some((path, test)) => (path, Some(test)),
            None => (span, None),
        })
    })
}

/// The source files in the code spans of a line whose directories are in its context, such as
/// `queue.rs` after `pleg/src/`.
fn ends_of_paths(line: &str) -> impl Iterator<Item = &str> {
    line_spans(line).filter(|span| {
        let is_whole = TOP.iter().any(|top| span.starts_with(top));
        span.ends_with(".rs") && !is_whole && is_path(span)
    })
}

fn is_end_of_a_path(known: &HashMap<&str, &str>, end: &str) -> bool {
    let is_end = |path: &&str| {
        let rest = path.strip_suffix(end);
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
    };
    known.keys().any(is_end)
}

fn missing(known: &HashMap<&str, &str>, path: &str, test: Option<&str>) -> Option<String> {
    let path = path.trim_end_matches('/');
    let Some(text) = known.get(path) else {
        let below = format!("{path}/");
        let is_dir = known.keys().any(|file| file.starts_with(&below));
        return (!is_dir).then(|| format!("`{path}` does not exist"));
    };
    let test = test?;
    let has = text.contains(&format!("fn {test}("));
    (!has).then(|| format!("`{path}` has no test `{test}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn missing_files_directories_and_tests_are_found() {
        let rules = |text: &str| -> Vec<String> {
            let files = [
                file("crates/a/src/b.rs", "fn it_works() {}"),
                file("a.md", text),
            ];
            check(&files).into_iter().map(|found| found.rule).collect()
        };
        for good in [
            "`crates/a/src/b.rs`, `crates/a`, `crates/a/src/`",
            "`crates/a/src/b.rs::it_works`",
            "`crates/*/tests/`, `cargo run`, `docs of mine`, `crates/NAME/src`",
            "crates/c without a span",
        ] {
            assert_eq!(rules(good), [""; 0], "{good}");
        }
        assert_eq!(rules("x `crates/c` y"), ["`crates/c` does not exist"]);
        assert_eq!(
            rules("`crates/a/src/b.rs::it_fails`"),
            ["`crates/a/src/b.rs` has no test `it_fails`"]
        );
    }

    #[test]
    fn a_source_file_is_found_by_the_end_of_its_path() {
        let files = |text: &str| {
            [
                file("crates/a/src/deep/b.rs", ""),
                file("docs/a.md", text),
                file("notes.txt", "`gone.rs`"),
            ]
        };
        for good in ["`b.rs`", "`deep/b.rs`", "`X.rs`", "`*.rs`", "gone.rs"] {
            assert!(check(&files(good)).is_empty(), "{good}");
        }
        for bad in ["`c.rs`", "`eep/b.rs`", "`src/b.rs` and `b.rs`"] {
            assert_eq!(check(&files(bad)).len(), 1, "{bad}");
        }
    }

    #[test]
    fn the_architecture_names_paths_within_crates() {
        let files = |name: &str| {
            [
                file("crates/a/Cargo.toml", ""),
                file("crates/a/src/b.rs", ""),
                file(name, "`a/src/b.rs`, `a/src/`, `b.rs`, `a/src/c.rs`"),
            ]
        };
        let found = check(&files(ARCHITECTURE));
        let rules: Vec<_> = found.iter().map(|found| found.rule.as_str()).collect();
        assert_eq!(rules, ["`crates/a/src/c.rs` does not exist"]);
        let found = check(&files("docs/a.md"));
        let rules: Vec<_> = found.iter().map(|found| found.rule.as_str()).collect();
        assert_eq!(rules, ["no file ends with `a/src/c.rs`"]);
    }
}
