//! The crates that the binary links, as cargo resolved them from Cargo.lock.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A linked crate.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Library {
    /// Its name.
    pub(crate) name: String,
    /// Its version.
    pub(crate) version: String,
    /// Its features, for crates of the workspace.
    pub(crate) features: Vec<String>,
    /// Its directory, for crates of the workspace.
    pub(crate) directory: Option<PathBuf>,
}

/// All crates that are linked into the binary for `target`, without procedural macros and without
/// dependencies only of builds or tests. Cargo.lock alone does not distinguish those.
///
/// # Errors
///
/// Cargo cannot be run, or its output is invalid.
pub(crate) fn linked(root: &Path, target: &str) -> Result<Vec<Library>, String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let features = std::env::var("CARGO_CFG_FEATURE").unwrap_or_default();
    let output = Command::new(&cargo)
        .current_dir(root)
        // Frozen: no network, and the lock file stays as it is.
        .args(["tree", "--frozen", "--package", "rubelet"])
        .args(["--edges", "normal,no-proc-macro", "--target", target])
        .args(["--prefix", "none", "--format", "{p}\t{f}"])
        .args(["--no-default-features", "--features", &features])
        .output()
        .map_err(|error| format!("cannot run {cargo}: {error}"))?;
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr);
        return Err(format!(
            "`cargo tree` cannot list the libraries: {}",
            reason.trim().replace('\n', "; ")
        ));
    }
    let text = String::from_utf8(output.stdout).map_err(|_| "cargo tree prints no UTF-8")?;
    parse(&text)
}

/// Parses lines such as `name v1.2.3 (/directory)`, a tab, and features. A repeated one ends in
/// `(*)`.
///
/// # Errors
///
/// A line has another format.
pub(crate) fn parse(text: &str) -> Result<Vec<Library>, String> {
    let mut found = BTreeMap::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let unknown = || format!("cargo tree prints a line of an unknown form: {line}");
        let line = line.strip_suffix(" (*)").unwrap_or(line);
        let (package, features) = line.split_once('\t').ok_or_else(unknown)?;
        let mut words = package.splitn(3, ' ');
        let name = words.next().ok_or_else(unknown)?;
        let version = words.next().and_then(|word| word.strip_prefix('v'));
        let version = version.ok_or_else(unknown)?;
        let directory = words
            .next()
            .and_then(|word| word.strip_prefix('(')?.strip_suffix(')'));
        let features = match directory {
            Some(_) => features
                .split(',')
                .filter(|word| !word.is_empty())
                .collect(),
            None => Vec::new(),
        };
        found.insert(
            (name.to_owned(), version.to_owned()),
            Library {
                name: name.to_owned(),
                version: version.to_owned(),
                features: features.into_iter().map(str::to_owned).collect(),
                directory: directory.map(PathBuf::from),
            },
        );
    }
    Ok(found.into_values().collect())
}

/// Features of the workspace's crates: `feature` for the program's own, else `crate/feature`.
pub(crate) fn features(libraries: &[Library]) -> Vec<String> {
    let mut all = Vec::new();
    for library in libraries {
        let prefix = match library.name.as_str() {
            "rubelet" => String::new(),
            other => format!("{other}/"),
        };
        all.extend(
            library
                .features
                .iter()
                .map(|feature| format!("{prefix}{feature}")),
        );
    }
    all
}

/// `name version` of each crate except the program itself.
pub(crate) fn versions(libraries: &[Library]) -> Vec<String> {
    libraries
        .iter()
        .filter(|library| library.name != "rubelet")
        .map(|library| format!("{} {}", library.name, library.version))
        .collect()
}
