//! Rubelet's own options: the section `rubelet` of the configuration file, unknown to the kubelet.

use crate::field::{Described, Field, Kind, section};
use crate::go_duration;
use std::time::Duration;

section! {
    /// Options that only Rubelet has. They stand under the key `rubelet` in the same file as the
    /// kubelet's, so that one file is enough.
    pub struct RubeletOptions {
        /// Path of the unix socket on which `rubelet get`, `logs` and the others talk to the agent.
        socket: String = "/run/rubelet/rubelet.sock".to_owned(), "socket", Unset, Works;
        /// Group that may use the socket beside root. Empty means root only.
        socket_group: String = String::new(), "socketGroup", Unset, Works;
        /// Image of the pod of `rubelet shell` where its `--image` is not given. Empty: none.
        tool_image: String = String::new(), "toolImage", Unset, Works;
        /// How often the runtime is asked for all of its containers.
        #[serde(with = "go_duration")]
        relist_period: Duration = Duration::from_secs(1), "relistPeriod", Unset, Works;
        /// How many sandboxes and containers the runtime starts at the same time, and how many it
        /// stops. 0 means 4 starts and 32 stops for each processor.
        runtime_calls_at_once: u32 = 0, "runtimeCallsAtOnce", Counts, Works;
        /// How secrets and tokens of pods of the API server are kept on disk, for starts without the
        /// API server: `encrypted`, or `none` for not at all.
        secrets_at_rest: String = "encrypted".to_owned(), "secretsAtRest", Unset, Works;
        /// File with the key for that, mode 0600; made where there is none. It can be on another
        /// device. A systemd credential `rubelet.secrets-key` goes first.
        secrets_key_file: String = "/etc/rubelet/secrets.key".to_owned(), "secretsKeyFile", Unset, Works;
        /// What an edit of a manifest does. `Replace`: its pod ends, and when nothing of it is left
        /// another one starts, as with the kubelet; a manifest that is removed and written again counts as
        /// edited. `InPlace`: the pod stays, and only what the edit concerns restarts. Empty: `Replace` on
        /// a node of a cluster, else `InPlace`.
        static_pod_edits: String = String::new(), "staticPodEdits", Unset, Works;
        /// The embedded container runtime, which runs pods when `containerRuntimeEndpoint` is not
        /// given.
        runtime: EmbeddedRuntime = EmbeddedRuntime::default(), "runtime", Counts, Works;
        /// The audit log of the agent's socket and of the node's port.
        audit: AuditOptions = AuditOptions::default(), "audit", Counts, Works;
        /// Pings from this node to others, for the metrics `rubelet_peer_...`.
        peer_pings: PeerPingOptions = PeerPingOptions::default(), "peerPings", Counts, Works;
    }
}

section! {
    /// Pings from this node to others, whose losses and times are metrics.
    pub struct PeerPingOptions {
        /// The other nodes, as addresses or names; at most 256. Empty: nothing is sent.
        peers: Vec<String> = Vec::new(), "peers", Counts, Works;
        /// Time between two pings to a peer, at least 100ms.
        #[serde(with = "go_duration")]
        interval: Duration = Duration::from_secs(10), "interval", Unset, Works;
    }
}

section! {
    /// The audit log: who asked the agent for what, and what the answer was.
    pub struct AuditOptions {
        /// Path of the log. Empty: nothing is recorded.
        path: String = String::new(), "path", Unset, Works;
        /// File with a Policy of `audit.k8s.io/v1` that says what is recorded, at the levels `None`
        /// and `Metadata`. Empty: all requests, at `level`.
        policy_file: String = String::new(), "policyFile", Unset, Works;
        /// Level of all requests where there is no policy: `None` or `Metadata`. Empty: `Metadata`.
        level: String = String::new(), "level", Unset, Works;
        /// Size in MiB at which the log is put aside and a new one begins.
        max_size: u32 = 100, "maxSize", Unset, Works;
        /// How many older logs are kept. 0: all.
        max_backups: u32 = 10, "maxBackups", Counts, Works;
        /// How many days older logs are kept. 0: for ever.
        max_age: u32 = 0, "maxAge", Counts, Works;
    }
}

