//! The checkout's state according to git. Without git or a checkout, there is none.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::commit::{CLEAN, Commit, DIRTY, UNKNOWN, hash};

/// A checkout of the repository.
pub(crate) struct Checkout {
    /// The checked-out commit.
    pub(crate) commit: Commit,
    /// Files that change when another commit is checked out or created.
    pub(crate) watched: Vec<PathBuf>,
}

/// Inspects the checkout whose root is `root`; the state of its tree only if `with_tree`.
pub(crate) fn look(root: &Path, with_tree: bool) -> Option<Checkout> {
    // A source archive may be unpacked inside another repository. In a worktree `.git` is a file.
    if !root.join(".git").exists() {
        return None;
    }
    let git = |arguments: &[&str]| ask(root, arguments);
    let directory = PathBuf::from(git(&["rev-parse", "--absolute-git-dir"])?);
    let id = hash(&git(&["rev-parse", "HEAD"])?)?;
    let tree = match with_tree {
        false => UNKNOWN,
        true if git(&["status", "--porcelain"])?.is_empty() => CLEAN,
        true => DIRTY,
    };
    let seconds = git(&["log", "-1", "--format=%ct"])?.parse().ok();
    // The reflog of HEAD grows with each commit of this worktree, and not with those of others. A
    // repository without reflogs has the branch's own file, or all branches in one.
    let mut watched = vec![directory.join("HEAD")];
    let reflog = directory.join("logs/HEAD");
    if reflog.exists() {
        watched.push(reflog);
    } else if let Some(shared) = git(&["rev-parse", "--git-common-dir"]) {
        let shared = root.join(shared);
        watched.push(shared.join("packed-refs"));
        if let Some(branch) = git(&["symbolic-ref", "--quiet", "HEAD"]) {
            watched.push(shared.join(branch));
        }
    }
    if with_tree {
        watched.push(directory.join("index"));
    }
    Some(Checkout {
        commit: Commit { id, seconds, tree },
        watched,
    })
}

fn ask(root: &Path, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    command
        .arg("--no-optional-locks")
        .args(arguments)
        .current_dir(root);
    // A build that a git hook starts inherits them; they would refer to another repository.
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        command.env_remove(name);
    }
    let output = command.output().ok().filter(|out| out.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
