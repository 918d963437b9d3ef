//! Unoptimised builds have debug assertions only in the crates that the root manifest lists. Each crate with `unsafe`
//! code, which the standard library's own assertions check, or with assertions of its own is one of them.

use std::collections::BTreeSet;

use proc_macro2::{TokenStream, TokenTree};

use super::Finding;
use super::files::File;

const MANIFEST: &str = "Cargo.toml";
const TABLE: &str = "[profile.dev.package]";
const ENABLED: &str = "debug-assertions = true";
const LIST_IT: &str =
    "add `NAME = { debug-assertions = true }` to [profile.dev.package] of the root's Cargo.toml";
const REMOVE_IT: &str = "remove the line: the crate's tests take less time without";

/// Crates that need assertions and do not have them, and those that have them and need none.
pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let Some(manifest) = files.iter().find(|file| file.path == MANIFEST) else {
        return Vec::new();
    };
    let enabled: BTreeSet<&str> = enabled(&manifest.text).collect();
    let mut needing = BTreeSet::new();
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| needs_assertions(file)) {
        if let Some(package) = package_of(files, &file.path)
            && needing.insert(package)
            && !enabled.contains(package)
        {
            findings.push(finding(&file.path, package, "needs", LIST_IT));
        }
    }
    let ours = files.iter().filter_map(name_in_manifest);
    let needless = ours.filter(|package| enabled.contains(package) && !needing.contains(package));
    findings.extend(needless.map(|package| finding(MANIFEST, package, "does not need", REMOVE_IT)));
    findings
}

fn finding(path: &str, package: &str, what: &str, remedy: &'static str) -> Finding {
    Finding {
        file: path.to_owned(),
        line: 0,
        rule: format!("{package} {what} debug assertions in unoptimised builds"),
        remedy,
    }
}

/// The packages whose assertions are enabled.
fn enabled(manifest: &str) -> impl Iterator<Item = &str> {
    let mut lines = manifest.lines();
    lines.find(|line| *line == TABLE);
    lines
        .take_while(|line| !line.starts_with('['))
        .filter(|line| line.contains(ENABLED))
        .filter_map(|line| line.split_once(" = ").map(|(name, _)| name))
}

/// The package of a source file, from the manifest in the directory of its crate.
fn package_of<'a>(files: &'a [File], path: &str) -> Option<&'a str> {
    let (root, _) = path.split_once("/src/").or(path.split_once("/tests/"))?;
    let manifest = format!("{root}/{MANIFEST}");
    files
        .iter()
        .find(|file| file.path == manifest)
        .and_then(name_in_manifest)
}

fn name_in_manifest(file: &File) -> Option<&str> {
    let is_manifest = file.path.ends_with("/Cargo.toml");
    let mut lines = file.text.lines().filter(|_| is_manifest);
    lines.find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'))
}

fn needs_assertions(file: &File) -> bool {
    // Few files have the words, and fewer as more than part of a text.
    let mentions = |word: &str| memchr::memmem::find(file.text.as_bytes(), word.as_bytes());
    file.path.ends_with(".rs")
        && (mentions("unsafe").is_some() || mentions("debug_assert").is_some())
        && file.text.parse().is_ok_and(has_them)
}

fn has_them(tokens: TokenStream) -> bool {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let found = match token {
            TokenTree::Group(group) => has_them(group.stream()),
            TokenTree::Ident(name) => match name.to_string().as_str() {
                "unsafe" | "debug_assertions" => true,
                "debug_assert" | "debug_assert_eq" | "debug_assert_ne" => {
                    matches!(tokens.peek(), Some(TokenTree::Punct(next)) if next.as_char() == '!')
                }
                _ => false,
            },
            TokenTree::Punct(_) | TokenTree::Literal(_) => false,
        };
        if found {
            return true;
        }
    }
    false
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

    fn check_one(listed: &str, path: &str, text: &str) -> Vec<String> {
        let files = [
            file(
                "Cargo.toml",
                &format!("[profile.dev.package]\nother = {{ opt-level = 1 }}\n{listed}\n[x]\n"),
            ),
            file("crates/a/Cargo.toml", "[package]\nname = \"rubelet-a\"\n"),
            file(path, text),
        ];
        let found = check(&files).into_iter();
        found.map(|finding| finding.file).collect()
    }

    #[test]
    fn a_crate_has_assertions_if_it_needs_them_and_only_then() {
        let listed = "rubelet-a = { opt-level = 1, debug-assertions = true }";
        let (lib, test) = ("crates/a/src/lib.rs", "crates/a/tests/x/main.rs");
        for (path, text, needs) in [
            (lib, "fn f() { if x { unsafe { g() } } }", true),
            (lib, "unsafe impl Send for A {}", true),
            (lib, "fn f() { debug_assert!(x); }", true),
            (lib, "fn f() { debug_assert_eq!(x, 1); }", true),
            (lib, "const A: bool = cfg!(debug_assertions);", true),
            (test, "fn f() { unsafe { g() } }", true),
            (lib, "// No unsafe code.\nfn f() {}", false),
            (lib, "/// Is not unsafe.\nfn f() { g(\"unsafe\"); }", false),
            (lib, "fn f() { command().debug_assert(); }", false),
            (lib, "#![forbid(unsafe_code)]", false),
        ] {
            let (missing, needless): (&[&str], &[&str]) = match needs {
                true => (&[path], &[]),
                false => (&[], &["Cargo.toml"]),
            };
            assert_eq!(check_one("", path, text), missing, "{text}");
            assert_eq!(check_one(listed, path, text), needless, "{text}");
        }
    }
}
