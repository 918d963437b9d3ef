//! The packages that a binary links: `cargo tree` lists them and their dependencies, `cargo
//! metadata` their properties, Cargo.lock the checksums of their files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rubelet_testbed::command::stdout_of;
use serde_json::Value;

use super::lockfile::{self, Id};
use crate::cargo;

/// A linked package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Package {
    /// Its name and version.
    pub(super) id: Id,
    /// Its licence as an SPDX expression.
    pub(super) licence: String,
    /// Its repository, from its manifest.
    pub(super) repository: Option<String>,
    /// SHA-256 of the registry's file; none for packages of the workspace.
    pub(super) checksum: Option<String>,
    /// Its directory.
    pub(super) directory: PathBuf,
    /// Its dependencies.
    pub(super) dependencies: BTreeSet<Id>,
}

/// All packages that the binary of `root` links on `target`, with `root` itself and without
/// procedural macros, ordered by name.
///
/// # Errors
///
/// Cargo fails, or its outputs are inconsistent.
pub(super) fn linked(workspace: &Path, root: &str, target: &str) -> Result<Vec<Package>> {
    let tree = stdout_of(&mut cargo::command(
        workspace,
        &[
            "tree",
            "--locked",
            "--package",
            root,
            "--edges",
            "normal,no-proc-macro",
            "--target",
            target,
            "--prefix",
            "depth",
            "--format",
            "{p}",
        ],
    ))?;
    let metadata = stdout_of(&mut cargo::command(
        workspace,
        &[
            "metadata",
            "--locked",
            "--format-version=1",
            "--filter-platform",
            target,
        ],
    ))?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    let lock = std::fs::read_to_string(workspace.join("Cargo.lock"))?;
    join(&graph(&tree)?, &metadata, &lockfile::checksums(&lock))
}

/// The dependencies of each package of a tree. Each line has a depth, a name, a version, and
/// ignored text; the dependencies of a repeated package are omitted.
fn graph(tree: &str) -> Result<BTreeMap<Id, BTreeSet<Id>>> {
    let mut found: BTreeMap<Id, BTreeSet<Id>> = BTreeMap::new();
    let mut above: Vec<Id> = Vec::new();
    for line in tree.lines().filter(|line| !line.is_empty()) {
        let unknown = || format!("cannot parse a line of cargo tree: {line}");
        let digits = line
            .find(|c: char| !c.is_ascii_digit())
            .with_context(unknown)?;
        let depth: usize = line[..digits].parse().with_context(unknown)?;
        let mut words = line[digits..].split(' ');
        let name = words.next().with_context(unknown)?;
        let version = words.next().and_then(|word| word.strip_prefix('v'));
        let id = (name.to_owned(), version.with_context(unknown)?.to_owned());
        if depth > above.len() {
            bail!(unknown());
        }
        above.truncate(depth);
        if let Some(user) = above.last() {
            found.entry(user.clone()).or_default().insert(id.clone());
        }
        found.entry(id.clone()).or_default();
        above.push(id);
    }
    Ok(found)
}

fn join(
    graph: &BTreeMap<Id, BTreeSet<Id>>,
    metadata: &Value,
    checksums: &BTreeMap<Id, Option<String>>,
) -> Result<Vec<Package>> {
    let known = metadata["packages"]
        .as_array()
        .context("cargo metadata names no packages")?;
    let mut packages = Vec::new();
    for (id, dependencies) in graph {
        let (name, version) = id;
        let about = format!("{name} {version}");
        let mut same = known
            .iter()
            .filter(|one| one["name"] == *name && one["version"] == *version);
        let found = same
            .next()
            .with_context(|| format!("{about} is not in cargo metadata"))?;
        if same.next().is_some() {
            bail!("{about} comes from two sources");
        }
        let checksum = checksums
            .get(id)
            .with_context(|| format!("{about} is not in Cargo.lock"))?;
        if checksum.is_none() && !found["source"].is_null() {
            bail!("{about} has no checksum in Cargo.lock");
        }
        let licence = found["license"]
            .as_str()
            .with_context(|| format!("{about} has no licence"))?;
        let manifest = found["manifest_path"].as_str().map(Path::new);
        packages.push(Package {
            id: id.clone(),
            // The older form of "or", which is not valid in SPDX.
            licence: licence.replace('/', " OR ").replace("  ", " "),
            repository: found["repository"].as_str().map(str::to_owned),
            checksum: checksum.clone(),
            directory: manifest
                .and_then(Path::parent)
                .with_context(|| format!("{about} has no directory"))?
                .to_path_buf(),
            dependencies: dependencies.clone(),
        });
    }
    Ok(packages)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A package for tests.
    pub(in crate::dist) fn package(name: &str, dependencies: &[&str]) -> Package {
        let id = |name: &str| (name.to_owned(), "1.0.0".to_owned());
        Package {
            id: id(name),
            licence: "MIT".to_owned(),
            repository: None,
            checksum: Some("00".repeat(32)),
            directory: PathBuf::from("/nowhere"),
            dependencies: dependencies.iter().map(|name| id(name)).collect(),
        }
    }

    #[test]
    fn a_tree_becomes_a_graph_and_repeated_packages_keep_what_they_link() {
        let tree = "0a v1.0.0 (/x/a)\n1b v1.0.0\n2c v1.0.0\n1d v1.0.0\n2b v1.0.0 (*)\n";
        let graph = graph(tree).unwrap();
        let names = |name: &str| -> Vec<&str> {
            graph[&(name.to_owned(), "1.0.0".to_owned())]
                .iter()
                .map(|(name, _)| name.as_str())
                .collect()
        };
        assert_eq!(names("a"), ["b", "d"]);
        assert_eq!(names("b"), ["c"]);
        assert_eq!(names("c"), [""; 0]);
        assert_eq!(names("d"), ["b"]);
        for bad in ["a v1.0.0", "0a 1.0.0", "0", "0a v1.0.0\n2b v1.0.0"] {
            assert!(super::graph(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_package_of_a_registry_without_checksum_is_refused() {
        let metadata = serde_json::json!({ "packages": [{
            "name": "a", "version": "1.0.0", "license": "MIT/Apache-2.0",
            "source": "registry", "manifest_path": "/x/Cargo.toml",
        }]});
        let id = ("a".to_owned(), "1.0.0".to_owned());
        let graph = BTreeMap::from([(id.clone(), BTreeSet::new())]);
        let error = join(&graph, &metadata, &BTreeMap::from([(id.clone(), None)])).unwrap_err();
        assert_eq!(error.to_string(), "a 1.0.0 has no checksum in Cargo.lock");
        let sums = BTreeMap::from([(id, Some("00".to_owned()))]);
        let packages = join(&graph, &metadata, &sums).unwrap();
        assert_eq!(packages[0].licence, "MIT OR Apache-2.0");
    }
}
