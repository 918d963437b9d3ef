//! Settings of images.

use std::{path::PathBuf, time::Duration};

use crate::platform::Platform;

/// Settings of an [`ImageStore`](crate::ImageStore).
#[derive(Debug, Clone)]
pub struct ImageSettings {
    /// Registries, as `host` or `host:port`, that may use plain HTTP or unverified certificates.
    /// Those on loopback always may, as in docker and containerd.
    pub insecure_registries: Vec<String>,
    /// Additional certificate authorities for all registries: a PEM file.
    pub authorities: Option<PathBuf>,
    /// Directories with a directory for each registry, in which a `hosts.toml` names the mirrors
    /// that are tried before it. The first one with a directory for a registry counts.
    pub hosts_dirs: Vec<PathBuf>,
    /// The proxy for registries.
    pub proxy: Proxy,
    /// The platform that images are chosen for.
    pub platform: Platform,
    /// Names of images that garbage collection must skip. Short names are normalized.
    pub pinned: Vec<String>,
    /// Limits for untrusted content.
    pub limits: Limits,
}

impl Default for ImageSettings {
    fn default() -> Self {
        Self {
            insecure_registries: Vec::new(),
            authorities: None,
            hosts_dirs: Vec::new(),
            proxy: Proxy::Environment,
            platform: Platform::host(),
            pinned: Vec::new(),
            limits: Limits::default(),
        }
    }
}

/// The proxy for registries. Loopback, and plain HTTP, are always reached directly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proxy {
    /// As in `HTTPS_PROXY` and `NO_PROXY`.
    Environment,
    /// Directly.
    Direct,
    /// Through the proxy with this URL.
    Https(String),
}

/// Limits for content from registries and archives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a manifest or index. The distribution specification requires at least 4 MiB.
    pub manifest_bytes: u64,
    /// Layers of an image. Overlayfs supports 500, and one is the container's own.
    pub layers: usize,
    /// Layers that one pull downloads and unpacks at a time.
    pub parallel_layers: usize,
    /// Time to connect, TLS included.
    pub connect: Duration,
    /// The same for a host that is followed by others.
    pub mirror_connect: Duration,
    /// Time until such a host must start its response, except for a blob.
    pub mirror_answer: Duration,
    /// Time without a byte after which a download fails.
    pub idle: Duration,
    /// Time in which a download must make substantial progress; zero means no limit.
    pub progress: Duration,
    /// Limits for a layer.
    pub unpack: crate::unpack::UnpackLimits,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            manifest_bytes: 4 << 20,
            layers: 250,
            parallel_layers: 3,
            connect: Duration::from_secs(30),
            mirror_connect: Duration::from_secs(5),
            mirror_answer: Duration::from_secs(15),
            idle: Duration::from_secs(60),
            progress: Duration::from_secs(5 * 60),
            unpack: crate::unpack::UnpackLimits::default(),
        }
    }
}
