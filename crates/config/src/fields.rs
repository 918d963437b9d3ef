//! KubeletConfiguration `kubelet.config.k8s.io/v1beta1`: every field, its default, and whether it
//! does anything here.
//!
//! Source of names, types and defaults: `k8s.io/kubelet/config/v1beta1/types.go` and
//! `pkg/kubelet/apis/config/v1beta1/defaults.go` of Kubernetes 1.36.

mod authentication;
mod logging;
mod node;

pub use authentication::{
    AnonymousAuthentication, Authentication, Authorization, WebhookAuthentication,
    WebhookAuthorization, X509Authentication,
};
pub use logging::{FormatOptions, Logging, OutputRouting, Tracing, VModuleItem};
pub use node::{
    CrashLoopBackOff, MemoryReservation, MemorySwap, PriorityGracePeriod, Taint, UserNamespaces,
};

use crate::field::{Described, Field, Kind, section};
use crate::{entries, go_duration};
use std::collections::BTreeMap;
use std::time::Duration;

/// The only version of the configuration there is.
pub const API_VERSION: &str = "kubelet.config.k8s.io/v1beta1";
/// The kind of the configuration.
pub const KIND: &str = "KubeletConfiguration";

/// Thresholds that apply when `evictionHard` is not given.
pub(crate) const DEFAULT_EVICTION_HARD: [(&str, &str); 5] = [
    ("memory.available", "100Mi"),
    ("nodefs.available", "10%"),
    ("nodefs.inodesFree", "5%"),
    ("imagefs.available", "15%"),
    ("imagefs.inodesFree", "5%"),
];

pub(crate) fn default_eviction_hard() -> BTreeMap<String, String> {
    DEFAULT_EVICTION_HARD
        .iter()
        .map(|&(key, value)| (key.into(), value.into()))
        .collect()
}

const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

