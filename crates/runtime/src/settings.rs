//! Settings of the runtime.

use std::{
    collections::BTreeMap,
    env,
    path::{Path, PathBuf},
};

use rubelet_cgroup_plan::{CgroupDriver, CgroupPath, CgroupPathError, runtime_cgroup};
use rubelet_cni::NetworkSettings;
use rubelet_images::ImageSettings;

use crate::executable::is_executable;

/// Settings of an [`EmbeddedRuntime`](crate::EmbeddedRuntime).
#[derive(Debug, Clone)]
pub struct RuntimeSettings {
    /// Directory for images, layers and records, which survive a reboot.
    pub root: PathBuf,
    /// Directory for sockets, namespaces and bundles of running pods, which are lost at a reboot.
    pub run: PathBuf,
    /// The driver that creates the cgroups of containers and shims.
    pub cgroup_driver: CgroupDriver,
    /// The parent of the shims' cgroups; a slice with the systemd driver.
    pub shim_cgroup: CgroupPath,
    /// The parent cgroup of pods that name none; kubelets always name one.
    pub pod_cgroup: CgroupPath,
    /// Runtime handlers besides the embedded one, and their programs, which have the command line
    /// of `runc`.
    pub handlers: BTreeMap<String, PathBuf>,
    /// The pods' network.
    pub network: NetworkSettings,
    /// Images.
    pub images: ImageSettings,
    /// Directories with CDI specifications. If two specify the same device, the later directory
    /// wins.
    pub cdi_spec_dirs: Vec<PathBuf>,
    /// Maximum bytes of one container's log between two rotations; 0 is unlimited.
    pub max_log_bytes: u64,
    /// The program that is executed as the shim, normally this program.
    pub executable: PathBuf,
    /// The version that the runtime reports.
    pub version: String,
}

/// The kubelet's defaults for rotation: five files of 10 MiB.
const LOG_BYTES: u64 = 50 << 20;

impl RuntimeSettings {
    /// The default settings below two directories. Looks up `runc` and `crun` on the `PATH`.
    ///
    /// # Panics
    /// Never: the cgroups' names are constants.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>, run: impl Into<PathBuf>) -> Self {
        let root = root.into();
        let cgroup = |path| CgroupPath::parse(path).expect("a constant path that is valid");
        Self {
            network: NetworkSettings::new(root.join("network")),
            root,
            run: run.into(),
            cgroup_driver: CgroupDriver::Cgroupfs,
            shim_cgroup: cgroup("/rubelet/shims"),
            pod_cgroup: cgroup("/rubelet/pods"),
            handlers: ["crun", "runc"]
                .into_iter()
                .filter_map(|name| Some((name.to_owned(), find_program(name)?)))
                .collect(),
            images: ImageSettings::default(),
            cdi_spec_dirs: ["/etc/cdi", "/var/run/cdi"].map(PathBuf::from).into(),
            max_log_bytes: LOG_BYTES,
            executable: "/proc/self/exe".into(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

impl RuntimeSettings {
    /// Sets the cgroup driver and the parent of the shims' cgroups: a directory or, with systemd,
    /// the slice of that name.
    ///
    /// # Errors
    /// The name is too long for a slice.
    pub fn set_cgroups(
        &mut self,
        driver: CgroupDriver,
        shims: &CgroupPath,
    ) -> Result<(), CgroupPathError> {
        self.shim_cgroup = runtime_cgroup::shims(shims, driver)?;
        self.cgroup_driver = driver;
        Ok(())
    }
}

/// A program on the `PATH`, or in the directories for system programs, which the `PATH` of a
/// service may lack.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/local/sbin", "/usr/sbin", "/usr/bin", "/sbin"].map(PathBuf::from);
    env::split_paths(&path)
        .filter(|dir| dir.is_absolute())
        .chain(usual)
        .map(|dir| dir.join(name))
        .find(|file| is_executable(Path::new(file)))
}
