//! From the configuration to the parts of a node.

use std::{path::Path, sync::Arc};

use anyhow::{Context as _, anyhow};
use rubelet_config::{Flags, KubeletConfiguration, Resolved};
use rubelet_cri::{ImageService, RuntimeService};
use rubelet_cri_grpc::{CriClient, Timeouts};
use rubelet_image_pull::{
    image_access::ImageAccess, images::PullParallelism, node_logins::NodeLogins,
    pull_rate::PullRate,
};
use rubelet_kubelet::{
    agent::AgentParts,
    host::{HostSettings, LocalHost, SwapBehavior, VolumeQuotas},
    image_collection::{ImageCollectionPolicy, ImageCollectionSettings},
    records::RecordWriter,
};
use rubelet_node_state::{
    cluster_view::{ClusterView, NoCluster},
    intents::IntentBoard,
    metrics::NodeMetrics,
    objects::{NoObjects, ObjectSource},
};
use rubelet_pleg::{
    PID_QUERY_IDLE, PlegSettings,
    processes::{HostProcesses, Processes},
};
use rubelet_pod_plan::{PlanSettings, image_access::VerificationPolicy};
use rubelet_probes::Prober;
use rubelet_runtime::EmbeddedRuntime;
use rubelet_server::{KUBERNETES_MAJOR, KUBERNETES_MINOR};

use super::{
    allocatable,
    calls::CriCallObserver,
    directories::{intents_directory, records_directory},
    embedded::{self, InProcess},
    node::Node,
    open::Opened,
};

/// Concurrent starts of sandboxes and containers per CPU.
const STARTS_PER_CPU: u64 = 4;
/// Concurrent stops per CPU: stopping mostly waits for processes and disks.
const STOPS_PER_CPU: u64 = 32;

/// The agent's dependencies outside its node.
pub(super) struct ClusterDeps {
    pub(super) cluster: Arc<dyn ClusterView>,
    pub(super) objects: Arc<dyn ObjectSource>,
}

impl ClusterDeps {
    /// A node without a cluster.
    pub(super) fn alone(config: &KubeletConfiguration) -> Self {
        Self {
            cluster: Arc::new(NoCluster {
                allowed_unsafe_sysctls: config.allowed_unsafe_sysctls.clone(),
            }),
            objects: Arc::new(NoObjects),
        }
    }
}

/// The real host.
pub(super) fn host(
    flags: &Flags,
    resolved: &Resolved,
    node: &Node,
    metrics: &Arc<NodeMetrics>,
) -> anyhow::Result<Arc<LocalHost>> {
    let config = &resolved.config;
    let disk = rubelet_host::usage::file_system(Path::new(flags.root_dir()));
    let disk = disk.ok().map(|disk| disk.bytes.capacity);
    let limits = allocatable::node_limits(resolved, flags, node, disk)?;
    let host = LocalHost::new(HostSettings {
        root: flags.root_dir().into(),
        pod_logs: config.pod_logs_dir.clone().into(),
        container_logs: "/var/log/containers".into(),
        node_name: Arc::clone(&node.name),
        node_ips: node.ips.subscribe(),
        machine: node.machine.clone(),
        allocatable: limits.allocatable,
        unreserved_memory: limits.unreserved_memory,
        memory_qos: limits.memory_qos,
        memory_reserved: limits.memory_reserved,
        kubepods: limits.kubepods,
        reserved_cgroups: limits.reserved_cgroups,
        cgroups: node.cgroups.clone(),
        cgroup_root: config.cgroup_root.clone(),
        cgroups_per_qos: config.cgroups_per_qos,
        cgroup_driver: embedded::cgroup_driver(&config.cgroup_driver),
        cpu_cfs_quota: config.cpu_cfs_quota,
        cpu_cfs_quota_period: config.cpu_cfs_quota_period,
        pod_pids_limit: u64::try_from(config.pod_pids_limit)
            .ok()
            .filter(|limit| *limit > 0),
        single_process_oom_kill: config.single_process_oom_kill,
        cluster_dns: config.cluster_dns.clone(),
        cluster_domain: config.cluster_domain.clone(),
        resolv_conf: config.resolv_conf.clone(),
        seccomp_default: config.seccomp_default || flags.seccomp_default(),
        allowed_unsafe_sysctls: config.allowed_unsafe_sysctls.clone(),
        swap_behavior: match config.memory_swap.swap_behavior.as_str() {
            "LimitedSwap" => SwapBehavior::LimitedSwap,
            _ => SwapBehavior::NoSwap,
        },
        user_ids_per_pod: u32::try_from(config.user_namespaces.ids_per_pod).unwrap_or(u32::MAX),
        volume_quotas: volume_quotas(resolved),
        max_pods: u32::try_from(config.max_pods).unwrap_or(0),
        metrics: Arc::clone(metrics),
    })
    .context("cannot set up the host")?;
    Ok(Arc::new(host))
}

