//! The pod and container that the path of a session names.

use rubelet_server::PodRef;

/// The pod and container that the path of a session names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SessionPath {
    pub(super) pod: PodRef,
    pub(super) uid: Option<String>,
    /// Empty for ports.
    pub(super) container: String,
}

impl SessionPath {
    /// Reads namespace, name and perhaps UID of a pod.
    pub(super) fn new(pod: &[&str], container: &str) -> Self {
        let segment = |at: usize| pod.get(at).copied().unwrap_or_default().to_owned();
        Self {
            pod: PodRef {
                namespace: segment(0),
                name: segment(1),
            },
            uid: pod.get(2).map(|uid| (*uid).to_owned()),
            container: container.to_owned(),
        }
    }
}
