//! Packages that differ from the branch `main`, and their dependents.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::selection::RUNTIME_TESTS;
use crate::{git, workspace};

/// The package of the agent, which the tests of a runtime start.
const AGENT: &str = "rubelet";
/// The tests there are not run by `cargo xtask test` with a selection.
const FUZZ: &str = "fuzz/";

/// A package of the workspace.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Package {
    /// Relative to the workspace, with a slash at the end.
    directory: String,
    /// Names of packages it depends on, also in tests.
    dependencies: BTreeSet<String>,
}

type Packages = BTreeMap<String, Package>;

/// The packages whose tests are to be run, and the others.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Changed {
    pub(super) selected: BTreeSet<String>,
    pub(super) left_out: BTreeSet<String>,
}

/// Compares the files of the checkout, also those that are not committed, with `main`.
///
/// # Errors
/// There is no such branch, or cargo cannot list the packages.
pub(super) fn find(root: &Path) -> Result<Changed> {
    let base = git::output(root, &["merge-base", "main", "HEAD"])
        .context("--changed compares with the branch `main`")?;
    let mut files = git::output(root, &["diff", "--name-only", &base])?;
    files.push('\n');
    files += &git::output(root, &["ls-files", "--others", "--exclude-standard"])?;
    let packages = packages(root, &workspace::metadata(root)?);
    let files: Vec<&str> = files.lines().filter(|line| !line.is_empty()).collect();
    Ok(select(&packages, &files))
}

fn packages(root: &Path, metadata: &Value) -> Packages {
    let mut packages = Packages::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = package["name"].as_str().unwrap_or_default();
        let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default());
        let directory = manifest
            .parent()
            .and_then(|dir| dir.strip_prefix(root).ok());
        let dependencies = package["dependencies"].as_array().into_iter().flatten();
        packages.insert(
            name.to_owned(),
            Package {
                directory: format!("{}/", directory.unwrap_or(Path::new("")).display()),
                dependencies: dependencies
                    .filter_map(|one| one["name"].as_str().map(str::to_owned))
                    .collect(),
            },
        );
    }
    // They start the agent as a program.
    if let Some(tests) = packages.get_mut(RUNTIME_TESTS) {
        tests.dependencies.insert(AGENT.to_owned());
    }
    packages
}

/// The packages with one of the files and those that depend on them. A file outside of all packages
/// may matter to each.
fn select(packages: &Packages, files: &[&str]) -> Changed {
    let all: BTreeSet<String> = packages.keys().cloned().collect();
    let mut selected = BTreeSet::new();
    for file in files.iter().filter(|file| !file.starts_with(FUZZ)) {
        let owner = packages
            .iter()
            .find(|(_, package)| file.starts_with(&package.directory));
        match owner {
            Some((name, _)) => drop(selected.insert(name.clone())),
            None => selected = all.clone(),
        }
    }
    loop {
        let more: Vec<String> = packages
            .iter()
            .filter(|(name, package)| {
                !selected.contains(*name) && !package.dependencies.is_disjoint(&selected)
            })
            .map(|(name, _)| name.clone())
            .collect();
        if more.is_empty() {
            break;
        }
        selected.extend(more);
    }
    Changed {
        left_out: all.difference(&selected).cloned().collect(),
        selected,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn workspace() -> Packages {
        let package = |name: &str, dependencies: &[&str]| {
            serde_json::json!({
                "name": name,
                "manifest_path": format!("/w/crates/{name}/Cargo.toml"),
                "dependencies": dependencies
                    .iter()
                    .map(|name| serde_json::json!({ "name": name }))
                    .collect::<Vec<_>>(),
            })
        };
        let all = [
            package("base", &["libc"]),
            package("base-2", &[]),
            package("plan", &["base"]),
            package("rubelet", &["plan"]),
            package("rubelet-testbed", &[]),
        ];
        packages(Path::new("/w"), &serde_json::json!({ "packages": all }))
    }

    #[test]
    fn dependents_and_tests_that_start_the_agent_are_selected() {
        let found = select(&workspace(), &["crates/base/src/lib.rs"]);
        assert_eq!(
            found.selected,
            set(&["base", "plan", "rubelet", "rubelet-testbed"])
        );
        assert_eq!(found.left_out, set(&["base-2"]));
        let found = select(&workspace(), &["crates/base-2/src/lib.rs", "fuzz/a.rs"]);
        assert_eq!(found.selected, set(&["base-2"]));
    }

    #[test]
    fn a_file_outside_of_all_packages_selects_all() {
        let found = select(&workspace(), &["Cargo.lock"]);
        assert_eq!(found.left_out, set(&[]));
        assert_eq!(select(&workspace(), &[]).selected, set(&[]));
    }
}
