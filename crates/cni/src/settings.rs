//! What can be set.

use std::{path::PathBuf, time::Duration};

use crate::Cidr;

/// Where new pods get their network from. Those that have one keep it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NetworkChoice {
    /// A CNI configuration where there is one, else the built-in bridge.
    #[default]
    Any,
    /// A CNI configuration. Until there is one the network is not ready.
    Cni,
    /// The built-in bridge, whatever configurations there are.
    Bridge,
}

/// Settings of the pods' network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkSettings {
    /// Where pods get their network from.
    pub choice: NetworkChoice,
    /// Where CNI configurations are looked for.
    pub cni_conf_dir: PathBuf,
    /// Where CNI plugins are looked for, in this order.
    pub cni_bin_dirs: Vec<PathBuf>,
    /// Where CNI results are kept in libcni's form; plugins and other runtimes look there.
    pub cni_cache_dir: PathBuf,
    /// Where the network keeps its own records.
    pub state_dir: PathBuf,
    /// The name of the bridge: all other names on the host derive from it, so that two runtimes
    /// with bridges of different names never touch each other. At most 15 bytes.
    pub bridge_name: String,
    /// The ranges of pod addresses, at most one of each family. Without any, a range that overlaps
    /// with nothing on this host is chosen and kept.
    pub subnets: Vec<Cidr>,
    /// Destinations outside of the pods' own ranges that see the pods' addresses instead of the
    /// host's.
    pub masquerade_exempt: Vec<Cidr>,
    /// Whether pods on the bridge are kept from one another: they reach the host and what is
    /// outside, and no other pod, by its address or by a port of the host.
    pub isolate_pods: bool,
    /// The largest packet of the pods' interfaces; without it, that of the host's default route.
    pub mtu: Option<u32>,
    /// How long one CNI plugin may take.
    pub plugin_deadline: Duration,
}

impl NetworkSettings {
    /// The usual folders and names, with records below `state_dir`.
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
