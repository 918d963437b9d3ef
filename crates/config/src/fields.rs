//! KubeletConfiguration `kubelet.config.k8s.io/v1beta1`: every field, its default, and whether it
//! has an effect in Rubelet.
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

use crate::field::{Field, FieldType, Kind, section};
use crate::{entries, go_duration};
use std::collections::BTreeMap;
use std::time::Duration;

/// The only supported version of the configuration.
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
    /// Configuration of the kubelet. Every value is resolved: values that were given are valid, all
    /// others have their defaults.
    pub struct KubeletConfiguration {
        /// Whether the kubelet's HTTPS server runs. Without a cluster it runs only if this or
        /// `port` is given.
        enable_server: bool = true, "enableServer", Counts, Works;
        /// Directory of pod manifests, or path of one manifest. Empty: none.
        static_pod_path: String = String::new(), "staticPodPath", Unset, Works;
        /// Directory under which the runtime writes container logs.
        pod_logs_dir: String = "/var/log/pods".to_owned(), "podLogsDir", Unset, Works;
        /// Maximum time between two syncs of a pod.
        #[serde(with = "go_duration")]
        sync_frequency: Duration = seconds(60), "syncFrequency", Unset, Better("pods are synced when something changes, not periodically; a watch of a ConfigMap or Secret that no pod uses any more ends after five times this period");
        /// Time between two full scans of the manifest directory; changes are also detected
        /// immediately.
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
        /// Port of the server without authentication; 0 disables it.
        read_only_port: i32 = 0, "readOnlyPort", Unset, Works;
        /// Certificate of the HTTPS server, with its chain. Empty: a certificate is generated.
        tls_cert_file: String = String::new(), "tlsCertFile", Unset, Works;
        /// Private key of that certificate.
        tls_private_key_file: String = String::new(), "tlsPrivateKeyFile", Unset, Works;
        /// Cipher suites of the HTTPS server for TLS 1.2, by Go's names. Empty: the defaults of the
        /// TLS library. Suites without forward secrecy or with CBC, RC4 or 3DES are never offered.
        tls_cipher_suites: Vec<String> = Vec::new(), "tlsCipherSuites", Counts, Works;
        /// Key exchange groups of the HTTPS server, by their TLS identifiers, in order of
        /// preference.
        tls_curve_preferences: Vec<i32> = Vec::new(), "tlsCurvePreferences", Counts, Works;
        /// Minimum TLS version: `VersionTLS10` to `VersionTLS13`. Empty means 1.2, and versions
        /// below 1.2 are never offered.
        tls_min_version: String = String::new(), "tlsMinVersion", Unset, Works;
        /// Whether the client certificate is renewed by the cluster before it expires.
        rotate_certificates: bool = false, "rotateCertificates", Unset, Cluster;
        /// Whether the server certificate is requested from the cluster.
        server_tls_bootstrap: bool = false, "serverTLSBootstrap", Unset, Cluster;
        /// How clients of the HTTPS server are authenticated.
        authentication: Authentication = Authentication::default(), "authentication", Unset, Works;
        /// How requests of authenticated clients are authorized.
        authorization: Authorization = Authorization::default(), "authorization", Unset, Works;
        /// Image pulls per second in the long run; more of them fail, and are tried again after the
        /// back-off. 0 means no limit.
        registry_pull_qps: i32 = 5, "registryPullQPS", Counts, Works;
        /// Image pulls at once after a quiet time, at least 1.
        registry_burst: i32 = 10, "registryBurst", Unset, Works;
        /// When a pod must present credentials for an image that is already present: `NeverVerify`,
        /// `NeverVerifyPreloadedImages`, `NeverVerifyAllowlistedImages` or `AlwaysVerify`.
        image_pull_credentials_verification_policy: String = "NeverVerifyPreloadedImages".to_owned(), "imagePullCredentialsVerificationPolicy", Unset, Works;
        /// Images that need no credentials under `NeverVerifyAllowlistedImages`; may end in `/*`.
        preloaded_images_verification_allowlist: Vec<String> = Vec::new(), "preloadedImagesVerificationAllowlist", Counts, Works;
        /// Events per second sent to the API server; 0 means no limit.
        event_record_qps: i32 = 50, "eventRecordQPS", Counts, Cluster;
        /// Burst of events.
        event_burst: i32 = 100, "eventBurst", Unset, Cluster;
        /// Whether the HTTPS server offers logs, exec, attach and port-forward.
        enable_debugging_handlers: bool = true, "enableDebuggingHandlers", Counts, Works;
        /// Whether lock contention is profiled.
        enable_contention_profiling: bool = false, "enableContentionProfiling", Unset, NotYet;
        /// Port of `/healthz` and `/metrics`; 0 disables it.
        healthz_port: i32 = 10248, "healthzPort", Counts, Works;
        /// Address of `/healthz`.
        healthz_bind_address: String = "127.0.0.1".to_owned(), "healthzBindAddress", Unset, Works;
        /// The agent's own `oom_score_adj`, from -1000 to 1000.
        oom_score_adj: i32 = -999, "oomScoreAdj", Counts, Works;
        /// DNS domain of the cluster, searched by pods with `dnsPolicy: ClusterFirst`.
        cluster_domain: String = String::new(), "clusterDomain", Unset, Works;
        /// DNS servers for pods with `dnsPolicy: ClusterFirst`.
        cluster_dns: Vec<String> = Vec::new(), "clusterDNS", Counts, Works;
        /// Idle timeout of an exec, attach or port-forward session. The kubelet parses it, and leaves
        /// the timeout to the container runtime.
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
        /// Minimum age of an unused image before it is removed.
        #[serde(with = "go_duration")]
        image_minimum_gc_age: Duration = seconds(120), "imageMinimumGCAge", Unset, Works;
        /// Maximum age of an unused image, after which it is removed in any case; 0s means never.
        #[serde(with = "go_duration")]
        image_maximum_gc_age: Duration = Duration::ZERO, "imageMaximumGCAge", Unset, Works;
        /// Disk usage in percent above which unused images are removed; 100 disables it.
        image_gc_high_threshold_percent: i32 = 85, "imageGCHighThresholdPercent", Counts, Works;
        /// Disk usage in percent down to which they are removed.
        image_gc_low_threshold_percent: i32 = 80, "imageGCLowThresholdPercent", Counts, Works;
        /// Shortest time between two measurements of the space that a volume uses, which are made when
        /// `/stats/summary` is requested; a negative value means never.
        #[serde(with = "go_duration::or_never")]
        volume_stats_agg_period: Option<Duration> = Some(seconds(60)), "volumeStatsAggPeriod", Unset, Works;
        /// Cgroup into which the agent moves itself at its start, whatever the driver, such as
        /// `/rubelet-agent`. Empty: it stays where it is.
        kubelet_cgroups: String = String::new(), "kubeletCgroups", Unset, Works;
        /// Cgroup into which all other processes of the system are moved. Needs `cgroupRoot`.
        system_cgroups: String = String::new(), "systemCgroups", Unset, Works;
        /// Cgroup under which the cgroups of pods are created. Empty: the root.
        cgroup_root: String = String::new(), "cgroupRoot", Unset, Works;
        /// Whether pods are placed in cgroups by QoS class.
        cgroups_per_qos: bool = true, "cgroupsPerQOS", Counts, Works;
        /// `cgroupfs` or `systemd`. If the runtime reports its driver, that one is used.
        cgroup_driver: String = "cgroupfs".to_owned(), "cgroupDriver", Unset, Works;
        /// `none`, or `static` for exclusive CPUs.
        cpu_manager_policy: String = "none".to_owned(), "cpuManagerPolicy", Unset, NotYet;
        /// Whether the OOM killer kills single processes, not whole containers. Not given: true on
        /// cgroup v1, false on v2.
        single_process_oom_kill: Option<bool> = None, "singleProcessOOMKill", Counts, Works;
        /// Options of the CPU manager policy.
        #[serde(deserialize_with = "entries::deserialize")]
        cpu_manager_policy_options: BTreeMap<String, String> = BTreeMap::new(), "cpuManagerPolicyOptions", Counts, NotYet;
        /// Time between two reconciliations of the containers' CPU sets.
        #[serde(with = "go_duration")]
        cpu_manager_reconcile_period: Duration = seconds(10), "cpuManagerReconcilePeriod", Unset, NotYet;
        /// `None`, or `Static` for memory of specific NUMA nodes.
        memory_manager_policy: String = "None".to_owned(), "memoryManagerPolicy", Unset, NotYet;
        /// `none`, `best-effort`, `restricted` or `single-numa-node`.
        topology_manager_policy: String = "none".to_owned(), "topologyManagerPolicy", Unset, NotYet;
        /// What is aligned: a `container` or a `pod`.
        topology_manager_scope: String = "container".to_owned(), "topologyManagerScope", Unset, NotYet;
        /// Options of the topology manager policy.
        #[serde(deserialize_with = "entries::deserialize")]
        topology_manager_policy_options: BTreeMap<String, String> = BTreeMap::new(), "topologyManagerPolicyOptions", Counts, NotYet;
        /// Share of a resource's requests that is withheld from lower QoS classes, such as `memory:
        /// 50%`. Needs the feature gate QOSReserved.
        #[serde(deserialize_with = "entries::deserialize")]
        qos_reserved: BTreeMap<String, String> = BTreeMap::new(), "qosReserved", Counts, Works;
        /// Timeout of a call to the runtime, except pulls and streams.
        #[serde(with = "go_duration")]
        runtime_request_timeout: Duration = seconds(120), "runtimeRequestTimeout", Unset, Works;
        /// Accepted for old files; has no effect, here or in the kubelet.
        hairpin_mode: String = "promiscuous-bridge".to_owned(), "hairpinMode", Unset, Works;
        /// Maximum number of pods.
        max_pods: i32 = 110, "maxPods", Unset, Cluster;
        /// CIDR of pod addresses on a node without a cluster. The embedded runtime uses it for its
        /// bridge; other runtimes receive it over the CRI.
        pod_cidr: String = String::new(), "podCIDR", Unset, Works;
        /// Maximum number of processes of a pod; -1 means no limit.
        pod_pids_limit: i64 = -1, "podPidsLimit", Counts, Works;
        /// File with the DNS servers of pods. Empty: none.
        resolv_conf: String = "/etc/resolv.conf".to_owned(), "resolvConf", Counts, Works;
        /// Must be false: upstream removed this mode.
        run_once: bool = false, "runOnce", Unset, Works;
        /// Whether CPU limits are enforced.
        cpu_cfs_quota: bool = true, "cpuCFSQuota", Counts, Works;
        /// CFS quota period of CPU limits, from 1ms to 1s.
        #[serde(with = "go_duration")]
        cpu_cfs_quota_period: Duration = Duration::from_millis(100), "cpuCFSQuotaPeriod", Counts, Works;
        /// Maximum number of images in the node's status; -1 means all.
        node_status_max_images: i32 = 50, "nodeStatusMaxImages", Counts, Cluster;
        /// Maximum number of open files of the agent, from 256 to the kernel's maximum
        /// (`fs.nr_open`). Containers and all other processes that it starts keep the limits that
        /// the agent was started with.
        max_open_files: i64 = 1_000_000, "maxOpenFiles", Unset, Works;
        /// Content type of requests to the API server.
        content_type: String = "application/vnd.kubernetes.protobuf".to_owned(), "contentType", Unset, Differs("requests are always JSON");
        /// Requests per second to the API server.
        kube_api_qps: i32 = 50, "kubeAPIQPS", Counts, Cluster;
        /// Burst of requests to the API server.
        kube_api_burst: i32 = 100, "kubeAPIBurst", Unset, Cluster;
        /// Whether images are pulled one after the other. False if only `maxParallelImagePulls` is
        /// given and is 2 or more.
        serialize_image_pulls: bool = true, "serializeImagePulls", Counts, Works;
        /// Maximum number of concurrent image pulls when they are not pulled one after the other.
        /// Not given: no limit.
        max_parallel_image_pulls: Option<i32> = None, "maxParallelImagePulls", Counts, Works;
        /// Thresholds below which pods are evicted immediately, such as `memory.available: 100Mi`.
        /// Setting one removes the other defaults, unless `mergeDefaultEvictionSettings` is true.
        #[serde(deserialize_with = "entries::deserialize")]
        eviction_hard: BTreeMap<String, String> = default_eviction_hard(), "evictionHard", Counts, Works;
        /// Thresholds below which pods are evicted after a grace period.
        #[serde(deserialize_with = "entries::deserialize")]
        eviction_soft: BTreeMap<String, String> = BTreeMap::new(), "evictionSoft", Counts, Works;
        /// Grace period of each threshold of `evictionSoft`.
        #[serde(deserialize_with = "entries::deserialize")]
        eviction_soft_grace_period: BTreeMap<String, String> = BTreeMap::new(), "evictionSoftGracePeriod", Counts, Works;
        /// How long a pressure condition stays true after its threshold is no longer met.
        #[serde(with = "go_duration")]
        eviction_pressure_transition_period: Duration = seconds(300), "evictionPressureTransitionPeriod", Unset, Cluster;
        /// Maximum grace period, in seconds, of a pod in a soft eviction.
        eviction_max_pod_grace_period: i32 = 0, "evictionMaxPodGracePeriod", Unset, Works;
        /// Minimum amount by which an eviction goes beyond its threshold.
        #[serde(deserialize_with = "entries::deserialize")]
        eviction_minimum_reclaim: BTreeMap<String, String> = BTreeMap::new(), "evictionMinimumReclaim", Counts, Works;
        /// Whether thresholds that are not in `evictionHard` keep their defaults.
        merge_default_eviction_settings: bool = false, "mergeDefaultEvictionSettings", Counts, Works;
        /// Maximum number of pods per core, within `maxPods`; 0 means no limit.
        pods_per_core: i32 = 0, "podsPerCore", Unset, Cluster;
        /// Whether the cluster's controller attaches and detaches volumes.
        enable_controller_attach_detach: bool = true, "enableControllerAttachDetach", Counts, Cluster;
        /// Whether kernel settings that differ from the kubelet's requirements are an error instead
        /// of being corrected.
        protect_kernel_defaults: bool = false, "protectKernelDefaults", Unset, Better("true is an error as for a kubelet; with false, a kubelet changes the machine's settings, and the log names them here");
        /// Whether the iptables chain KUBE-IPTABLES-HINT is created for other components.
        make_iptables_util_chains: bool = true, "makeIPTablesUtilChains", Counts, Works;
        /// Accepted for old files; has no effect, here or in the kubelet.
        iptables_masquerade_bit: i32 = 14, "iptablesMasqueradeBit", Counts, Works;
        /// Accepted for old files; has no effect, here or in the kubelet.
        iptables_drop_bit: i32 = 15, "iptablesDropBit", Counts, Works;
        /// Feature gates, enabled or disabled by name.
        #[serde(deserialize_with = "entries::deserialize")]
        feature_gates: BTreeMap<String, bool> = BTreeMap::new(), "featureGates", Counts, Works;
        /// Whether the agent refuses to start on a node with swap.
        fail_swap_on: bool = true, "failSwapOn", Counts, Works;
        /// How containers use swap.
        memory_swap: MemorySwap = MemorySwap::default(), "memorySwap", Unset, Works;
        /// Size at which a container's log is rotated; a negative size means never.
        container_log_max_size: String = "10Mi".to_owned(), "containerLogMaxSize", Unset, Works;
        /// Maximum number of log files of a container, at least 2.
        container_log_max_files: i32 = 5, "containerLogMaxFiles", Counts, Works;
        /// Maximum number of logs that are rotated concurrently.
        container_log_max_workers: i32 = 1, "containerLogMaxWorkers", Counts, Works;
        /// Time between two checks of the sizes of logs, at least 3s. Logs that grow fast are checked
        /// sooner.
        #[serde(with = "go_duration")]
        container_log_monitor_interval: Duration = seconds(10), "containerLogMonitorInterval", Counts, Better("a log that grows so fast that it would far exceed its size by the next check is checked sooner, at most once per second");
        /// How changes of ConfigMaps and Secrets are detected: `Watch`, `Cache` or `Get`.
        config_map_and_secret_change_detection_strategy: String = "Watch".to_owned(), "configMapAndSecretChangeDetectionStrategy", Unset, Cluster;
        /// Resources reserved for the system, such as `cpu: 200m`.
        #[serde(deserialize_with = "entries::deserialize")]
        system_reserved: BTreeMap<String, String> = BTreeMap::new(), "systemReserved", Counts, Works;
        /// Resources reserved for Kubernetes itself.
        #[serde(deserialize_with = "entries::deserialize")]
        kube_reserved: BTreeMap<String, String> = BTreeMap::new(), "kubeReserved", Counts, Works;
        /// CPUs reserved for the system, such as `0-1,4`.
        reserved_system_cpus: String = String::new(), "reservedSystemCPUs", Unset, Works;
        /// Version whose hidden metrics are shown as well, such as `1.35`.
        show_hidden_metrics_for_version: String = String::new(), "showHiddenMetricsForVersion", Unset, Differs("no metric is hidden");
        /// Cgroup of the system's own processes, for enforcing `systemReserved`.
        system_reserved_cgroup: String = String::new(), "systemReservedCgroup", Unset, Works;
        /// Cgroup of Kubernetes' processes, for enforcing `kubeReserved`.
        kube_reserved_cgroup: String = String::new(), "kubeReservedCgroup", Unset, Works;
        /// Cgroups on which reservations are enforced: `none`, `pods`, `system-reserved`,
        /// `system-reserved-compressible`, `kube-reserved`, `kube-reserved-compressible`. That of a
        /// reservation must exist.
        enforce_node_allocatable: Vec<String> = vec!["pods".to_owned()], "enforceNodeAllocatable", Counts, Works;
        /// Unsafe sysctls that pods may set; may end in `*`.
        allowed_unsafe_sysctls: Vec<String> = Vec::new(), "allowedUnsafeSysctls", Counts, Works;
        /// Directory of volume plugins.
        volume_plugin_dir: String = "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/".to_owned(), "volumePluginDir", Unset, NotYet;
        /// Identifier of the node at its cloud provider.
        provider_id: String = String::new(), "providerID", Unset, Cluster;
        /// Whether the kernel's memcg notifications report low memory, instead of polling.
        kernel_memcg_notification: bool = false, "kernelMemcgNotification", Unset, Better("the kernel reports low memory whatever this says: by pressure stall information, and with cgroup version 1 also by its level");
        /// The agent's log.
        logging: Logging = Logging::default(), "logging", Unset, Works;
        /// Whether the HTTPS server serves the files in /var/log.
        enable_system_log_handler: bool = true, "enableSystemLogHandler", Counts, Works;
        /// Whether the HTTPS server serves queries of the system's log.
        enable_system_log_query: bool = false, "enableSystemLogQuery", Counts, NotYet;
        /// How long a shutdown of the node is delayed for the termination of pods, in whole seconds.
        #[serde(with = "go_duration")]
        shutdown_grace_period: Duration = Duration::ZERO, "shutdownGracePeriod", Unset, Works;
        /// Part of that time which is reserved for critical pods.
        #[serde(with = "go_duration")]
        shutdown_grace_period_critical_pods: Duration = Duration::ZERO, "shutdownGracePeriodCriticalPods", Unset, Works;
        /// The same, by pod priority.
        shutdown_grace_period_by_pod_priority: Vec<PriorityGracePeriod> = Vec::new(), "shutdownGracePeriodByPodPriority", Counts, Works;
        /// Back-off of containers that crash.
        crash_loop_back_off: CrashLoopBackOff = CrashLoopBackOff::default(), "crashLoopBackOff", Unset, Works;
        /// Memory of NUMA nodes that is reserved for the system.
        reserved_memory: Vec<MemoryReservation> = Vec::new(), "reservedMemory", Counts, NotYet;
        /// Whether the HTTPS server serves profiles.
        enable_profiling_handler: bool = true, "enableProfilingHandler", Counts, NotYet;
        /// Whether the verbosity can be changed over HTTPS.
        enable_debug_flags_handler: bool = true, "enableDebugFlagsHandler", Counts, NotYet;
        /// Whether containers without a seccomp profile get the runtime's default profile.
        seccomp_default: bool = false, "seccompDefault", Counts, Works;
        /// Share of a container's memory limit above which it is throttled. Needs the feature gate
        /// MemoryQoS.
        memory_throttling_factor: f64 = 0.9, "memoryThrottlingFactor", Counts, Works;
        /// `None`, or `TieredReservation` for memory protection by QoS class. Needs the feature
        /// gate MemoryQoS.
        memory_reservation_policy: String = "None".to_owned(), "memoryReservationPolicy", Unset, Works;
        /// Taints that the node registers with.
        register_with_taints: Vec<Taint> = Vec::new(), "registerWithTaints", Counts, Cluster;
        /// Whether the node registers itself.
        register_node: bool = true, "registerNode", Counts, Cluster;
        /// Where OpenTelemetry spans are sent. Not given: nowhere.
        tracing: Option<Tracing> = None, "tracing", Counts, NotYet;
        /// Whether ephemeral storage is accounted and limited: a pod of the API server that exceeds its
        /// `limits.ephemeral-storage`, or the `sizeLimit` of an emptyDir on disk, is evicted.
        local_storage_capacity_isolation: bool = true, "localStorageCapacityIsolation", Counts, Cluster;
        /// Endpoint of the container runtime. Empty: the embedded runtime, see `rubelet.runtime`.
        container_runtime_endpoint: String = String::new(), "containerRuntimeEndpoint", Unset, Works;
        /// Endpoint of the image service. Empty: that of the runtime.
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
