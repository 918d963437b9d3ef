//! Dependencies that xtask and the tests share have the same features in both builds, so that they
//! are compiled once, and with them all that depends on them: `cargo xtask test` first compiles
//! xtask, then the workspace with all tests.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::Finding;
use crate::cargo;

const FILE: &str = "xtask/Cargo.toml";
const REMEDY: &str = "enable the same features there as all packages together do";

/// Asks cargo for both builds.
///
/// # Errors
/// cargo fails.
pub(super) fn check(root: &Path) -> Result<Vec<Finding>> {
    let alone = tree(
        root,
        &["--package", "xtask", "--edges", "normal,no-proc-macro"],
    )?;
    let together = tree(
        root,
        &["--workspace", "--edges", "normal,dev,no-proc-macro"],
    )?;
    Ok(compare(&alone, &together))
}

/// Lines such as `tokio v1.54.1|fs,net`.
fn tree(root: &Path, arguments: &[&str]) -> Result<String> {
    let mut command = cargo::command(root, &["tree", "--prefix", "none"]);
    command.args(["--format", "{p}|{f}"]).args(arguments);
    let output = command.output().context("cannot start cargo tree")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("cargo tree failed ({}): {said}", output.status);
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Package and features of each line; the mark of a repeated package is dropped.
fn packages(tree: &str) -> impl Iterator<Item = (&str, &str)> {
    tree.lines()
        .map(|line| line.trim_end_matches(" (*)"))
        .filter_map(|line| line.split_once('|'))
}

fn compare(alone: &str, together: &str) -> Vec<Finding> {
    let mut all: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (package, features) in packages(together) {
        all.entry(package).or_default().push(features);
    }
    let alone: BTreeSet<_> = packages(alone).collect();
    alone
        .into_iter()
        .filter_map(|(package, features)| {
            let wanted = all.get(package)?;
            (!wanted.contains(&features)).then(|| Finding {
                file: FILE.to_owned(),
                line: 0,
                rule: format!(
                    "{package} has the features {features:?} here and {:?} with all packages",
                    wanted[0]
                ),
                remedy: REMEDY,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dependency_with_fewer_features_than_in_tests_is_reported() {
        let together = "tokio v1.2.3|fs,net\nrustix v1.0.0|fs\ntokio v1.2.3|fs,net (*)\n";
        assert_eq!(compare("tokio v1.2.3|fs,net\n", together), []);
        // Not part of both.
        assert_eq!(compare("protox v1.0.0|bin\n", together), []);
        let found = compare("tokio v1.2.3|fs\nrustix v1.0.0|fs\n", together);
        assert_eq!(found.len(), 1);
        assert_eq!(
            found[0].rule,
            "tokio v1.2.3 has the features \"fs\" here and \"fs,net\" with all packages"
        );
    }
}
