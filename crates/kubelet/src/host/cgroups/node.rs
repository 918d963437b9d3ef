//! The cgroup of all pods, and those of others that are limited to their reservations.

use rubelet_base::ErrorChain;
use rubelet_cgroup_plan::{CgroupDriver, CgroupPath, CgroupValues};
use rubelet_host::{
    cgroup::{EnsureError, RefusedValues},
    systemd::SystemdError,
};
use rubelet_node_plan::{
    CgroupNameError, existing_cgroup, kubepods_values,
    memory_qos::QosRequests,
    node_allocatable::{CgroupEnforcement, EnforcementError, LimitedCgroup, ReservedCgroup},
};

use super::PodCgroups;

/// Why the limits of such a cgroup are not in force.
#[derive(Debug, thiserror::Error)]
pub(super) enum NodeCgroupError {
    /// systemd refused.
    #[error(transparent)]
    Systemd(#[from] SystemdError),
    /// It can't be created.
    #[error(transparent)]
    Create(#[from] EnsureError),
    /// Some values were rejected; the others are in force.
    #[error(transparent)]
    Values(#[from] RefusedValues),
    /// Its name is invalid.
    #[error(transparent)]
    Name(#[from] CgroupNameError),
    /// Others create it, and have not done so.
    #[error("there is no cgroup {path}: {missing} must exist before the agent starts")]
    Missing {
        path: CgroupPath,
        /// A directory.
        missing: String,
    },
}

impl PodCgroups {
    /// The cgroup of all pods, with each driver.
    pub(in crate::host) fn kubepods(&self) -> Vec<CgroupPath> {
        let trees = [&self.systemd, &self.cgroupfs].into_iter();
        trees.map(|tree| tree.kubepods().clone()).collect()
    }

    /// Creates the cgroup of all pods and the tiers, and limits them and the reserved cgroups, also if
    /// somebody changed their limits.
    pub(in crate::host) fn enforce(&self, driver: Option<CgroupDriver>) -> Vec<CgroupEnforcement> {
        let driver = driver.unwrap_or(self.default_driver);
        let pods = self.ensure_kubepods(driver);
        let pods = pods.map_err(|error| EnforcementError(ErrorChain(&error).to_string()));
        let tiers = || {
            let ensured = self.ensure_tiers(driver);
            ensured.map_err(|error| EnforcementError(error.message))
        };
        let mut found = vec![CgroupEnforcement {
            cgroup: LimitedCgroup::Pods {
                components: self.components(),
            },
            result: pods.and_then(|()| tiers()),
        }];
        // After that of all pods, which has the controllers enabled for all below the root.
        found.extend(self.reserved.iter().map(|cgroup| {
            let limited = self.limit_reserved(cgroup, driver);
            CgroupEnforcement {
                cgroup: LimitedCgroup::Reserved(cgroup.clone()),
                result: limited.map_err(|error| EnforcementError(ErrorChain(&error).to_string())),
            }
        }));
        found
    }

    /// The name of the cgroup of all pods, as it is with the driver `cgroupfs`.
    fn components(&self) -> Vec<String> {
        let path = self.cgroupfs.kubepods();
        path.components().map(str::to_owned).collect()
    }

    /// Creates the cgroup of all pods and sets its limits.
    pub(super) fn ensure_kubepods(&self, driver: CgroupDriver) -> Result<(), NodeCgroupError> {
        let path = self.tree(driver).kubepods();
        let pods = self.tracked();
        let requests = QosRequests::of(pods.iter().map(AsRef::as_ref));
        let values = kubepods_values(&self.kubepods, requests, &self.tier_settings());
        self.start_slice(driver, path, "Kubernetes pods", &values)?;
        self.fs.ensure(path)?;
        Ok(self.fs.write(path, &values)?)
    }

    fn limit_reserved(
        &self,
        cgroup: &ReservedCgroup,
        driver: CgroupDriver,
    ) -> Result<(), NodeCgroupError> {
        let (path, values) = (existing_cgroup(&cgroup.name, driver)?, &cgroup.values);
        // systemd would create it, and the processes that it is for would not be in it.
        if self.fs.exists_somewhere(&path) {
            let description = format!("Limited by {}", cgroup.entry());
            self.start_slice(driver, &path, &description, values)?;
        }
        if let Some(missing) = self.fs.missing(&path, &controllers(values)) {
            let missing = missing.display().to_string();
            return Err(NodeCgroupError::Missing { path, missing });
        }
        Ok(self.fs.write(&path, values)?)
    }
}

/// The controllers without which the values can't be set. That of huge pages is not among them: its
/// absence limits nothing, and nothing is reserved of it.
fn controllers(values: &CgroupValues) -> Vec<&'static str> {
    let CgroupValues {
        cpu,
        cpu_quota,
        memory_limit,
        memory_min,
        memory_low,
        pids_limit,
        hugepages: _,
    } = values;
    [
        ("cpu", cpu.is_some() || cpu_quota.is_some()),
        (
            "memory",
            memory_limit.or(*memory_min).or(*memory_low).is_some(),
        ),
        ("pids", pids_limit.is_some()),
    ]
    .into_iter()
    .filter_map(|(controller, needed)| needed.then_some(controller))
    .collect()
}
