//! The resources that the agent opens before any of its tasks runs: an invalid configuration or an
//! address in use ends the start here.

use std::{
    net::{IpAddr, SocketAddr},
    path::Path,
    sync::Arc,
};

use anyhow::{Context as _, anyhow};
use rubelet_audit::AuditLog;
use rubelet_cgroup_plan::CgroupLayout;
use rubelet_config::{Flags, Resolved};
use rubelet_host::CgroupFs;
use rubelet_kubelet_api::bind_port;
use rubelet_node_state::{clock::Clock, metrics::NodeMetrics};
use rubelet_runtime::EmbeddedRuntime;
use rubelet_server::UnixSocket;
use tokio::net::{TcpListener, UnixListener};
use tracing::info;

use super::{
    audit, directories, embedded, node::Node, observe::CountRequests, other_runtime, port,
    port::OpenPort, preflight,
};

/// The node, its listeners, and the runtime if it is embedded.
pub(super) struct Opened {
    pub(super) clock: Clock,
    pub(super) node: Node,
    pub(super) embedded: Option<Arc<EmbeddedRuntime>>,
    pub(super) listeners: Listeners,
    pub(super) port: Option<OpenPort>,
    pub(super) metrics: Arc<NodeMetrics>,
    pub(super) observer: Arc<CountRequests>,
    pub(super) audit: Option<Arc<AuditLog>>,
}

/// The agent's listeners, except the kubelet's HTTPS port.
pub(super) struct Listeners {
    /// The local API.
    pub(super) api: UnixListener,
    /// `/healthz`.
    pub(super) health: Option<TcpListener>,
    /// The kubelet's read-only port.
    pub(super) read_only: Option<TcpListener>,
    /// The CRI of the embedded runtime.
    pub(super) cri: Option<UnixListener>,
}

/// Opens everything, in the order in which a failure costs least: checks first, then the runtime,
/// then the listeners.
pub(super) async fn open(
    flags: &Flags,
    resolved: &Resolved,
    root: &Path,
) -> anyhow::Result<Opened> {
    directories::make_own_directories(root)?;
    let clock = Clock::system();
    let node = Node::detect(flags, resolved)?;
    preflight::check(resolved, &node.cgroups)?;
    super::node::set_oom_score(resolved.config.oom_score_adj);
    super::node::join_cgroup(&resolved.config.kubelet_cgroups, &node.cgroups)?;
    info!(
        node = %node.name,
        version = crate::build_info::VERSION,
        commit = crate::build_info::COMMIT,
        root = %root.display(),
        endpoint = match resolved.config.container_runtime_endpoint.as_str() {
            "" => embedded::ENDPOINT,
            endpoint => endpoint,
        },
        "Starting Rubelet"
    );
    let (embedded, cri) = open_embedded(resolved, &node.cgroups).await?;
    let api = rubelet_server::bind_unix(&socket(resolved)).await?;
    let health = match health_address(resolved)? {
        Some(address) => Some(rubelet_server::bind_health(address).await?),
        None => None,
    };
    let port = port::open(resolved).await?;
    let read_only = match resolved.read_only_address() {
        Some(address) => Some(bind_port(address).await?),
        None => None,
    };
    let metrics = NodeMetrics::new();
    let facts = &metrics.facts;
    facts.set_node(&node.name);
    facts.set_cgroup_version(match node.cgroups.layout() {
        CgroupLayout::V1 | CgroupLayout::Hybrid => 1,
        CgroupLayout::V2 => 2,
    });
    crate::build_info::show(facts);
    let observer = Arc::new(CountRequests::new(Arc::clone(&metrics)));
    let audit = audit::open(&resolved.rubelet.audit, Arc::clone(&observer) as _)?;
    Ok(Opened {
        clock,
        node,
        embedded,
        listeners: Listeners {
            api,
            health,
            read_only,
            cri,
        },
        port,
        metrics,
        observer,
        audit,
    })
}

/// Starts the embedded runtime and its socket, if the configuration names no other runtime.
async fn open_embedded(
    resolved: &Resolved,
    cgroups: &CgroupFs,
) -> anyhow::Result<(Option<Arc<EmbeddedRuntime>>, Option<UnixListener>)> {
    if !resolved.config.container_runtime_endpoint.is_empty() {
        other_runtime::refuse_unattended(resolved).await?;
        return Ok((None, None));
    }
    other_runtime::refuse(resolved, cgroups).await?;
    let options = &resolved.rubelet.runtime;
    let mut settings = embedded::settings(options, &resolved.config.cgroup_driver)?;
    embedded::bound_logs(&mut settings, resolved)?;
    if resolved.joined {
        embedded::wait_for_network(&mut settings);
    } else {
        embedded::use_pod_cidr(&mut settings, &resolved.config.pod_cidr)?;
    }
    let listener = match options.socket_path() {
        Some(path) => Some(embedded::bind(&path).await?),
        None => None,
    };
    let runtime = embedded::start(settings).await?;
    Ok((Some(runtime), listener))
}

/// The socket of the local API.
fn socket(resolved: &Resolved) -> UnixSocket {
    let own = &resolved.rubelet;
    UnixSocket {
        group: (!own.socket_group.is_empty()).then(|| own.socket_group.clone()),
        ..UnixSocket::new(&own.socket)
    }
}

/// The address of `/healthz`; port 0 disables it.
fn health_address(resolved: &Resolved) -> anyhow::Result<Option<SocketAddr>> {
    let config = &resolved.config;
    let port = u16::try_from(config.healthz_port).context("healthzPort is not a port")?;
    let ip: IpAddr = config
        .healthz_bind_address
        .parse()
        .map_err(|_| anyhow!("healthzBindAddress is not an IP address"))?;
    Ok((port != 0).then_some(SocketAddr::new(ip, port)))
}
