//! The node object: registered, kept up to date, and the lease that shows the node is alive.
//!
//! | task | in | out |
//! |---|---|---|
//! | `follow` | the watch of the node's own object | what the API server shows |
//! | `status` | runtime, images, the machine, what the API server shows | registration, patches of the status, events |
//! | `lease` | the node's UID | the lease, each 10 s |
//! | [`follow_images`] | the image service | images, and the file system they are on |
//! | [`forward_pod_cidrs`] | the node's pod CIDRs | the runtime's configuration |
//!
//! None of them waits for a pod, and none of the first three calls the runtime. The contents are
//! decided in [`rubelet_node_plan::node_status`].

mod addresses;
mod api;
mod disk_sampler;
mod facts;
mod images;
mod lease;
mod node_watch;
mod observed_node;
mod pod_cidrs;
mod registration;
mod status;
mod view;
mod warning_throttle;

#[cfg(test)]
mod tests;

use std::{convert::Infallible, path::PathBuf, sync::Arc, time::Duration};

use rubelet_api::pod::Pod;
use rubelet_kube::{Client, WatchTarget};
use rubelet_node_plan::{
    admission::{self, AdmissionNode, Rejection},
    eviction::Pressure,
    node_status::{NodeFacts, NodeSettings},
};
use rubelet_node_state::{
    clock::Clock, cluster_view::Preemption, events::Recorder, metrics::NodeMetrics,
    runtime_state::RuntimeState, shutdown_state::ShutdownState,
};
use tokio::{sync::watch, task::JoinSet, time::timeout};
use tracing::error;

use self::{
    api::{KubeNodeApi, NodeApi},
    lease::LeaseTask,
    observed_node::ObservedNode,
    status::StatusTask,
    view::LocalNode,
};
pub use self::{
    facts::node_facts,
    images::{RuntimeImages, follow_images},
    pod_cidrs::{forward_pod_cidrs, set_runtime_pod_cidrs},
    view::NodeView,
};

/// Dependencies of the node's tasks.
pub struct NodeParts<C = Client> {
    /// The way to the API server.
    pub client: C,
    /// The node's part of the configuration.
    pub settings: NodeSettings,
    /// Facts about the machine.
    pub facts: NodeFacts,
    /// The runtime as last seen.
    pub runtime: watch::Receiver<RuntimeState>,
    /// Pressure on the resources of the node.
    pub pressure: watch::Receiver<Pressure>,
    /// Whether the node shuts down.
    pub shutdown: watch::Receiver<ShutdownState>,
    /// Images, from [`follow_images`].
    pub images: watch::Receiver<RuntimeImages>,
    /// Why what happens to containers can't be seen, if so: PLEG's word.
    pub problems: Arc<dyn Fn() -> Option<String> + Send + Sync>,
    /// The problem with the node object, in one line; `None` without one.
    pub problem: watch::Sender<Option<String>>,
    /// Records the node's events.
    pub recorder: Recorder,
    /// Wall time.
    pub clock: Clock,
    /// Directory of the pods' volumes: its file system is the node's.
    pub root: PathBuf,
    /// Port of the HTTPS server, if there is one.
    pub server_port: Option<u16>,
    /// Whether the kernel enforces AppArmor profiles.
    pub apparmor: bool,
    /// `allowedUnsafeSysctls`.
    pub allowed_unsafe_sysctls: Arc<[String]>,
    /// Metrics of the node.
    pub metrics: Arc<NodeMetrics>,
}

/// The state of the node.
#[derive(Debug, Clone)]
pub struct NodeHandle {
    /// The node as the API server shows it; `None` while there is no object, or none was read yet.
    pub node: watch::Receiver<Option<Arc<NodeView>>>,
    /// The node as this agent would register it, whether or not there is an API server.
    pub own: watch::Receiver<Arc<NodeView>>,
    seen: watch::Sender<ObservedNode>,
    local: LocalNode,
}

/// Longest time a pod waits until the node is read again.
const REFRESH: Duration = Duration::from_secs(2);

