//! What git says of a checkout. Without git, or without a checkout, nothing.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::commit::{CLEAN, Commit, DIRTY, UNKNOWN, hash};

/// A checkout of the repository.
pub(crate) struct Checkout {
    /// What is checked out.
    pub(crate) commit: Commit,
    /// Files that change when another commit is checked out or made.
    pub(crate) watched: Vec<PathBuf>,
}

/// Looks at the checkout whose top is `root`; at the state of its tree only if `with_tree`.
pub(crate) fn look(root: &Path, with_tree: bool) -> Option<Checkout> {
    // A source archive may be unpacked inside of somebody else's repository. In a worktree `.git`
    // is a file.
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
    // The reflog of HEAD grows with each commit of this worktree, and with those of no other. A
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
    // A build that a git hook starts has them; they would lead to another repository.
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        command.env_remove(name);
    }
    let output = command.output().ok().filter(|out| out.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
