//! The files of the workspace and their names.

use std::path::Path;

use anyhow::{Context, Result};

use super::Finding;

/// Directories that are not part of the project; in a git worktree `.git` is a file.
const SKIPPED: [&str; 2] = [".git", "target"];
/// Names that do not describe their content.
const EMPTY_NAMES: [&str; 8] = [
    "common", "helper", "helpers", "manager", "misc", "mod", "util", "utils",
];
const RENAME: &str = "name it after what is inside, in the words of Kubernetes, CRI or OCI";
const NO_MOD: &str = "write `foo.rs` beside the directory `foo/`";

/// A text file.
pub(super) struct File {
    /// Its path relative to the root, with `/` between the parts.
    pub(super) path: String,
    /// Its content.
    pub(super) text: String,
}

/// All text files below `root`, ordered by path.
pub(super) fn all(root: &Path) -> Result<Vec<File>> {
    let mut files = Vec::new();
    collect(root, root, &mut files)?;
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn collect(root: &Path, dir: &Path, files: &mut Vec<File>) -> Result<()> {
    let entries =
        std::fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
    for entry in entries {
        let entry = entry?;
        let path = entry.path();
        let kind = entry.file_type()?;
        if SKIPPED.iter().any(|skipped| entry.file_name() == *skipped) {
            continue;
        }
        if kind.is_dir() {
            collect(root, &path, files)?;
        } else if kind.is_file()
            && let Ok(text) = std::fs::read_to_string(&path)
        {
            let path = path
                .strip_prefix(root)
                .unwrap_or(&path)
                .display()
                .to_string();
            files.push(File { path, text });
        }
    }
    Ok(())
}

/// Whether a file is generated and exempt from the style.
pub(super) fn is_generated(path: &str) -> bool {
    path.split('/').any(|part| part == "generated")
}

/// Names of modules that do not describe their content.
pub(super) fn check_name(path: &str) -> Vec<Finding> {
    let Some(stem) = path.strip_suffix(".rs") else {
        return Vec::new();
    };
    let finding = |rule, remedy| Finding {
        file: path.to_owned(),
        line: 0,
        rule,
        remedy,
    };
    let part = stem.split('/').find(|part| EMPTY_NAMES.contains(part));
    match part {
        Some("mod") => vec![finding("modules are not kept in mod.rs".to_owned(), NO_MOD)],
        Some(part) => vec![finding(
            format!("`{part}` does not describe its content"),
            RENAME,
        )],
        None => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_is_named_after_its_content() {
        for (path, expected) in [
            ("crates/a/src/sandbox.rs", 0),
            ("crates/a/src/utils.rs", 1),
            ("crates/a/src/common/x.rs", 1),
            ("crates/a/src/pods/mod.rs", 1),
            ("crates/a/src/pod_manager.rs", 0),
            ("docs/common/x.md", 0),
        ] {
            assert_eq!(check_name(path).len(), expected, "{path}");
        }
    }
}
