//! The sum of a pod's requests.

use rubelet_api::{
    pod::Pod,
    pod_amounts::{self, Amounts},
    resource_name::{CPU, EPHEMERAL_STORAGE, MEMORY},
};

/// The requests of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PodRequests {
    /// Thousandths of a core.
    pub cpu: u64,
    /// Bytes.
    pub memory: u64,
    /// Bytes.
    pub ephemeral_storage: u64,
    /// Huge pages in bytes and extended resources, by name.
    pub scalars: Amounts,
}

/// Adds up a pod's requests: see [`pod_amounts::requests`].
#[must_use]
pub(crate) fn pod_requests(pod: &Pod) -> PodRequests {
    let mut sum = pod_amounts::requests(&pod.spec);
    let mut take = |name: &str| sum.remove(name).unwrap_or(0);
    PodRequests {
        cpu: take(CPU),
        memory: take(MEMORY),
        ephemeral_storage: take(EPHEMERAL_STORAGE),
        scalars: sum,
    }
}
