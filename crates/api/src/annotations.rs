//! Annotations that say where a static pod came from.

/// 128 bits of the manifest's content; changes with each edit.
pub const CONFIG_HASH: &str = "kubernetes.io/config.hash";
/// `file`, `http` or `api`.
pub const CONFIG_SOURCE: &str = "kubernetes.io/config.source";
/// When the pod was first seen, RFC 3339. Takes no part in any comparison.
pub const CONFIG_SEEN: &str = "kubernetes.io/config.seen";
/// Stands on the API server's copy of a static pod.
pub const CONFIG_MIRROR: &str = "kubernetes.io/config.mirror";
/// Followed by a container's name: the AppArmor profile of old manifests.
pub(crate) const APPARMOR_PREFIX: &str = "container.apparmor.security.beta.kubernetes.io/";
