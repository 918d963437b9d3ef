//! The layout of the cgroup hierarchies.

/// How the cgroup hierarchies are mounted, and so which version controls resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CgroupLayout {
    /// One hierarchy per controller, or per few controllers.
    V1,
    /// Like [`Self::V1`], with the unified hierarchy mounted beside them for systemd. Resources are
    /// controlled by version 1.
    Hybrid,
    /// The unified hierarchy only.
    V2,
}