section! {
    /// The embedded container runtime.
    pub struct EmbeddedRuntime {
        /// Directory of images and of all that has to outlive a reboot.
        root_dir: String = "/var/lib/rubelet/runtime".to_owned(), "rootDir", Unset, Works;
        /// Directory of sockets, namespaces and all that ends with a reboot.
        run_dir: String = "/run/rubelet/runtime".to_owned(), "runDir", Unset, Works;
        /// Path of the unix socket on which crictl and others reach the runtime. Empty: `cri.sock`
        /// in `runDir`. `none`: nowhere.
        socket: String = String::new(), "socket", Unset, Works;
        /// Where pods get their network from. `cni`: a CNI configuration; without one the node is not
        /// ready. `bridge`: the built-in bridge. Empty: a CNI configuration where there is one, else the
        /// bridge on a node of its own; a node of a cluster waits for the configuration.
        network: String = String::new(), "network", Unset, Works;
        /// Name of the bridge that pods are attached to when there is no CNI configuration. Names
        /// of all that belongs to it are made from this one.
        bridge: String = "rubelet0".to_owned(), "bridge", Unset, Works;
        /// Addresses for the pods on the bridge: a subnet of IPv4, one of IPv6, or both. A pod CIDR
        /// of the node goes first. Empty: a subnet of IPv4 that is private to the machine.
        bridge_subnets: Vec<String> = Vec::new(), "bridgeSubnets", Counts, Works;
        /// Directory of CNI configurations. With one in it, pods get their network from it.
        cni_conf_dir: String = "/etc/cni/net.d".to_owned(), "cniConfDir", Unset, Works;
        /// Directories of CNI plugins.
        cni_bin_dirs: Vec<String> = vec!["/opt/cni/bin".to_owned(), "/usr/lib/cni".to_owned()], "cniBinDirs", Counts, Works;
        /// Directories with specifications of devices by the Container Device Interface (CDI). Of two
        /// directories with the same device the later one counts.
        cdi_spec_dirs: Vec<String> = vec!["/etc/cdi".to_owned(), "/var/run/cdi".to_owned()], "cdiSpecDirs", Counts, Works;
        /// Registries, as `host` or `host:port`, that may speak plain HTTP or show any certificate.
        /// Those on loopback addresses always may.
        insecure_registries: Vec<String> = Vec::new(), "insecureRegistries", Counts, Works;
        /// File with further certificate authorities for registries, in PEM form. Empty: those of
        /// the system only.
        registry_authorities: String = String::new(), "registryAuthorities", Unset, Works;
        /// Directories that say which mirrors are asked before registries, in containerd's form: a directory
        /// for each registry with a `hosts.toml`, or `_default` for all others. Of several directories
        /// the first one that has something for a registry counts.
        registry_hosts_dirs: Vec<String> = vec!["/etc/rubelet/certs.d".to_owned()], "registryHostsDirs", Counts, Works;
        /// How long the download of an image may continue without progress: less than 64 KiB in this
        /// time. One from which nothing at all comes for a minute is given up in any case. 0: as
        /// long as something comes.
        #[serde(with = "go_duration")]
        image_pull_progress_timeout: Duration = Duration::from_secs(5 * 60), "imagePullProgressTimeout", Counts, Works;
        /// Most that the log of one container takes on disk, however much it writes between two
        /// rotations: a quantity of bytes such as 100Mi, at least 2Mi. Beyond it the oldest entries
        /// are dropped. Empty: `containerLogMaxSize` times `containerLogMaxFiles`, at least 50Mi.
        /// 0: no bound.
        container_log_max_total: String = String::new(), "containerLogMaxTotal", Unset, Works;
        /// Addresses outside of the pods' own range to which pods on the bridge go with their own
        /// address in place of the machine's, such as the pod CIDR of a cluster.
        masquerade_exempt: Vec<String> = Vec::new(), "masqueradeExempt", Counts, Works;
        /// Whether pods on the bridge are kept from one another: they reach the machine and what is
        /// outside of it, and no other pod, neither by its address nor by a host port.
        isolate_pods: bool = false, "isolatePods", Counts, Works;
        /// Cgroup above those of the processes that watch over pods.
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
    /// Whether an edit of a manifest replaces its pod, on a node that is part of a cluster or not.
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
