//! Rubelet's own options: the section `rubelet` of the configuration file, unknown to the kubelet.

use crate::field::{Field, FieldType, Kind, section};
use crate::go_duration;
use std::time::Duration;

section! {
    /// Options that only Rubelet has, under the key `rubelet` in the same file as the kubelet's.
    pub struct RubeletOptions {
        /// Path of the unix socket on which `rubelet get`, `logs` and other commands reach the
        /// agent.
        socket: String = "/run/rubelet/rubelet.sock".to_owned(), "socket", Unset, Works;
        /// Group that may use the socket besides root. Empty: root only.
        socket_group: String = String::new(), "socketGroup", Unset, Works;
        /// Image of the pod of `rubelet shell` if `--image` is not given. Empty: none.
        tool_image: String = String::new(), "toolImage", Unset, Works;
        /// Time between two relists of the runtime's containers.
        #[serde(with = "go_duration")]
        relist_period: Duration = Duration::from_secs(1), "relistPeriod", Unset, Works;
        /// Maximum number of sandboxes and containers that the runtime starts concurrently, and
        /// that it stops concurrently. 0 means 4 starts and 32 stops per processor.
        runtime_calls_at_once: u32 = 0, "runtimeCallsAtOnce", Counts, Works;
        /// How secrets and tokens of the API server's pods are stored on disk, for starts without
        /// the API server: `encrypted`, or `none` to store nothing.
        secrets_at_rest: String = "encrypted".to_owned(), "secretsAtRest", Unset, Works;
        /// File with the encryption key, mode 0600; created if it is missing. It can be on another
        /// device. The systemd credential `rubelet.secrets-key` takes precedence.
        secrets_key_file: String = "/etc/rubelet/secrets.key".to_owned(), "secretsKeyFile", Unset, Works;
        /// Effect of an edit of a manifest. `Replace`: its pod is terminated and, once it is removed
        /// completely, another one is started, as with the kubelet; a manifest that is removed and written
        /// again counts as edited. `InPlace`: the pod is kept, and only what the edit changes is
        /// restarted. Empty: `Replace` on a node of a cluster, else `InPlace`.
        static_pod_edits: String = String::new(), "staticPodEdits", Unset, Works;
        /// The embedded container runtime, which runs pods when `containerRuntimeEndpoint` is not
        /// given.
        runtime: EmbeddedRuntime = EmbeddedRuntime::default(), "runtime", Counts, Works;
        /// The audit log of the agent's socket and of the kubelet's port.
        audit: AuditOptions = AuditOptions::default(), "audit", Counts, Works;
        /// Pings from this node to others, for the metrics `rubelet_peer_...`.
        peer_pings: PeerPingOptions = PeerPingOptions::default(), "peerPings", Counts, Works;
    }
}

section! {
    /// Pings from this node to others. Their losses and round-trip times are metrics.
    pub struct PeerPingOptions {
        /// The other nodes, as addresses or host names; at most 256. Empty: no pings are sent.
        peers: Vec<String> = Vec::new(), "peers", Counts, Works;
        /// Time between two pings to a peer, at least 100ms.
        #[serde(with = "go_duration")]
        interval: Duration = Duration::from_secs(10), "interval", Unset, Works;
    }
}

section! {
    /// The audit log: requests to the agent, with user and response code.
    pub struct AuditOptions {
        /// Path of the log. Empty: nothing is recorded.
        path: String = String::new(), "path", Unset, Works;
        /// File with a Policy of `audit.k8s.io/v1` that selects what is recorded, at the levels
        /// `None` and `Metadata`. Empty: all requests, at `level`.
        policy_file: String = String::new(), "policyFile", Unset, Works;
        /// Level of all requests if there is no policy: `None` or `Metadata`. Empty: `Metadata`.
        level: String = String::new(), "level", Unset, Works;
        /// Size in MiB at which the log is rotated.
        max_size: u32 = 100, "maxSize", Unset, Works;
        /// Maximum number of old log files. 0: no limit.
        max_backups: u32 = 10, "maxBackups", Counts, Works;
        /// Maximum age of old log files, in days. 0: no limit.
        max_age: u32 = 0, "maxAge", Counts, Works;
    }
}

