//! Paths of the runtime's files.
//!
//! Files below the root directory survive a reboot, those below the run directory need not.

use std::{
    fs, io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

/// The directories of one runtime.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    root: PathBuf,
    run: PathBuf,
}

impl Layout {
    pub(crate) fn new(root: &Path, run: &Path) -> Self {
        Self {
            root: root.to_owned(),
            run: run.to_owned(),
        }
    }

    /// Creates the directories that the start needs.
    pub(crate) fn make(&self) -> Result<(), (PathBuf, io::Error)> {
        let dirs = [
            self.sandbox_records(),
            self.container_records(),
            self.sandboxes(),
        ];
        for dir in [&self.root, &self.run] {
            own_dir(dir).map_err(|error| (dir.clone(), error))?;
        }
        for dir in dirs {
            private_dir(&dir).map_err(|error| (dir, error))?;
        }
        Ok(())
    }

    pub(crate) fn sandbox_records(&self) -> PathBuf {
        self.root.join("sandboxes")
    }

    pub(crate) fn container_records(&self) -> PathBuf {
        self.root.join("containers")
    }

    pub(crate) fn sandbox_record(&self, id: &str) -> PathBuf {
        self.sandbox_records().join(format!("{id}.json"))
    }

    pub(crate) fn container_record(&self, id: &str) -> PathBuf {
        self.container_records().join(format!("{id}.json"))
    }

    pub(crate) fn images(&self) -> PathBuf {
        self.root.clone()
    }

    pub(crate) fn run(&self) -> &Path {
        &self.run
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// One directory per sandbox, named by its identifier.
    pub(crate) fn sandboxes(&self) -> PathBuf {
        self.run.join("sandboxes")
    }

    pub(crate) fn sandbox(&self, id: &str) -> SandboxDir {
        SandboxDir(self.sandboxes().join(id))
    }
}

/// The run directory of one sandbox.
#[derive(Debug, Clone)]
pub(crate) struct SandboxDir(PathBuf);

impl SandboxDir {
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The file on which the network namespace is bound.
    pub(crate) fn netns(&self) -> PathBuf {
        self.0.join("net")
    }

    /// The tmpfs for `/dev/shm` of all containers.
    pub(crate) fn shm(&self) -> PathBuf {
        self.0.join("shm")
    }

    pub(crate) fn hostname(&self) -> PathBuf {
        self.0.join("hostname")
    }

    pub(crate) fn resolv_conf(&self) -> PathBuf {
        self.0.join("resolv.conf")
    }

    pub(crate) fn hosts(&self) -> PathBuf {
        self.0.join("hosts")
    }

    pub(crate) fn containers(&self) -> PathBuf {
        self.0.join("containers")
    }

    /// The bundle of one container.
    pub(crate) fn bundle(&self, container: &str) -> PathBuf {
        self.containers().join(container)
    }
}

/// Creates a directory that only root may enter. Its parents stay accessible to everybody, because
/// they may contain other files, such as the agent's socket with its own group.
fn own_dir(dir: &Path) -> io::Result<()> {
    if let Some(parent) = dir.parent() {
        fs::create_dir_all(parent)?;
    }
    private_dir(dir)
}

/// Creates a directory and its parents, accessible to root only.
pub(crate) fn private_dir(dir: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn mode(dir: &Path) -> u32 {
        fs::metadata(dir).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn the_runtimes_directories_are_private_and_those_above_are_not() {
        let dir = tempfile::Builder::new()
            .prefix("rbt-runtime-")
            .tempdir()
            .unwrap();
        let usual = dir.path().join("usual");
        fs::create_dir(&usual).unwrap();
        let (root, run) = (dir.path().join("lib/root"), dir.path().join("above/run"));
        Layout::new(&root, &run).make().unwrap();
        assert_eq!(mode(&dir.path().join("above")), mode(&usual));
        assert_eq!((mode(&root), mode(&run)), (0o700, 0o700));
    }
}
