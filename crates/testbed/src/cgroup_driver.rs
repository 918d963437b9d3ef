//! Who makes the cgroups of a test's pods.

use anyhow::{Result, bail};

/// The environment variable that selects the driver.
pub const VARIABLE: &str = "RUBELET_TEST_CGROUP_DRIVER";

/// The drivers of kubelets and runtimes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CgroupDriver {
    /// The agent and the runtime make directories.
    Cgroupfs,
    /// systemd makes slices and scopes. It must be the first process of the machine.
    Systemd,
}

impl CgroupDriver {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Cgroupfs, Self::Systemd];

    /// The selection of the variable [`VARIABLE`]; cgroupfs if it is not set.
    ///
    /// # Errors
    /// When it names no driver.
    pub fn wanted() -> Result<Self> {
        match std::env::var(VARIABLE).ok().as_deref() {
            None | Some("" | "cgroupfs") => Ok(Self::Cgroupfs),
            Some("systemd") => Ok(Self::Systemd),
            Some(other) => {
                bail!("{VARIABLE} is `{other}`; the drivers are `cgroupfs` and `systemd`")
            }
        }
    }

    /// The value of [`VARIABLE`] for it, and of `cgroupDriver`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cgroupfs => "cgroupfs",
            Self::Systemd => "systemd",
        }
    }

    /// The cgroup with this path as a configuration names it, such as `systemReservedCgroup`.
    #[must_use]
    pub fn configured(self, path: &str) -> String {
        format!("/{}", self.directory(path))
    }

    /// The directory, in each hierarchy, of the cgroup with this path, such as `rubelet-tAbCdEf/kubepods/pod1`. The last
    /// component may be a scope.
    #[must_use]
    pub fn directory(self, path: &str) -> String {
        if self == Self::Cgroupfs {
            return path.to_owned();
        }
        let mut slice = String::new();
        let directories = path.split('/').map(|name| {
            if name.ends_with(".scope") {
                return name.to_owned();
            }
            if !slice.is_empty() {
                slice.push('-');
            }
            slice.push_str(&name.replace('-', "_"));
            format!("{slice}.slice")
        });
        directories.collect::<Vec<_>>().join("/")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_has_the_names_of_those_above_it() {
        let path = "rubelet-tAbCdEf/kubepods/pod1-2/rubelet-c1.scope";
        assert_eq!(CgroupDriver::Cgroupfs.directory(path), path);
        assert_eq!(
            CgroupDriver::Systemd.directory(path),
            "rubelet_tAbCdEf.slice/rubelet_tAbCdEf-kubepods.slice/rubelet_tAbCdEf-kubepods-pod1_2.slice/rubelet-c1.scope"
        );
    }
}
