//! From the opened resources to the tasks of the node: the runtime's client, the host, the cluster,
//! and the agent that uses them.

use std::{path::Path, sync::Arc};

use rubelet_config::{Flags, Resolved};
use rubelet_cri::{ImageService, RuntimeService};
use rubelet_kubelet::{
    agent::Agent, group_kill::keep_group_kills, host::LocalHost, pod_host::PodHost,
};
use rubelet_node_state::{events::Recorder, objects::ObjectSource};
use tokio::task::JoinSet;

use super::{
    calls::CriCallObserver,
    credentials, directories, eviction,
    joined::Cluster,
    log_rotation,
    open::Opened,
    parts::{self, ClusterDeps},
    runtime_name, shutdown,
    system_cgroup::SystemCgroup,
};

/// The agent, which is running without pods yet, and the parts it uses.
pub(super) struct Built {
    pub(super) agent: Agent,
    pub(super) recorder: Recorder,
    pub(super) cluster: Option<Cluster>,
    pub(super) objects: Arc<dyn ObjectSource>,
    pub(super) host: Arc<dyn PodHost>,
    pub(super) calls: Arc<CriCallObserver>,
    pub(super) runtime: Arc<dyn RuntimeService>,
    pub(super) images: Arc<dyn ImageService>,
    /// Tasks other than the agent's.
    pub(super) tasks: JoinSet<()>,
}

/// Builds the parts, and starts the agent.
pub(super) async fn build(
    flags: &Flags,
    resolved: &Resolved,
    root: &Path,
    opened: &Opened,
) -> anyhow::Result<Built> {
    let Opened {
        clock,
        node,
        metrics,
        ..
    } = opened;
    let recorder = Recorder::new(clock.clone());
    let cluster = match resolved.joined {
        true => Some(Cluster::new(flags, resolved, node, clock, metrics)?),
        false => None,
    };
    let cluster_deps = match &cluster {
        Some(cluster) => ClusterDeps {
            cluster: Arc::clone(&cluster.gate) as _,
            objects: Arc::clone(&cluster.objects) as _,
        },
        None => ClusterDeps::alone(&resolved.config),
    };
    let objects = Arc::clone(&cluster_deps.objects);
    let host = parts::host(flags, resolved, node, metrics)?;
    let eviction = eviction::settings(&resolved.config, root, &node.cgroups, Arc::clone(&host))?;
    let local_storage = eviction::local_storage(resolved, root, &node.cgroups, &host);
    let services = parts::services(resolved, metrics, opened.embedded.as_ref())?;
    let calls = Arc::clone(&services.calls);
    let endpoint = Arc::clone(&services.endpoint);
    let name_record = directories::own_directory(root).join("runtime-name.json");
    let runtime_name = runtime_name::load(&name_record, &endpoint).await;
    let mut agent_parts = parts::agent(
        resolved,
        root,
        opened,
        services,
        runtime_name,
        Arc::clone(&host),
        cluster_deps,
    );
    agent_parts.logins = agent_parts
        .logins
        .with_plugins(credentials::plugins(flags, resolved, metrics)?);
    agent_parts.log_rotation = log_rotation::settings(&resolved.config)?;
    agent_parts.image_collection = parts::image_collection(&resolved.config, eviction.is_some());
    agent_parts.eviction = eviction;
    agent_parts.shutdown = shutdown::settings(&resolved.config, root)?;
    agent_parts.local_storage = local_storage;
    let (runtime, images) = (
        Arc::clone(&agent_parts.runtime),
        Arc::clone(&agent_parts.images),
    );
    let system_cgroup =
        SystemCgroup::create(&resolved.config.system_cgroups, &opened.node.cgroups)?;
    let agent = Agent::start(agent_parts, recorder.clone());
    calls.set_pleg(agent.pleg().clone());
    let mut tasks = JoinSet::new();
    let state = agent.runtime_state.clone();
    tasks.spawn(runtime_name::keep(state, endpoint, name_record));
    let pods = Arc::clone(&agent.pods);
    tasks.spawn(keep_group_kills(pods, LocalHost::clone(&host)));
    if let Some(cgroup) = system_cgroup {
        tasks.spawn(cgroup.keep());
    }
    Ok(Built {
        agent,
        recorder,
        cluster,
        objects,
        host,
        calls,
        runtime,
        images,
        tasks,
    })
}
