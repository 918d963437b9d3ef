//! A private environment of the embedded runtime for one test: directories, a bridge with a subnet,
//! a cgroup, and the images.

mod power;
mod served;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::mount::{MountFlags, mount};

use crate::agent::{AgentRuntime, binary};
use crate::command::stdout_of;
use crate::scratch::Scratch;
use crate::scratch::guard::ScratchGuard;
use crate::{CgroupDriver, CriTruth, cleanup, images, packages, sweep};

pub use served::Served;

/// The directory of images and records.
const ROOT: &str = "rt";
/// The directory of sockets and mounts. Short, because sockets of shims are deep below it.
const RUN: &str = "r";
/// The socket below [`RUN`] on which the CRI is served.
const SOCKET: &str = "cri.sock";
const CNI_CONFIGURATION: &str = "cni/conf";
/// The cgroup of the shims, below that of the instance.
const SHIMS: &str = "shims";

/// The environment of an embedded runtime, and everything that it creates there. All of it is
/// removed when the value is dropped.
#[derive(Debug)]
pub struct Embedded {
    scratch: ScratchGuard,
    program: PathBuf,
    subnet: String,
    driver: CgroupDriver,
}

impl Embedded {
    /// Creates the directories and loads the images of [`images`]. Installs missing packages, and
    /// first removes the leftovers of killed runs.
    ///
    /// # Errors
    /// When something can't be installed, or the images can't be loaded.
    pub fn start() -> Result<Self> {
        Self::start_program(&binary()?)
    }

    /// As [`Embedded::start`], with this `rubelet`.
    ///
    /// # Errors
    /// As [`Embedded::start`].
    pub fn start_program(program: &Path) -> Result<Self> {
        let embedded = Self::without_images(program)?;
        let archive = embedded.scratch.dir().join("images.tar");
        images::write_archive(&archive)?;
        embedded.image(&["load", &archive.display().to_string()])?;
        std::fs::remove_file(&archive)?;
        Ok(embedded)
    }

    /// As [`Embedded::start_program`], without any image.
    ///
    /// # Errors
    /// When something can't be installed, or a directory can't be made.
    pub fn without_images(program: &Path) -> Result<Self> {
        packages::ensure()?;
        sweep()?;
        // From here on, dropping the value removes what was created so far.
        let scratch = ScratchGuard::create()?;
        let embedded = Self {
            subnet: scratch.subnet(),
            scratch,
            program: program.to_owned(),
            driver: CgroupDriver::wanted()?,
        };
        for directory in [ROOT, RUN, CNI_CONFIGURATION] {
            embedded.scratch.subdir(directory)?;
        }
        cleanup::cgroups::create(embedded.scratch.tag())?;
        Ok(embedded)
    }

    /// The same with addresses for 1000 pods, reserved on this machine.
    ///
    /// # Errors
    /// When no such range is free.
    pub fn with_wide_subnet(mut self) -> Result<Self> {
        self.subnet = Scratch::wide_subnet()?;
        Ok(self)
    }

    /// The same with the run directory in memory, like `/run` on machines with systemd. The
    /// directory of an instance is on a disk.
    ///
    /// # Errors
    /// When nothing can be mounted there.
    pub fn with_run_dir_in_memory(self) -> Result<Self> {
        let run = self.run_dir();
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        mount("tmpfs", &run, "tmpfs", flags, c"mode=755")
            .with_context(|| format!("cannot mount a tmpfs at {}", run.display()))?;
        Ok(self)
    }

    /// The private directory and name of this instance.
    #[must_use]
    pub fn scratch(&self) -> &Scratch {
        &self.scratch
    }

    /// The directory of images, records and addresses.
    #[must_use]
    pub fn root_dir(&self) -> PathBuf {
        self.scratch.dir().join(ROOT)
    }

    /// The directory of sockets and mounts, which a reboot empties.
    #[must_use]
    pub fn run_dir(&self) -> PathBuf {
        self.scratch.dir().join(RUN)
    }

    /// The directory of CNI configurations; empty at first, so that pods are on the built-in bridge.
    #[must_use]
    pub fn cni_conf_dir(&self) -> PathBuf {
        self.scratch.dir().join(CNI_CONFIGURATION)
    }

    /// The directory of CDI specs; missing at first.
    #[must_use]
    pub fn cdi_spec_dir(&self) -> PathBuf {
        self.scratch.dir().join("cdi")
    }

    /// The directory of CNI plugins that takes precedence over the host's.
    #[must_use]
    pub fn cni_bin_dir(&self) -> PathBuf {
        self.scratch.dir().join("cni/bin")
    }

    /// The socket on which the CRI is served while a process runs the runtime.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.run_dir().join(SOCKET)
    }

    /// [`Embedded::socket`] as a CRI endpoint, `unix:///…`.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    /// The runtime's own state of pods and containers, while a process runs it.
    ///
    /// # Errors
    /// When no client can be made.
    pub fn truth(&self) -> Result<CriTruth> {
        CriTruth::new(&self.endpoint())
    }

    /// Runs `rubelet image` with these arguments; returns its standard output.
    ///
    /// # Errors
    /// It fails; the message contains its output.
    pub fn image(&self, words: &[&str]) -> Result<String> {
        let mut command = self.scratch.command(&self.program);
        command
            .arg("image")
            .args(words)
            .arg("--runtime-root-dir")
            .arg(self.root_dir())
            .arg("--runtime-run-dir")
            .arg(self.run_dir());
        stdout_of(&mut command)
    }

    /// The flags that `rubelet run` and `rubelet runtime serve` share.
    #[must_use]
    pub fn flags(&self) -> Vec<OsString> {
        let cgroup = format!("{}/{SHIMS}", self.scratch.cgroup_root());
        let cni_bin = format!("{},{}", self.cni_bin_dir().display(), packages::CNI_PLUGINS);
        let flags: [(&str, OsString); 9] = [
            ("--runtime-root-dir", self.root_dir().into()),
            ("--runtime-run-dir", self.run_dir().into()),
            ("--runtime-bridge", self.scratch.bridge().into()),
            ("--runtime-bridge-subnets", self.subnet.clone().into()),
            ("--runtime-cgroup", cgroup.into()),
            ("--runtime-cni-conf-dir", self.cni_conf_dir().into()),
            ("--runtime-cni-bin-dirs", cni_bin.into()),
            ("--runtime-cdi-spec-dirs", self.cdi_spec_dir().into()),
            (
                "--runtime-registry-hosts-dirs",
                self.scratch.registry_hosts_dir().into(),
            ),
        ];
        flags
            .into_iter()
            .flat_map(|(name, value)| [name.into(), value])
            .collect()
    }

    /// Removes everything of this instance now, and reports failures.
    ///
    /// # Errors
    /// What could not be removed.
    pub fn remove(mut self) -> Result<()> {
        self.scratch.remove()
    }
}

impl AgentRuntime for Embedded {
    fn scratch(&self) -> &Scratch {
        &self.scratch
    }

    fn agent_flags(&self) -> Vec<OsString> {
        self.flags()
    }

    fn runtime_log(&self) -> Option<PathBuf> {
        None
    }
}
