//! Code that documents quote must be in the named file.

use std::collections::{HashMap, HashSet};

use super::Finding;
use super::files::File;

/// Prefix of an excerpt: an indented line with the path of a Rust file.
const BEGIN: &str = "    // crates/";
/// Markers of omitted lines.
const LEFT_OUT: &str = "...";

const QUOTE: &str = "quote the line as it is now";

/// The lines of excerpts in documents among `files` that are not in the excerpt's file.
pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let texts: HashMap<&str, &str> = files
        .iter()
        .map(|file| (file.path.as_str(), file.text.as_str()))
        .collect();
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.path.ends_with(".md")) {
        let mut quoted: Option<(&str, HashSet<&str>)> = None;
        for (number, line) in (1..).zip(file.text.lines()) {
            if line.starts_with(BEGIN) {
                let path = line.trim().trim_start_matches("// ");
                let lines = texts.get(path).map_or("", |text| text).lines();
                quoted = Some((path, lines.map(str::trim).collect()));
            } else if !line.is_empty() && !line.starts_with("    ") {
                quoted = None;
            } else if let Some((path, lines)) = &quoted
                && line.trim() != LEFT_OUT
                && !line.is_empty()
                && !lines.contains(line.trim())
            {
                findings.push(Finding {
                    file: file.path.clone(),
                    line: number,
                    rule: format!("`{path}` has no line `{}`", line.trim()),
                    remedy: QUOTE,
                });
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_line_that_its_file_does_not_have_is_found() {
        let file = |path: &str, text: &str| File {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        for (quote, lines) in [
            (
                "    // crates/a/src/b.rs\n    fn f() {\n        ...\n    }\n",
                &[][..],
            ),
            ("    // crates/a/src/b.rs\n    fn g() {\n", &[2]),
            ("    // crates/a/src/c.rs\n    fn f() {\n", &[2]),
            ("    // crates/a/src/b.rs\n\n    fn g() {\n", &[3]),
            ("    // crates/a/src/b.rs\nText.\n\n    fn g() {\n", &[]),
            ("    fn g() {\n", &[]),
        ] {
            let files = [
                file(
                    "crates/a/src/b.rs",
                    "mod c {\n    fn f() {\n        x();\n    }\n}\n",
                ),
                file("a.md", quote),
            ];
            let found: Vec<_> = check(&files).iter().map(|found| found.line).collect();
            assert_eq!(found, lines, "{quote}");
        }
    }
}
