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

/// Adds up a pod's requests: see [`pod_amounts::request`].
#[must_use]
pub(crate) fn pod_requests(pod: &Pod) -> PodRequests {
    let of = |name: &str| pod_amounts::request(&pod.spec, name).unwrap_or(0);
    PodRequests {
        cpu: of(CPU),
        memory: of(MEMORY),
        ephemeral_storage: of(EPHEMERAL_STORAGE),
        scalars: pod_amounts::scalar_requests(&pod.spec),
    }
}
