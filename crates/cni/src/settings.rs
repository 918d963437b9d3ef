//! Settings of the pods' network.

use std::{path::PathBuf, time::Duration};

use crate::Cidr;

/// The provider of the network of new pods. Existing ones keep theirs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NetworkChoice {
    /// The CNI configuration if there is one, else the built-in bridge.
    #[default]
    Any,
    /// The CNI configuration. Without one the network is not ready.
    Cni,
    /// The built-in bridge, even if there are CNI configurations.
    Bridge,
}

/// Settings of the pods' network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkSettings {
    /// The provider of the network of new pods.
    pub choice: NetworkChoice,
    /// The directory of CNI configurations.
    pub cni_conf_dir: PathBuf,
    /// The directories of CNI plugins, in search order.
    pub cni_bin_dirs: Vec<PathBuf>,
    /// The cache of CNI results in libcni's format, which plugins and other runtimes read.
    pub cni_cache_dir: PathBuf,
    /// The directory of the network's own records.
    pub state_dir: PathBuf,
    /// The name of the bridge: all other names on the host derive from it, so that two runtimes
    /// with bridges of different names never touch each other. At most 15 bytes.
    pub bridge_name: String,
    /// The ranges of pod addresses, at most one of each family. Without any, a range that does not
    /// overlap with others on this host is chosen and stored.
    pub subnets: Vec<Cidr>,
    /// Destinations outside of the pods' own ranges that see the pods' addresses instead of the
    /// host's.
    pub masquerade_exempt: Vec<Cidr>,
    /// Whether pods on the bridge are isolated from each other: they reach the host and external
    /// addresses, and no other pod, by its address or by a host port.
    pub isolate_pods: bool,
    /// The MTU of the pods' interfaces; without it, that of the host's default route.
    pub mtu: Option<u32>,
    /// Timeout of one CNI plugin.
    pub plugin_deadline: Duration,
}

impl NetworkSettings {
    /// The usual directories and names, with records below `state_dir`.
    #[must_use]
    pub fn new(state_dir: PathBuf) -> Self {
        Self {
            choice: NetworkChoice::default(),
            cni_conf_dir: "/etc/cni/net.d".into(),
            cni_bin_dirs: vec!["/opt/cni/bin".into(), "/usr/lib/cni".into()],
            cni_cache_dir: "/var/lib/cni".into(),
            state_dir,
            bridge_name: "rubelet0".to_owned(),
            subnets: Vec::new(),
            masquerade_exempt: Vec::new(),
            isolate_pods: false,
            mtu: None,
            plugin_deadline: Duration::from_secs(60),
        }
    }
}