section! {
    /// How the kubelet runs. Every value is resolved: what was not given has its default, and what
    /// was given is valid.
    pub struct KubeletConfiguration {
        /// Whether the kubelet's HTTPS server runs. Alone on a machine it runs only where this or
        /// `port` is given.
        enable_server: bool = true, "enableServer", Counts, Works;
        /// Directory with pod manifests, or one manifest. Empty: none.
        static_pod_path: String = String::new(), "staticPodPath", Unset, Works;
        /// Directory under which the runtime writes container logs.
        pod_logs_dir: String = "/var/log/pods".to_owned(), "podLogsDir", Unset, Works;
        /// Longest time between two looks at a pod.
        #[serde(with = "go_duration")]
        sync_frequency: Duration = seconds(60), "syncFrequency", Unset, Better("pods are looked at when something changes, not by the clock; a watch of a ConfigMap or Secret that no pod uses any more ends after five times as long");
        /// Time between two full looks at the manifest directory; changes are also seen at once.
        #[serde(with = "go_duration")]
        file_check_frequency: Duration = seconds(20), "fileCheckFrequency", Unset, Works;
        /// Time between two requests to the manifest URL.
        #[serde(with = "go_duration")]
        http_check_frequency: Duration = seconds(20), "httpCheckFrequency", Unset, Works;
        /// URL that serves pod manifests. Empty: none.
        static_pod_url: String = String::new(), "staticPodURL", Unset, Works;
        /// HTTP headers for that URL.
        #[serde(deserialize_with = "entries::deserialize")]
        static_pod_url_header: BTreeMap<String, Vec<String>> = BTreeMap::new(), "staticPodURLHeader", Counts, Works;
        /// Address of the kubelet's HTTPS server.
        address: String = "0.0.0.0".to_owned(), "address", Unset, Works;
        /// Port of the kubelet's HTTPS server.
        port: i32 = 10250, "port", Unset, Works;
        /// Port of the server without authentication; 0 switches it off.
        read_only_port: i32 = 0, "readOnlyPort", Unset, Works;
        /// Certificate of the HTTPS server, with its chain. Empty: one is made.
        tls_cert_file: String = String::new(), "tlsCertFile", Unset, Works;
        /// Private key of that certificate.
        tls_private_key_file: String = String::new(), "tlsPrivateKeyFile", Unset, Works;
        /// Cipher suites of the HTTPS server for TLS 1.2, by Go's names. Empty: the library's choice.
        /// Those without forward secrecy or with CBC, RC4 or 3DES are never offered.
        tls_cipher_suites: Vec<String> = Vec::new(), "tlsCipherSuites", Counts, Works;
        /// Key exchange groups of the HTTPS server, by their TLS numbers, in order of preference.
        tls_curve_preferences: Vec<i32> = Vec::new(), "tlsCurvePreferences", Counts, Works;
        /// Lowest TLS version: `VersionTLS10` to `VersionTLS13`. Empty means 1.2, and there is none
        /// below 1.2.
        tls_min_version: String = String::new(), "tlsMinVersion", Unset, Works;
        /// Whether the client certificate is renewed by the cluster before it expires.
        rotate_certificates: bool = false, "rotateCertificates", Unset, Cluster;
        /// Whether the server certificate is requested from the cluster.
        server_tls_bootstrap: bool = false, "serverTLSBootstrap", Unset, Cluster;
        /// How callers of the HTTPS server are recognised.
        authentication: Authentication = Authentication::default(), "authentication", Unset, Works;
        /// What recognised callers may do.
        authorization: Authorization = Authorization::default(), "authorization", Unset, Works;
        /// Image pulls per second; 0 means no limit.
        registry_pull_qps: i32 = 5, "registryPullQPS", Counts, NotYet;
        /// Image pulls that may come at once.
        registry_burst: i32 = 10, "registryBurst", Unset, NotYet;
        /// When a pod must prove that it may use an image that is already here: `NeverVerify`,
        /// `NeverVerifyPreloadedImages`, `NeverVerifyAllowlistedImages` or `AlwaysVerify`.
        image_pull_credentials_verification_policy: String = "NeverVerifyPreloadedImages".to_owned(), "imagePullCredentialsVerificationPolicy", Unset, Works;
        /// Images that need no proof under `NeverVerifyAllowlistedImages`; may end in `/*`.
        preloaded_images_verification_allowlist: Vec<String> = Vec::new(), "preloadedImagesVerificationAllowlist", Counts, Works;
        /// Events per second sent to the API server; 0 means no limit.
        event_record_qps: i32 = 50, "eventRecordQPS", Counts, Cluster;
        /// Events that may come at once.
        event_burst: i32 = 100, "eventBurst", Unset, Cluster;
        /// Whether the HTTPS server offers logs, exec, attach and port-forward.
        enable_debugging_handlers: bool = true, "enableDebuggingHandlers", Counts, Works;
        /// Whether waiting on locks is profiled.
        enable_contention_profiling: bool = false, "enableContentionProfiling", Unset, NotYet;
        /// Port of `/healthz` and `/metrics`; 0 switches it off.
        healthz_port: i32 = 10248, "healthzPort", Counts, Works;
        /// Address of `/healthz`.
        healthz_bind_address: String = "127.0.0.1".to_owned(), "healthzBindAddress", Unset, Works;
        /// The agent's own `oom_score_adj`, from -1000 to 1000.
        oom_score_adj: i32 = -999, "oomScoreAdj", Counts, Works;
        /// DNS domain of the cluster, searched by pods with `dnsPolicy: ClusterFirst`.
        cluster_domain: String = String::new(), "clusterDomain", Unset, Works;
        /// DNS servers for pods with `dnsPolicy: ClusterFirst`.
        cluster_dns: Vec<String> = Vec::new(), "clusterDNS", Counts, Works;
        /// How long an exec, attach or port-forward session may be silent before it ends. The kubelet
        /// reads it, and leaves the limit to the container runtime.
        #[serde(with = "go_duration")]
        streaming_connection_idle_timeout: Duration = seconds(4 * 3600), "streamingConnectionIdleTimeout", Unset, Works;
        /// Time between two computations of the node's status.
        #[serde(with = "go_duration")]
        node_status_update_frequency: Duration = seconds(10), "nodeStatusUpdateFrequency", Unset, Cluster;
        /// Time between two reports of an unchanged status. Follows `nodeStatusUpdateFrequency` when
        /// only that is given.
        #[serde(with = "go_duration")]
        node_status_report_frequency: Duration = seconds(300), "nodeStatusReportFrequency", Unset, Cluster;
        /// How long the node's lease lasts, in seconds.
        node_lease_duration_seconds: i32 = 40, "nodeLeaseDurationSeconds", Unset, Cluster;
        /// How old an unused image must be before it is removed.
        #[serde(with = "go_duration")]
        image_minimum_gc_age: Duration = seconds(120), "imageMinimumGCAge", Unset, Works;
        /// After how long an unused image is removed in any case; 0s means never.
        #[serde(with = "go_duration")]
        image_maximum_gc_age: Duration = Duration::ZERO, "imageMaximumGCAge", Unset, Works;
        /// Disk use in percent above which unused images are removed; 100 switches it off.
        image_gc_high_threshold_percent: i32 = 85, "imageGCHighThresholdPercent", Counts, Works;
        /// Disk use in percent down to which they are removed.
        image_gc_low_threshold_percent: i32 = 80, "imageGCLowThresholdPercent", Counts, Works;
        /// Time between two measurements of the volumes' disk use; a negative one means never.
        #[serde(with = "go_duration::or_never")]
        volume_stats_agg_period: Option<Duration> = Some(seconds(60)), "volumeStatsAggPeriod", Unset, NotYet;
        /// Cgroup into which the agent moves itself. Empty: it stays where it is.
        kubelet_cgroups: String = String::new(), "kubeletCgroups", Unset, NotYet;
        /// Cgroup into which all other processes of the system are moved. Needs `cgroupRoot`.
        system_cgroups: String = String::new(), "systemCgroups", Unset, NotYet;
        /// Cgroup under which those of pods are made. Empty: the root.
        cgroup_root: String = String::new(), "cgroupRoot", Unset, Works;
        /// Whether pods get cgroups by quality of service.
        cgroups_per_qos: bool = true, "cgroupsPerQOS", Counts, Works;
        /// `cgroupfs` or `systemd`. The runtime's answer wins where it gives one.
        cgroup_driver: String = "cgroupfs".to_owned(), "cgroupDriver", Unset, Works;
        /// `none`, or `static` for exclusive CPUs.
        cpu_manager_policy: String = "none".to_owned(), "cpuManagerPolicy", Unset, NotYet;
        /// Whether the kernel kills single processes that run out of memory, not whole containers.
        /// Not given: true on cgroup v1, false on v2.
        single_process_oom_kill: Option<bool> = None, "singleProcessOOMKill", Counts, Works;
        /// Options of the CPU manager policy.
        #[serde(deserialize_with = "entries::deserialize")]
        cpu_manager_policy_options: BTreeMap<String, String> = BTreeMap::new(), "cpuManagerPolicyOptions", Counts, NotYet;
        /// Time between two repairs of the containers' CPU sets.
        #[serde(with = "go_duration")]
        cpu_manager_reconcile_period: Duration = seconds(10), "cpuManagerReconcilePeriod", Unset, NotYet;
        /// `None`, or `Static` for memory of chosen NUMA nodes.
        memory_manager_policy: String = "None".to_owned(), "memoryManagerPolicy", Unset, NotYet;
        /// `none`, `best-effort`, `restricted` or `single-numa-node`.
        topology_manager_policy: String = "none".to_owned(), "topologyManagerPolicy", Unset, NotYet;
        /// What is placed together: a `container` or a `pod`.
        topology_manager_scope: String = "container".to_owned(), "topologyManagerScope", Unset, NotYet;
        /// Options of the topology manager policy.
        #[serde(deserialize_with = "entries::deserialize")]
        topology_manager_policy_options: BTreeMap<String, String> = BTreeMap::new(), "topologyManagerPolicyOptions", Counts, NotYet;
        /// Share of a resource's requests that is kept from lower classes, such as
        /// `memory: 50%`. Needs the feature gate QOSReserved.
        #[serde(deserialize_with = "entries::deserialize")]
        qos_reserved: BTreeMap<String, String> = BTreeMap::new(), "qosReserved", Counts, NotYet;
        /// Deadline of a call to the runtime, pulls and streams apart.
        #[serde(with = "go_duration")]
        runtime_request_timeout: Duration = seconds(120), "runtimeRequestTimeout", Unset, Works;
        /// Kept for old files; does nothing, here or in the kubelet.
        hairpin_mode: String = "promiscuous-bridge".to_owned(), "hairpinMode", Unset, Works;
        /// How many pods may run.
        max_pods: i32 = 110, "maxPods", Unset, Cluster;
        /// Addresses for pods on a node without a cluster. The embedded runtime takes them for its
        /// bridge; other runtimes receive them over the CRI.
        pod_cidr: String = String::new(), "podCIDR", Unset, Works;
        /// How many processes a pod may have; -1 means no limit.
        pod_pids_limit: i64 = -1, "podPidsLimit", Counts, Works;
        /// File from which pods get their DNS servers. Empty: none.
        resolv_conf: String = "/etc/resolv.conf".to_owned(), "resolvConf", Counts, Works;
        /// Must be false: a mode that upstream removed.
        run_once: bool = false, "runOnce", Unset, Works;
        /// Whether CPU limits are enforced.
        cpu_cfs_quota: bool = true, "cpuCFSQuota", Counts, Works;
        /// Period in which a CPU limit is counted, from 1ms to 1s.
        #[serde(with = "go_duration")]
        cpu_cfs_quota_period: Duration = Duration::from_millis(100), "cpuCFSQuotaPeriod", Counts, Works;
        /// How many images the node's status lists; -1 means all.
        node_status_max_images: i32 = 50, "nodeStatusMaxImages", Counts, Cluster;
        /// How many files the agent may have open, at least 256 and at most what the kernel allows
        /// (`fs.nr_open`). Containers and everything else that it starts keep the limits that the
        /// agent was started with.
        max_open_files: i64 = 1_000_000, "maxOpenFiles", Unset, Works;
        /// Content type of requests to the API server.
        content_type: String = "application/vnd.kubernetes.protobuf".to_owned(), "contentType", Unset, Differs("requests are JSON, whatever stands here");
        /// Requests per second to the API server.
        kube_api_qps: i32 = 50, "kubeAPIQPS", Counts, Cluster;
        /// Requests to the API server that may come at once.
        kube_api_burst: i32 = 100, "kubeAPIBurst", Unset, Cluster;
        /// Whether images are pulled one after the other. False when only `maxParallelImagePulls` is
        /// given and is 2 or more.
        serialize_image_pulls: bool = true, "serializeImagePulls", Counts, Works;
        /// How many images may be pulled at once when they are not pulled one after the other. Not
        /// given: no limit.
        max_parallel_image_pulls: Option<i32> = None, "maxParallelImagePulls", Counts, Works;
        /// Thresholds below which pods are evicted at once, such as `memory.available: 100Mi`. Giving
        /// one drops the other defaults, unless `mergeDefaultEvictionSettings` is true.
        #[serde(deserialize_with = "entries::deserialize")]
        eviction_hard: BTreeMap<String, String> = default_eviction_hard(), "evictionHard", Counts, Partly("the pressure conditions of a node of a cluster follow it, and no pod is evicted yet");
        /// Thresholds below which pods are evicted after a grace period.
        #[serde(deserialize_with = "entries::deserialize")]
        eviction_soft: BTreeMap<String, String> = BTreeMap::new(), "evictionSoft", Counts, Partly("the pressure conditions of a node of a cluster follow it, and no pod is evicted yet");
        /// That grace period for each threshold of `evictionSoft`.
        #[serde(deserialize_with = "entries::deserialize")]
        eviction_soft_grace_period: BTreeMap<String, String> = BTreeMap::new(), "evictionSoftGracePeriod", Counts, NotYet;
        /// How long a pressure condition stays after its cause is gone.
        #[serde(with = "go_duration")]
        eviction_pressure_transition_period: Duration = seconds(300), "evictionPressureTransitionPeriod", Unset, Cluster;
        /// Longest time in seconds that a pod gets to end in a soft eviction.
        eviction_max_pod_grace_period: i32 = 0, "evictionMaxPodGracePeriod", Unset, NotYet;
        /// How much more than the threshold is freed.
        #[serde(deserialize_with = "entries::deserialize")]
        eviction_minimum_reclaim: BTreeMap<String, String> = BTreeMap::new(), "evictionMinimumReclaim", Counts, NotYet;
        /// Whether thresholds that `evictionHard` does not name keep their defaults.
        merge_default_eviction_settings: bool = false, "mergeDefaultEvictionSettings", Counts, Works;
        /// How many pods may run for each core, within `maxPods`; 0 means no limit.
        pods_per_core: i32 = 0, "podsPerCore", Unset, Cluster;
        /// Whether volumes are attached by the cluster's controller.
        enable_controller_attach_detach: bool = true, "enableControllerAttachDetach", Counts, Cluster;
        /// Whether kernel settings that differ from the kubelet's wishes are an error, not corrected.
        protect_kernel_defaults: bool = false, "protectKernelDefaults", Unset, NotYet;
        /// Whether the chain KUBE-IPTABLES-HINT is made for other components.
        make_iptables_util_chains: bool = true, "makeIPTablesUtilChains", Counts, NotYet;
        /// Kept for old files; does nothing, here or in the kubelet.
        iptables_masquerade_bit: i32 = 14, "iptablesMasqueradeBit", Counts, Works;
        /// Kept for old files; does nothing, here or in the kubelet.
        iptables_drop_bit: i32 = 15, "iptablesDropBit", Counts, Works;
        /// Features switched on or off by name.
        #[serde(deserialize_with = "entries::deserialize")]
        feature_gates: BTreeMap<String, bool> = BTreeMap::new(), "featureGates", Counts, Works;
        /// Whether the agent refuses to start on a node with swap.
        fail_swap_on: bool = true, "failSwapOn", Counts, Works;
        /// How containers use swap.
        memory_swap: MemorySwap = MemorySwap::default(), "memorySwap", Unset, Works;
        /// Size at which a container's log is rotated; a negative one means never.
        container_log_max_size: String = "10Mi".to_owned(), "containerLogMaxSize", Unset, Works;
        /// How many log files a container keeps, at least 2.
        container_log_max_files: i32 = 5, "containerLogMaxFiles", Counts, Works;
        /// How many logs are rotated at once.
        container_log_max_workers: i32 = 1, "containerLogMaxWorkers", Counts, Works;
        /// Time between two looks at the sizes of logs, at least 3s. Logs that grow fast are looked at
        /// sooner.
        #[serde(with = "go_duration")]
        container_log_monitor_interval: Duration = seconds(10), "containerLogMonitorInterval", Counts, Better("a log that grows so fast that it would be far above its size by the next look is looked at sooner, each second at most");
        /// How changes of ConfigMaps and Secrets are seen: `Watch`, `Cache` or `Get`.
        config_map_and_secret_change_detection_strategy: String = "Watch".to_owned(), "configMapAndSecretChangeDetectionStrategy", Unset, Cluster;
        /// Resources that are kept for the system, such as `cpu: 200m`.
        #[serde(deserialize_with = "entries::deserialize")]
        system_reserved: BTreeMap<String, String> = BTreeMap::new(), "systemReserved", Counts, Partly("a node of a cluster offers that much less, and no cgroup enforces it yet");
        /// Resources that are kept for Kubernetes itself.
        #[serde(deserialize_with = "entries::deserialize")]
        kube_reserved: BTreeMap<String, String> = BTreeMap::new(), "kubeReserved", Counts, Partly("a node of a cluster offers that much less, and no cgroup enforces it yet");
        /// CPUs that pods don't get, such as `0-1,4`.
        reserved_system_cpus: String = String::new(), "reservedSystemCPUs", Unset, Partly("a node of a cluster offers that much less, and no cgroup enforces it yet");
        /// Also show the metrics hidden since this version, such as `1.35`.
        show_hidden_metrics_for_version: String = String::new(), "showHiddenMetricsForVersion", Unset, NotYet;
        /// Cgroup of the system's own processes, for enforcing `systemReserved`.
        system_reserved_cgroup: String = String::new(), "systemReservedCgroup", Unset, NotYet;
        /// Cgroup of Kubernetes' processes, for enforcing `kubeReserved`.
        kube_reserved_cgroup: String = String::new(), "kubeReservedCgroup", Unset, NotYet;
        /// On which cgroups reservations are enforced: `none`, `pods`, `system-reserved`,
        /// `system-reserved-compressible`, `kube-reserved`, `kube-reserved-compressible`.
        enforce_node_allocatable: Vec<String> = vec!["pods".to_owned()], "enforceNodeAllocatable", Counts, NotYet;
        /// Sysctls that pods may set although they are not safe; may end in `*`.
        allowed_unsafe_sysctls: Vec<String> = Vec::new(), "allowedUnsafeSysctls", Counts, Works;
        /// Directory of volume plugins.
        volume_plugin_dir: String = "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/".to_owned(), "volumePluginDir", Unset, NotYet;
        /// Name by which a cloud knows the node.
        provider_id: String = String::new(), "providerID", Unset, Cluster;
        /// Whether the kernel reports low memory, so that it need not be polled.
        kernel_memcg_notification: bool = false, "kernelMemcgNotification", Unset, NotYet;
        /// The agent's log.
        logging: Logging = Logging::default(), "logging", Unset, Works;
        /// Whether the HTTPS server offers the files of /var/log.
        enable_system_log_handler: bool = true, "enableSystemLogHandler", Counts, NotYet;
        /// Whether the HTTPS server answers questions about the system's log.
        enable_system_log_query: bool = false, "enableSystemLogQuery", Counts, NotYet;
        /// By how much a shutdown of the node is delayed for pods to end.
        #[serde(with = "go_duration")]
        shutdown_grace_period: Duration = Duration::ZERO, "shutdownGracePeriod", Unset, NotYet;
        /// How much of that is kept for critical pods.
        #[serde(with = "go_duration")]
        shutdown_grace_period_critical_pods: Duration = Duration::ZERO, "shutdownGracePeriodCriticalPods", Unset, NotYet;
        /// The same by priority.
        shutdown_grace_period_by_pod_priority: Vec<PriorityGracePeriod> = Vec::new(), "shutdownGracePeriodByPodPriority", Counts, NotYet;
        /// How long a crashing container waits.
        crash_loop_back_off: CrashLoopBackOff = CrashLoopBackOff::default(), "crashLoopBackOff", Unset, Works;
        /// Memory of NUMA nodes that pods don't get.
        reserved_memory: Vec<MemoryReservation> = Vec::new(), "reservedMemory", Counts, NotYet;
        /// Whether the HTTPS server offers profiles.
        enable_profiling_handler: bool = true, "enableProfilingHandler", Counts, NotYet;
        /// Whether the verbosity can be changed over HTTPS.
        enable_debug_flags_handler: bool = true, "enableDebugFlagsHandler", Counts, NotYet;
        /// Whether containers without a seccomp profile get the runtime's own.
        seccomp_default: bool = false, "seccompDefault", Counts, Works;
        /// Share of a container's memory limit above which it is slowed down. Needs the feature gate
        /// MemoryQoS.
        memory_throttling_factor: f64 = 0.9, "memoryThrottlingFactor", Counts, NotYet;
        /// `None`, or `TieredReservation` for memory protected by class. Needs the feature gate
        /// MemoryQoS.
        memory_reservation_policy: String = "None".to_owned(), "memoryReservationPolicy", Unset, NotYet;
        /// Taints that the node registers with.
        register_with_taints: Vec<Taint> = Vec::new(), "registerWithTaints", Counts, Cluster;
        /// Whether the node registers itself.
        register_node: bool = true, "registerNode", Counts, Cluster;
        /// Where OpenTelemetry spans go. Not given: nowhere.
        tracing: Option<Tracing> = None, "tracing", Counts, NotYet;
        /// Whether ephemeral storage is counted and limited.
        local_storage_capacity_isolation: bool = true, "localStorageCapacityIsolation", Counts, Partly("a node of a cluster counts ephemeral storage by it, and no pod is limited yet");
        /// Address of the container runtime. Empty: pods run on Rubelet's own runtime, see
        /// `rubelet.runtime`.
        container_runtime_endpoint: String = String::new(), "containerRuntimeEndpoint", Unset, Works;
        /// Address of the image service. Empty: that of the runtime.
        image_service_endpoint: String = String::new(), "imageServiceEndpoint", Unset, Works;
        /// Whether the agent refuses to start on a node with cgroup v1.
        fail_cgroup_v1: bool = true, "failCgroupV1", Counts, Works;
        /// User namespaces of pods.
        user_namespaces: UserNamespaces = UserNamespaces::default(), "userNamespaces", Counts, Works;
    }
}

impl KubeletConfiguration {
    /// The table of these fields.
    pub const FIELDS: &'static [Field] = match Self::KIND {
        Kind::Section(fields) => fields,
        _ => &[],
    };
}