fn volume_quotas(resolved: &Resolved) -> VolumeQuotas {
    const GATE: &str = "LocalStorageCapacityIsolationFSQuotaMonitoring";
    if !resolved.gates.enabled(GATE) {
        return VolumeQuotas::GateOff;
    }
    match resolved.config.local_storage_capacity_isolation {
        true => VolumeQuotas::On,
        false => VolumeQuotas::NotAccounted,
    }
}

/// The container runtime as the agent calls it.
pub(super) struct Services {
    pub(super) calls: Arc<CriCallObserver>,
    runtime: Arc<dyn RuntimeService>,
    images: Arc<dyn ImageService>,
    pub(super) endpoint: Arc<str>,
    is_embedded: bool,
}

/// The runtime behind the configured socket, or the embedded one.
pub(super) fn services(
    resolved: &Resolved,
    metrics: &Arc<NodeMetrics>,
    embedded: Option<&Arc<EmbeddedRuntime>>,
) -> anyhow::Result<Services> {
    let config = &resolved.config;
    let timeouts = Timeouts {
        request: config.runtime_request_timeout,
    };
    let calls = Arc::new(CriCallObserver::new(Arc::clone(metrics)));
    if let Some(service) = embedded {
        let own = Arc::new(InProcess {
            service: Arc::clone(service),
            timeouts,
            observer: Arc::clone(&calls) as _,
        });
        return Ok(Services {
            calls,
            runtime: Arc::clone(&own) as _,
            images: own,
            endpoint: embedded::ENDPOINT.into(),
            is_embedded: true,
        });
    }
    let endpoint = &config.container_runtime_endpoint;
    let runtime = CriClient::connect_lazy(endpoint, timeouts)
        .map_err(|error| anyhow!("containerRuntimeEndpoint: {error}"))?
        .with_observer(Arc::clone(&calls) as _);
    let images = match config.image_service_endpoint.as_str() {
        "" => runtime.clone(),
        other if other == endpoint => runtime.clone(),
        other => CriClient::connect_lazy(other, timeouts)
            .map_err(|error| anyhow!("imageServiceEndpoint: {error}"))?
            .with_observer(Arc::clone(&calls) as _),
    };
    Ok(Services {
        calls,
        runtime: Arc::new(runtime),
        images: Arc::new(images),
        endpoint: endpoint.as_str().into(),
        is_embedded: false,
    })
}

/// When unused images are removed; `None` is never. Eviction has them removed whatever the policy.
pub(super) fn image_collection(
    config: &KubeletConfiguration,
    evicts: bool,
) -> Option<ImageCollectionSettings> {
    // Both are validated: 0 to 100.
    let percent = |percent: i32| u8::try_from(percent).unwrap_or(100);
    let policy = ImageCollectionPolicy {
        high_percent: percent(config.image_gc_high_threshold_percent),
        low_percent: percent(config.image_gc_low_threshold_percent),
        min_age: config.image_minimum_gc_age,
        max_age: Some(config.image_maximum_gc_age).filter(|age| !age.is_zero()),
    };
    let disk = |path: &Path| rubelet_host::usage::file_system(path).map(|disk| disk.bytes);
    (evicts || !policy.is_off()).then(|| ImageCollectionSettings {
        policy,
        disk: Arc::new(disk),
    })
}

