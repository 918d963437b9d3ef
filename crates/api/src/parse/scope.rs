//! What of a pod its containers depend on.

use std::collections::{BTreeMap, HashSet};

/// What a container may refer to, and what of the pod holds for it.
pub(super) struct Scope<'a> {
    pub(super) volumes: &'a HashSet<String>,
    pub(super) containers: &'a HashSet<String>,
    pub(super) annotations: &'a BTreeMap<String, String>,
    /// `terminationGracePeriodSeconds`, where it is valid.
    pub(super) grace: Option<i64>,
    /// See [`Owner::strict`](super::handler::Owner::strict).
    pub(super) strict: bool,
    /// Whether the pod has a user namespace.
    pub(super) own_users: bool,
}
