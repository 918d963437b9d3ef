//! Freezes all processes of a cgroup, and thaws them.

use std::{fs, io, path::PathBuf, time::Duration};

use rubelet_cgroup_plan::{CgroupLayout, CgroupPath};

use super::{
    CgroupFs,
    pause::pause,
    write::{WriteError, write_file},
};

/// Why a cgroup could not be frozen or thawed.
#[derive(Debug, thiserror::Error)]
pub enum FreezeError {
    /// Version 1 without the controller.
    #[error("cannot freeze the cgroup {0}: the cgroup controller `freezer` is not mounted")]
    NoController(CgroupPath),
    /// The state can't be changed.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The state can't be read.
    #[error("cannot read {}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// Some process can't be frozen, for example because it waits for a disk.
    #[error("the processes of the cgroup {path} did not stop within {within:?}")]
    Late {
        /// The cgroup.
        path: CgroupPath,
        /// The timeout.
        within: Duration,
    },
}

/// Interval of polling the state.
const LOOK: Duration = Duration::from_millis(2);

impl CgroupFs {
    /// Freezes all processes of the cgroup and its descendants, and waits until they are frozen. On
    /// a timeout they are thawed.
    ///
    /// # Errors
    /// See [`FreezeError`].
    pub fn freeze(&self, path: &CgroupPath, within: Duration) -> Result<(), FreezeError> {
        self.set_frozen(path, true)?;
        let mut waited = Duration::ZERO;
        loop {
            if self.is_frozen(path)? {
                return Ok(());
            }
            if waited >= within {
                self.set_frozen(path, false)?;
                let path = path.clone();
                return Err(FreezeError::Late { path, within });
            }
            pause(LOOK);
            waited += LOOK;
        }
    }

    /// Thaws the processes of the cgroup. Does nothing if they are not frozen.
    ///
    /// # Errors
    /// See [`FreezeError`].
    pub fn thaw(&self, path: &CgroupPath) -> Result<(), FreezeError> {
        self.set_frozen(path, false)
    }

    /// Whether all processes of the cgroup are frozen.
    pub(super) fn is_frozen(&self, path: &CgroupPath) -> Result<bool, FreezeError> {
        let (file, frozen) = match self.layout {
            CgroupLayout::V2 => ("cgroup.events", "frozen 1"),
            CgroupLayout::V1 | CgroupLayout::Hybrid => ("freezer.state", "FROZEN"),
        };
        let file = self.freezer_file(path, file)?;
        let text =
            fs::read_to_string(&file).map_err(|source| FreezeError::Read { file, source })?;
        Ok(text.lines().any(|line| line == frozen))
    }

    fn set_frozen(&self, path: &CgroupPath, frozen: bool) -> Result<(), FreezeError> {
        let (file, value) = match (self.layout, frozen) {
            (CgroupLayout::V2, true) => ("cgroup.freeze", "1"),
            (CgroupLayout::V2, false) => ("cgroup.freeze", "0"),
            (CgroupLayout::V1 | CgroupLayout::Hybrid, true) => ("freezer.state", "FROZEN"),
            (CgroupLayout::V1 | CgroupLayout::Hybrid, false) => ("freezer.state", "THAWED"),
        };
        Ok(write_file(&self.freezer_file(path, file)?, value, None)?)
    }

    fn freezer_file(&self, path: &CgroupPath, file: &str) -> Result<PathBuf, FreezeError> {
        let dir = self.controller_dir("freezer", path);
        let dir = dir.ok_or_else(|| FreezeError::NoController(path.clone()))?;
        Ok(dir.join(file))
    }
}
