//! The kubelet's plugins that make volumes.

/// The kubelet's plugin for a kind of volumes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum VolumePlugin {
    /// Of `configMap`.
    ConfigMap,
    /// Of `downwardAPI`.
    DownwardApi,
    /// Of `emptyDir`.
    EmptyDir,
    /// Of `hostPath`.
    HostPath,
    /// Of `image`.
    Image,
    /// Of `projected`.
    Projected,
    /// Of `secret`.
    Secret,
}

impl VolumePlugin {
    /// Its name, such as `kubernetes.io/empty-dir`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ConfigMap => "kubernetes.io/configmap",
            Self::DownwardApi => "kubernetes.io/downward-api",
            Self::EmptyDir => "kubernetes.io/empty-dir",
            Self::HostPath => "kubernetes.io/host-path",
            Self::Image => "kubernetes.io/image",
            Self::Projected => "kubernetes.io/projected",
            Self::Secret => "kubernetes.io/secret",
        }
    }

    /// Its name as that of a directory, such as `kubernetes.io~empty-dir`. Source: upstream's
    /// `EscapeQualifiedName`.
    #[must_use]
    pub fn directory(self) -> String {
        self.as_str().replace('/', "~")
    }
}