impl NodeHandle {
    /// The node that pods are held against: the API server's, or the agent's own idea while there
    /// is missing; pressure conditions always come from here.
    #[must_use]
    pub fn admission(&self) -> AdmissionNode {
        let own = Arc::clone(&self.own.borrow());
        let shown = self.node.borrow().clone();
        AdmissionNode {
            pressure: own.admission.pressure,
            ..shown.as_ref().unwrap_or(&own).admission.clone()
        }
    }

    /// Reads the node again and waits for the result, but for a moment only: the API server may be
    /// unreachable.
    pub async fn refresh(&self) {
        let (mut seen, mut shown) = (self.seen.subscribe(), self.node.clone());
        self.seen.send_modify(ObservedNode::mark_stale);
        let known = async {
            let node = match seen.wait_for(|seen| !seen.stale).await {
                Ok(seen) => seen.node.clone(),
                Err(_) => return,
            };
            let view = node.map(|node| NodeView::new(&node, &self.local));
            // Either way it is known now, or the agent stops.
            let _ = shown
                .wait_for(|shown| shown.as_deref() == view.as_ref())
                .await;
        };
        let _ = timeout(REFRESH, known).await;
    }

    /// Whether a pod fits beside others that have not ended.
    ///
    /// # Errors
    /// It may not, for that reason.
    pub fn admit(&self, pod: &Pod, others: &[Arc<Pod>]) -> Result<(), Rejection> {
        let others: Vec<&Pod> = others.iter().map(AsRef::as_ref).collect();
        admission::admit(pod, &self.admission(), &others)
    }

    /// The pods to preempt so that a critical pod fits; `None` if preemption does not help.
    #[must_use]
    pub fn preempt(&self, pod: &Pod, others: &[Arc<Pod>]) -> Option<Preemption> {
        let others: Vec<&Pod> = others.iter().map(AsRef::as_ref).collect();
        let found = admission::preemption(pod, &self.admission(), &others)?;
        Some(Preemption {
            victims: found.victims.iter().map(|pod| pod.uid.clone()).collect(),
            resource: found.resource,
        })
    }
}

/// Keeps the node object and its lease. The future never ends, unless one of its tasks dies.
pub fn run(parts: NodeParts) -> (NodeHandle, impl Future<Output = ()> + Send + 'static) {
    let watcher = parts.client.watch(WatchTarget {
        path: "/api/v1/nodes".to_owned(),
        field_selector: Some(format!("metadata.name={}", parts.settings.name)),
        label_selector: None,
    });
    let api = KubeNodeApi::new(&parts.client, &parts.settings);
    start(parts, api, move |seen| node_watch::follow(watcher, seen))
}

/// The tasks with any API server, and anything that follows the node's object.
fn start<C, F>(
    parts: NodeParts<C>,
    api: impl NodeApi,
    follow: impl FnOnce(watch::Sender<ObservedNode>) -> F,
) -> (NodeHandle, impl Future<Output = ()> + Send + 'static)
where
    F: Future<Output = Infallible> + Send + 'static,
{
    let seen = watch::Sender::new(ObservedNode::default());
    let local = LocalNode {
        apparmor: parts.apparmor,
        allowed_unsafe_sysctls: Arc::clone(&parts.allowed_unsafe_sysctls),
    };
    let (node, shown) = watch::channel(None);
    let handle_seen = seen.clone();
    let handle_local = local.clone();
    let show = view::show(seen.subscribe(), node, local.clone());
    let clock = parts.clock.clone();
    let lease = LeaseTask::new(api.clone(), &parts.settings, seen.clone(), clock).run();
    let (status, own) = StatusTask::new(parts, api, seen.clone(), local);
    let follow = follow(seen);
    let tasks = async move {
        let mut tasks = JoinSet::new();
        tasks.spawn(follow);
        tasks.spawn(show);
        tasks.spawn(status.run());
        tasks.spawn(lease);
        // They never end by themselves.
        if let Some(Err(died)) = tasks.join_next().await {
            error!(error = %died, "A task of the node object failed");
        }
    };
    let handle = NodeHandle {
        node: shown,
        own,
        seen: handle_seen,
        local: handle_local,
    };
    (handle, tasks)
}
