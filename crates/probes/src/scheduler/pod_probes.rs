//! The probes of one pod.

use rubelet_base::ContainerId;

/// The probes of one pod.
#[derive(Debug, Default)]
pub(super) struct PodProbes {
    /// Its probes, by their numbers.
    pub(super) probes: Vec<u32>,
    /// The last instance of each container that was tried.
    pub(super) instances: Vec<(Box<str>, ContainerId)>,
}
