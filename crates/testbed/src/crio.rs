//! One private CRI-O: its own directories, socket, network, cgroups and images. Debian has no package of it, so its
//! programs must be in a directory that the environment names.

mod config;
mod runc;
mod store;

use std::ffi::OsString;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::containerd::{HostPorts, setup};
use crate::daemon::Daemon;
use crate::scratch::guard::ScratchGuard;
use crate::{images, packages, sweep};
use store::Store;

/// The environment variable with the directory of the programs `crio`, `pinns` and `conmon`.
pub const VARIABLE: &str = "RUBELET_TEST_CRIO";
/// What must be there: CRI-O, its program for namespaces, and the one that watches a container.
const PROGRAMS: [&str; 3] = ["crio", "pinns", "conmon"];

/// A running private CRI-O.
#[derive(Debug)]
pub struct Crio {
    daemon: Daemon,
    store: Store,
}

impl Crio {
    /// Starts one, with the images of [`crate::images`]. Installs missing packages, and first removes the leftovers of
    /// killed runs.
    ///
    /// # Errors
    /// Its programs are not in the directory that [`VARIABLE`] names, a package can't be installed, or CRI-O is not ready
    /// within a minute; the message contains the end of its log.
    pub fn start() -> Result<Self> {
        let programs = programs()?;
        packages::ensure()?;
        packages::ensure_skopeo()?;
        sweep()?;
        // From here on, dropping the value removes what was created so far.
        let scratch = ScratchGuard::create()?;
        setup::write_network(&scratch, HostPorts::Mapped)?;
        let driver = match setup::overlays(&scratch)? {
            true => "overlay",
            false => "vfs",
        };
        config::write(&scratch, &programs, driver)?;
        let file = |name: &str| scratch.dir().join(name).into_os_string();
        let arguments = vec![
            "--config".into(),
            file(config::FILE),
            "--config-dir".into(),
            OsString::new(),
            "--registries-conf".into(),
            file(config::REGISTRIES_FILE),
            "--registries-conf-dir".into(),
            file("registries"),
        ];
        let crio = Self {
            store: Store::of(&scratch, driver),
            daemon: Daemon::new(scratch, "crio", programs, arguments),
        };
        let archive = crio.scratch().dir().join("images.tar");
        images::write_archive(&archive)?;
        crio.load(&archive, images::names())?;
        crio.resume()?;
        Ok(crio)
    }

    /// Loads images of these names from an archive of the test bed, and removes it.
    ///
    /// # Errors
    /// The archive lacks one, or it can't be copied.
    pub fn load(&self, archive: &Path, names: impl Iterator<Item = String>) -> Result<()> {
        self.store.load(self.scratch(), archive, names)?;
        Ok(std::fs::remove_file(archive)?)
    }

    /// Removes everything of this instance now, and reports failures.
    ///
    /// # Errors
    /// What could not be removed.
    pub fn remove(self) -> Result<()> {
        self.daemon.remove()
    }
}

/// The directory of its programs.
fn programs() -> Result<PathBuf> {
    let dir = std::env::var_os(VARIABLE).map(PathBuf::from);
    let dir = dir.with_context(|| {
        format!("set {VARIABLE} to a directory with crio, pinns and conmon: Debian has no CRI-O")
    })?;
    for name in PROGRAMS {
        let program = dir.join(name);
        ensure!(program.exists(), "{} is missing", program.display());
    }
    Ok(dir)
}

impl Deref for Crio {
    type Target = Daemon;

    fn deref(&self) -> &Daemon {
        &self.daemon
    }
}
