//! The agent's own directories.

use std::{
    fs::DirBuilder,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use anyhow::Context as _;

/// The directory of the agent's own files, below the root directory.
pub(super) fn own_directory(root: &Path) -> PathBuf {
    root.join("rubelet")
}

/// The directory of the agent's records of pods, which it needs after a restart.
pub(super) fn records_directory(root: &Path) -> PathBuf {
    own_directory(root).join("pods")
}

/// The directory of operators' intents for pods.
pub(super) fn intents_directory(root: &Path) -> PathBuf {
    own_directory(root).join("intents")
}

/// Creates [`own_directory`] and the directories of the pods' records, which must survive a
/// restart.
pub(super) fn make_own_directories(root: &Path) -> anyhow::Result<()> {
    for directory in [records_directory(root), intents_directory(root)] {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&directory)
            .with_context(|| {
                format!(
                    "cannot create the directory of records {}",
                    directory.display()
                )
            })?;
    }
    Ok(())
}
