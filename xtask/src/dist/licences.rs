//! THIRD-PARTY.txt: the licences of all linked packages, each text once.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::packages::Package;

/// Prefixes of the names of licence files, in lower case.
const NAMES: [&str; 6] = [
    "license",
    "licence",
    "copying",
    "copyright",
    "notice",
    "unlicense",
];
/// File extensions of source code, despite such a name.
const CODE: [&str; 6] = [".rs", ".c", ".h", ".py", ".go", ".toml"];
/// Maximum depth of C libraries within their package.
const DEPTH: usize = 6;
const RULE: &str =
    "================================================================================";

/// The whole file: first each package with its licence, then the texts, in the order of the
/// packages.
///
/// # Errors
///
/// A package has no text, and no other package of the same repository has it either.
pub(super) fn text(packages: &[Package]) -> Result<String> {
    let foreign: Vec<_> = packages
        .iter()
        .filter(|package| package.checksum.is_some())
        .collect();
    let mut own = Vec::new();
    for package in &foreign {
        let mut texts = Vec::new();
        collect(&package.directory, DEPTH, &mut texts)?;
        own.push(texts);
    }
    let mut file = "The program contains these packages, under these licences. \
                    The texts follow, each once.\n\n"
        .to_owned();
    let mut users: Vec<(&str, Vec<String>)> = Vec::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    let mut missing = Vec::new();
    for (package, texts) in foreign.iter().zip(&own) {
        let about = format!("{} {}", package.id.0, package.id.1);
        writeln!(file, "{about}: {}", package.licence)?;
        // Some repositories contain the text in only one of their packages.
        let texts = match texts.is_empty() {
            false => Some(texts),
            true => foreign
                .iter()
                .zip(&own)
                .find(|(other, texts)| {
                    !texts.is_empty()
                        && package.repository.is_some()
                        && other.repository == package.repository
                        && other.licence == package.licence
                })
                .map(|(_, texts)| texts),
        };
        let Some(texts) = texts else {
            missing.push(about);
            continue;
        };
        for text in texts {
            let place = *places.entry(text).or_insert_with(|| {
                users.push((text, Vec::new()));
                users.len() - 1
            });
            if !users[place].1.contains(&about) {
                users[place].1.push(about.clone());
            }
        }
    }
    if !missing.is_empty() {
        bail!(
            "no licence text in {}: name the text's place here, or do without the package",
            missing.join(", ")
        );
    }
    for (text, names) in users {
        write!(file, "\n{RULE}\n{}\n{RULE}\n\n{text}\n", names.join(", "))?;
    }
    Ok(file)
}

/// Adds the texts below `directory`, ordered by path.
fn collect(directory: &Path, depth: usize, texts: &mut Vec<String>) -> Result<()> {
    let failed = || format!("cannot read {}", directory.display());
    let mut entries = std::fs::read_dir(directory)
        .with_context(failed)?
        .collect::<std::io::Result<Vec<_>>>()
        .with_context(failed)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    let names: Vec<_> = entries
        .iter()
        .map(|entry| entry.file_name().to_string_lossy().to_lowercase())
        .collect();
    // Beside a LICENSE, COPYING only explains the choice, or is the licence that is not chosen.
    let has_licence = names.iter().any(|name| name.starts_with("licen"));
    for (entry, name) in entries.iter().zip(&names) {
        let kind = entry.file_type().with_context(failed)?;
        if kind.is_dir() && depth > 0 {
            collect(&entry.path(), depth - 1, texts)?;
        } else if kind.is_file()
            && NAMES.iter().any(|begin| name.starts_with(begin))
            && !CODE.iter().any(|end| name.ends_with(end))
            && !(has_licence && name.starts_with("copying"))
        {
            let bytes = std::fs::read(entry.path()).with_context(failed)?;
            let text = normal(&String::from_utf8_lossy(&bytes));
            if !text.is_empty() {
                texts.push(text);
            }
        }
    }
    Ok(())
}

/// The text without differences between copies of the same: line ends, trailing spaces.
fn normal(text: &str) -> String {
    let lines: Vec<_> = text
        .trim_start_matches('\u{feff}')
        .lines()
        .map(str::trim_end)
        .collect();
    lines.join("\n").trim_matches('\n').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::packages::tests::package;

    fn with_files(name: &str, root: &Path, files: &[(&str, &str)]) -> Package {
        let mut package = package(name, &[]);
        package.directory = root.join(name);
        std::fs::create_dir_all(package.directory.join("c/lib")).unwrap();
        for (file, text) in files {
            std::fs::write(package.directory.join(file), text).unwrap();
        }
        package
    }

    #[test]
    fn each_text_appears_once_with_all_its_packages() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let a = with_files("a", root, &[("LICENSE-MIT", "Same.\r\n"), ("README", "no")]);
        let b = with_files(
            "b",
            root,
            &[
                ("license.md", "\u{feff}Same.  \n\n"),
                ("license.rs", "no"),
                ("COPYING", "no"),
                ("c/lib/COPYING", "Of C."),
            ],
        );
        let mut ours = package("rubelet-x", &[]);
        ours.checksum = None;
        let file = text(&[a, b, ours]).unwrap();
        assert_eq!(
            file,
            format!(
                "The program contains these packages, under these licences. The texts follow, each \
                 once.\n\na 1.0.0: MIT\nb 1.0.0: MIT\n\n{RULE}\na 1.0.0, b 1.0.0\n{RULE}\n\n\
                 Same.\n\n{RULE}\nb 1.0.0\n{RULE}\n\nOf C.\n"
            )
        );
    }

    #[test]
    fn a_package_without_text_takes_that_of_its_repository_or_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let mut a = with_files("a", root, &[("LICENSE", "Text.")]);
        let mut b = with_files("b", root, &[]);
        let error = text(&[a.clone(), b.clone()]).unwrap_err().to_string();
        assert!(error.starts_with("no licence text in b 1.0.0"), "{error}");
        a.repository = Some("https://localhost/r".to_owned());
        b.repository.clone_from(&a.repository);
        let file = text(&[a.clone(), b.clone()]).unwrap();
        assert!(file.contains("\na 1.0.0, b 1.0.0\n"), "{file}");
        b.licence = "ISC".to_owned();
        assert!(text(&[a, b]).is_err());
    }

    #[test]
    fn every_package_of_the_product_has_a_text() {
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let target = "x86_64-unknown-linux-gnu";
        let linked = super::super::packages::linked(workspace, "rubelet", target).unwrap();
        let file = text(&linked).unwrap();
        for package in linked.iter().filter(|package| package.checksum.is_some()) {
            assert!(file.contains(&format!("\n{} {}: ", package.id.0, package.id.1)));
        }
        let apache = "                                 Apache License\n";
        println!(
            "{} bytes, {} times",
            file.len(),
            file.matches(apache).count()
        );
        assert!(file.contains("zstd") && file.contains(apache.trim()));
    }
}