section! {
    /// The embedded container runtime.
    pub struct EmbeddedRuntime {
        /// Directory of images and all other data that persists across reboots.
        root_dir: String = "/var/lib/rubelet/runtime".to_owned(), "rootDir", Unset, Works;
        /// Directory of sockets, namespaces and all other data that a reboot removes.
        run_dir: String = "/run/rubelet/runtime".to_owned(), "runDir", Unset, Works;
        /// Path of the unix socket on which crictl and other clients reach the runtime. Empty:
        /// `cri.sock` in `runDir`. `none`: no socket.
        socket: String = String::new(), "socket", Unset, Works;
        /// The pod network. `cni`: a CNI configuration; without one the node is not ready. `bridge`: the
        /// built-in bridge. Empty: a CNI configuration if there is one, else the bridge on a standalone
        /// node; a node of a cluster waits for the configuration.
        network: String = String::new(), "network", Unset, Works;
        /// Name of the bridge to which pods are attached if there is no CNI configuration. The
        /// names of all objects that belong to it are derived from this one.
        bridge: String = "rubelet0".to_owned(), "bridge", Unset, Works;
        /// Subnets of the pods on the bridge: one of IPv4, one of IPv6, or both. A pod CIDR of the
        /// node takes precedence. Empty: an IPv4 subnet that is private to the machine.
        bridge_subnets: Vec<String> = Vec::new(), "bridgeSubnets", Counts, Works;
        /// Directory of CNI configurations. If it contains one, pods are attached to that network.
        cni_conf_dir: String = "/etc/cni/net.d".to_owned(), "cniConfDir", Unset, Works;
        /// Directories of CNI plugins.
        cni_bin_dirs: Vec<String> = vec!["/opt/cni/bin".to_owned(), "/usr/lib/cni".to_owned()], "cniBinDirs", Counts, Works;
        /// Directories of Container Device Interface (CDI) specs. If two directories have the same
        /// device, the later one takes precedence.
        cdi_spec_dirs: Vec<String> = vec!["/etc/cdi".to_owned(), "/var/run/cdi".to_owned()], "cdiSpecDirs", Counts, Works;
        /// Registries, as `host` or `host:port`, that may use plain HTTP or any certificate.
        /// Registries on loopback addresses always may.
        insecure_registries: Vec<String> = Vec::new(), "insecureRegistries", Counts, Works;
        /// File with additional certificate authorities for registries, in PEM format. Empty: those
        /// of the system only.
        registry_authorities: String = String::new(), "registryAuthorities", Unset, Works;
        /// Directories that configure registry mirrors, in containerd's format: a directory for each
        /// registry with a `hosts.toml`, or `_default` for all others. For each registry the first directory
        /// that configures it is used.
        registry_hosts_dirs: Vec<String> = vec!["/etc/rubelet/certs.d".to_owned()], "registryHostsDirs", Counts, Works;
        /// How long the download of an image may continue without progress, that is less than 64 KiB
        /// in this time. A download that receives nothing for a minute is aborted in any case. 0: as
        /// long as data arrives.
        #[serde(with = "go_duration")]
        image_pull_progress_timeout: Duration = Duration::from_secs(5 * 60), "imagePullProgressTimeout", Counts, Works;
        /// Maximum disk usage of the log of one container, even if it writes more between two
        /// rotations: a quantity of bytes such as 100Mi, at least 2Mi. Beyond it the oldest entries
        /// are dropped. Empty: `containerLogMaxSize` times `containerLogMaxFiles`, at least 50Mi.
        /// 0: no limit.
        container_log_max_total: String = String::new(), "containerLogMaxTotal", Unset, Works;
        /// Destinations, besides the pods' own subnet, to which traffic of pods on the bridge is
        /// not masqueraded, such as the pod CIDR of a cluster.
        masquerade_exempt: Vec<String> = Vec::new(), "masqueradeExempt", Counts, Works;
        /// Whether pods on the bridge are isolated from one another: they reach the machine and
        /// external addresses, but no other pod, neither by its address nor by a host port.
        isolate_pods: bool = false, "isolatePods", Counts, Works;
        /// Parent cgroup of the shims, which supervise pods.
        cgroup: String = "/rubelet/shims".to_owned(), "cgroup", Unset, Works;
    }
}

impl EmbeddedRuntime {
    /// Path of the socket, if there is one.
    #[must_use]
    pub fn socket_path(&self) -> Option<String> {
        match self.socket.as_str() {
            "none" => None,
            "" => Some(format!("{}/cri.sock", self.run_dir)),
            path => Some(path.to_owned()),
        }
    }
}

impl RubeletOptions {
    /// Whether an edit of a manifest replaces its pod; `joined`: on a node of a cluster.
    #[must_use]
    pub fn replaces_static_pods(&self, joined: bool) -> bool {
        match self.static_pod_edits.as_str() {
            "Replace" => true,
            "InPlace" => false,
            _ => joined,
        }
    }

    /// The table of these fields.
    pub const FIELDS: &'static [Field] = match Self::KIND {
        Kind::Section(fields) => fields,
        _ => &[],
    };
}