/// The parts of the node's tasks. Those whose configuration may be refused are left out.
pub(super) fn agent(
    resolved: &Resolved,
    root: &Path,
    opened: &Opened,
    services: Services,
    runtime_name: Arc<str>,
    host: Arc<LocalHost>,
    cluster_deps: ClusterDeps,
) -> AgentParts {
    let (node, clock) = (&opened.node, &opened.clock);
    let config = &resolved.config;
    let events = resolved.gates.enabled("EventedPLEG");
    let pulls = match (
        config.serialize_image_pulls,
        config.max_parallel_image_pulls,
    ) {
        (true, _) => PullParallelism::AtMost(1),
        (false, None) => PullParallelism::Unlimited,
        (false, Some(count)) => PullParallelism::AtMost(usize::try_from(count).unwrap_or(1)),
    };
    let at_once = |for_each_cpu: u64| {
        let count = match resolved.rubelet.runtime_calls_at_once {
            0 => node.machine.cpus.saturating_mul(for_each_cpu),
            count => count.into(),
        };
        count.try_into().unwrap_or(usize::MAX)
    };
    let policy = VerificationPolicy::parse(
        &config.image_pull_credentials_verification_policy,
        &config.preloaded_images_verification_allowlist,
    );
    let is_on = resolved.gates.enabled("KubeletEnsureSecretPulledImages");
    let image_access = match policy.filter(|_| is_on) {
        Some(policy) => ImageAccess::new(root, policy, clock.clone(), Arc::clone(&opened.metrics)),
        None => ImageAccess::unchecked(),
    };
    AgentParts {
        runtime: services.runtime,
        images: services.images,
        endpoint: services.endpoint,
        runtime_name,
        // Without cgroups of their own, pods are not in one that could be limited.
        node_cgroups: config.cgroups_per_qos.then(|| Arc::clone(&host) as _),
        host,
        clock: clock.clone(),
        records: RecordWriter::new(records_directory(root)),
        intents: IntentBoard::new(intents_directory(root)),
        cluster: cluster_deps.cluster,
        objects: cluster_deps.objects,
        logins: NodeLogins::of_kubelet(root, std::env::home_dir().as_deref()),
        image_access,
        metrics: Arc::clone(&opened.metrics),
        net: Arc::new(Prober::new(&format!(
            "{KUBERNETES_MAJOR}.{KUBERNETES_MINOR}"
        ))),
        node_name: Arc::clone(&node.name),
        node_ips: node.ips.subscribe(),
        plan: PlanSettings {
            crash_backoff_max: config.crash_loop_back_off.max_container_restart_period,
            ..PlanSettings::default()
        },
        pleg: PlegSettings {
            relist_period: resolved.rubelet.relist_period,
            events,
            pid_query_idle: PID_QUERY_IDLE,
        },
        // The embedded runtime reports exits at once, and without events polling is the only source,
        // on purpose.
        processes: (events && !services.is_embedded)
            .then(|| Arc::new(HostProcesses::new()) as Arc<dyn Processes>),
        pulls,
        pull_rate: PullRate::new(
            config.registry_pull_qps.try_into().unwrap_or(0),
            config.registry_burst.try_into().unwrap_or(0),
        ),
        starts_at_once: at_once(STARTS_PER_CPU),
        stops_at_once: at_once(STOPS_PER_CPU),
        log_rotation: None,
        image_collection: None,
        eviction: None,
        shutdown: None,
        local_storage: None,
    }
}
