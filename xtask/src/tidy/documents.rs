//! What documents name must be there: files of the project, and tests in them.

use std::collections::HashMap;

use super::Finding;
use super::files::File;

/// First parts of paths that are the project's own wherever a document writes them.
const TOP: [&str; 7] = [
    "crates/",
    "docs/",
    "examples/",
    "fuzz/",
    "packaging/",
    "proto/",
    "xtask/",
];

const MOVED: &str = "write where it is now, or leave it out";

/// What the documents among `files` name and what is not there.
pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let known: HashMap<&str, &str> = files
        .iter()
        .map(|file| (file.path.as_str(), file.text.as_str()))
        .collect();
    let documents = files.iter().filter(|file| file.path.ends_with(".md"));
    let mut findings = Vec::new();
    for file in documents {
        for (number, line) in (1..).zip(file.text.lines()) {
            for (path, test) in names(line) {
                if let Some(rule) = missing(&known, path, test) {
                    findings.push(Finding {
                        file: file.path.clone(),
                        line: number,
                        rule,
                        remedy: MOVED,
                    });
                }
            }
        }
    }
    findings
}

/// Paths in the code spans of a line, with the test that may follow each.
fn names(line: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    let spans = line.split('`').skip(1).step_by(2);
    spans.filter_map(|span| {
        let is_path = TOP.iter().any(|top| span.starts_with(top))
            && !span.contains(['*', ' ', '{', '<'])
            && span
                .chars()
                .all(|c| c.is_ascii_lowercase() || !c.is_ascii_alphabetic());
        is_path.then(|| match span.split_once("::") {
            Some((path, test)) => (path, Some(test)),
            None => (span, None),
        })
    })
}

fn missing(known: &HashMap<&str, &str>, path: &str, test: Option<&str>) -> Option<String> {
    let path = path.trim_end_matches('/');
    let Some(text) = known.get(path) else {
        let below = format!("{path}/");
        let is_dir = known.keys().any(|file| file.starts_with(&below));
        return (!is_dir).then(|| format!("`{path}` is not there"));
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
    fn files_directories_and_tests_that_are_not_there_are_found() {
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
        assert_eq!(rules("x `crates/c` y"), ["`crates/c` is not there"]);
        assert_eq!(
            rules("`crates/a/src/b.rs::it_fails`"),
            ["`crates/a/src/b.rs` has no test `it_fails`"]
        );
    }
}
