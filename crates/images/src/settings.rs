//! What an administrator can set about images.

use std::{path::PathBuf, time::Duration};

use crate::platform::Platform;

/// Settings of an [`ImageStore`](crate::ImageStore).
#[derive(Debug, Clone)]
pub struct ImageSettings {
    /// Registries, as `host` or `host:port`, that may speak plain HTTP or show any certificate.
    /// Those on loopback always may, as with docker and containerd.
    pub insecure_registries: Vec<String>,
    /// Further certificate authorities for all registries, beside those of the system: a PEM file.
    pub authorities: Option<PathBuf>,
    /// Folders with a folder of each registry, in which a `hosts.toml` says which mirrors are asked
    /// before it. Of several the first one that has a folder for a registry counts.
    pub hosts_dirs: Vec<PathBuf>,
    /// How registries are reached.
    pub proxy: Proxy,
    /// What images are chosen for.
    pub platform: Platform,
    /// Names of images that garbage collection should pass over. Short names are spelled out.
    pub pinned: Vec<String>,
    /// Bounds on what comes from others.
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

/// How registries are reached. Loopback, and plain HTTP, are always reached directly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proxy {
    /// As `HTTPS_PROXY` and `NO_PROXY` say.
    Environment,
    /// Directly.
    Direct,
    /// Through the proxy with this URL.
    Https(String),
}

/// Bounds on what comes from registries and archives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a manifest or index. The distribution specification asks for 4 MiB at least.
    pub manifest_bytes: u64,
    /// Bytes of an image's configuration file.
    pub config_bytes: u64,
    /// Layers of an image. Overlayfs takes 500, and one is the container's own.
    pub layers: usize,
    /// Layers that one pull downloads and unpacks at a time.
    pub parallel_layers: usize,
    /// Time to connect, TLS included.
    pub connect: Duration,
    /// The same for a host after which others can be asked.
    pub mirror_connect: Duration,
    /// Time in which such a host must begin to answer, other than with a blob.
    pub mirror_answer: Duration,
    /// Time without a byte after which a download is given up.
    pub idle: Duration,
    /// Time in which a download must get on by a part that is worth the wait; zero is for ever.
    pub progress: Duration,
    /// Bounds on what a layer may become.
    pub unpack: crate::unpack::UnpackLimits,
    /// How long layers of a pull that failed are kept for the next try.
    pub keep_orphans: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            manifest_bytes: 4 << 20,
            config_bytes: 8 << 20,
            layers: 250,
            parallel_layers: 3,
            connect: Duration::from_secs(30),
            mirror_connect: Duration::from_secs(5),
            mirror_answer: Duration::from_secs(15),
            idle: Duration::from_secs(60),
            progress: Duration::from_secs(5 * 60),
            unpack: crate::unpack::UnpackLimits::default(),
            keep_orphans: Duration::from_secs(30 * 60),
        }
    }
}
