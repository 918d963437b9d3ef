//! Computes the node's status and sends what changed.

use std::{collections::VecDeque, convert::Infallible, future::pending, sync::Arc, time::Duration};

use rubelet_base::{Backoff, ErrorChain, event_reason};
use rubelet_kube::ApiError;
use rubelet_node_plan::{
    eviction::Pressure,
    node_shutdown::NOT_READY,
    node_status::{
        NodeEvent, NodeFacts, NodeSettings,
        addresses::{self, HostAddresses},
        conditions::is_ready,
        object::{Node, NodeRuntimeHandler, NodeRuntimeHandlerFeatures},
        patch::{has_changed, patch},
        ready::RuntimeHealth,
        registration::initial,
        schedule::{NodeRandom, ReportSchedule},
        update::{NodeObservation, NodeUpdateState, update},
    },
};
use rubelet_node_state::{
    clock::Clock,
    events::{EventType, Recorder, Subject},
    metrics::NodeMetrics,
    runtime_state::RuntimeState,
    shutdown_state::ShutdownState,
};
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};
use tracing::{info, warn};

use super::{
    NodeParts, NodeView,
    addresses::Addresses,
    api::NodeApi,
    disk_sampler::{DiskCapacities, DiskSampler},
    images::RuntimeImages,
    observed_node::{ObservedNode, change},
    view::LocalNode,
    warning_throttle::WarningThrottle,
};

/// Waits after failures, as the kubelet's while it registers.
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_LONGEST: Duration = Duration::from_secs(7);
/// After this number of failures in a row, the last of them without a response, the connection is
/// opened again.
const FAILURES_TO_RECONNECT: u32 = 2;
/// Longest time the first status waits for the runtime.
const FIRST_ANSWER: Duration = Duration::from_secs(1);
/// Number of changes that are sent at once; more of them wait for the next regular computation.
/// Another client may keep reverting the node's status.
const BURST: usize = 5;

/// Keeps the node object.
pub(super) struct StatusTask<A> {
    pub(super) api: A,
    pub(super) settings: NodeSettings,
    pub(super) facts: NodeFacts,
    pub(super) seen: watch::Sender<ObservedNode>,
    /// Whether this process has registered the node.
    pub(super) registered: bool,
    shown: watch::Receiver<ObservedNode>,
    own: watch::Sender<Arc<NodeView>>,
    local: LocalNode,
    runtime: watch::Receiver<RuntimeState>,
    silent_since: Option<Instant>,
    images: watch::Receiver<RuntimeImages>,
    pleg: Arc<dyn Fn() -> Option<String> + Send + Sync>,
    problem: watch::Sender<Option<String>>,
    recorder: Recorder,
    clock: Clock,
    pub(super) metrics: Arc<NodeMetrics>,
    port: u16,
    disks: DiskSampler,
    addresses: Addresses,
    update_state: NodeUpdateState,
    pressure: watch::Receiver<Pressure>,
    shutdown: watch::Receiver<ShutdownState>,
    schedule: ReportSchedule,
    chance: NodeRandom,
    began: Instant,
    /// Times at which changes were sent lately.
    sent: VecDeque<Instant>,
    address_warning: WarningThrottle,
    empty_disk_reported: bool,
}

impl<A: NodeApi> StatusTask<A> {
    /// A task that has not begun, and the node as it would be registered now.
    pub(super) fn new<C>(
        parts: NodeParts<C>,
        api: A,
        seen: watch::Sender<ObservedNode>,
        local: LocalNode,
    ) -> (Self, watch::Receiver<Arc<NodeView>>) {
        let nothing = NodeView::new(&Node::default(), &local);
        let (own, shown_own) = watch::channel(Arc::new(nothing));
        let mut task = Self {
            api,
            shown: seen.subscribe(),
            seen,
            registered: false,
            own,
            local,
            runtime: parts.runtime,
            silent_since: None,
            images: parts.images,
            pleg: parts.problems,
            problem: parts.problem,
            recorder: parts.recorder,
            clock: parts.clock,
            metrics: parts.metrics,
            port: parts.server_port.unwrap_or(0),
            disks: DiskSampler::new(parts.root),
            addresses: Addresses::new(),
            update_state: NodeUpdateState::default(),
            pressure: parts.pressure,
            shutdown: parts.shutdown,
            schedule: ReportSchedule::default(),
            chance: NodeRandom::new(&parts.settings.name, 0),
            began: Instant::now(),
            sent: VecDeque::new(),
            address_warning: WarningThrottle::default(),
            empty_disk_reported: false,
            settings: parts.settings,
            facts: parts.facts,
        };
        let found = task.addresses.without_lookup(&task.settings);
        let disks = task.disks.last();
        let observed = task.observed(&found, disks);
        task.show_own(&observed);
        (task, shown_own)
    }

    /// Keeps the node object forever.
    pub(super) async fn run(mut self) -> Infallible {
        self.record(&NodeEvent {
            warning: false,
            reason: event_reason::STARTING,
            message: "Starting kubelet.".to_owned(),
        });
        self.until_the_runtime_is_known().await;
        let mut backoff = Backoff::new(RETRY_FIRST, RETRY_LONGEST);
        let mut failures = 0;
        let mut throttle = WarningThrottle::default();
        loop {
            match self.round(failures > 0).await {
                Ok(()) => {
                    failures = 0;
                    backoff.reset();
                    throttle.reset();
                    self.until_something_changes().await;
                }
                Err(error) => {
                    failures += 1;
                    let wait = backoff
                        .advance()
                        .max(error.retry_after().unwrap_or_default());
                    let text = ErrorChain(&error).to_string();
                    if throttle.is_due(&text) {
                        let what = match self.registered || !self.settings.register {
                            true => "Unable to update node status",
                            false => "Unable to register node with API server",
                        };
                        warn!(node = %self.settings.name, error = text, retry = ?wait, "{what}");
                    }
                    if failures % FAILURES_TO_RECONNECT == 0 && error.code().is_none() {
                        self.api.reconnect();
                    }
                    sleep(wait).await;
                }
            }
        }
    }

    /// Gives the runtime a moment to answer for the first time: a node that is ready must not be
    /// called unready only because the agent was restarted.
    async fn until_the_runtime_is_known(&mut self) {
        let mut runtime = self.runtime.clone();
        let known = async {
            let answers = |state: &RuntimeState| state.answered || state.problem.is_some();
            runtime.wait_for(answers).await.is_ok()
        };
        // The name of the node is looked up in the same time.
        let (known, _) = tokio::join!(
            timeout(FIRST_ANSWER, known),
            self.addresses.find(&self.settings)
        );
        if known.is_err() {
            info!("Waiting for the container runtime");
        }
    }

    async fn until_something_changes(&mut self) {
        // Cancel safety: watch receivers keep what was not seen.
        tokio::select! {
            () = sleep(self.settings.update_frequency) => {}
            () = changed(&mut self.runtime) => {}
            () = changed(&mut self.images) => {}
            () = changed(&mut self.pressure) => {}
            () = changed(&mut self.shutdown) => {}
            () = changed(&mut self.shown) => {}
        }
    }

    /// Computes the node once, and sends what has to be sent. After a failure the node is read
    /// again: the known copy may be too old.
    async fn round(&mut self, read_again: bool) -> Result<(), ApiError> {
        let observed = self.observe().await;
        self.show_own(&observed);
        let seen = self.shown.borrow_and_update().clone();
        let registers = self.settings.register;
        self.report_missing_node(seen.absent);
        if registers && !self.registered {
            return self.register(&observed).await;
        }
        let Some(node) = seen.node else {
            // Another component has to create it.
            return Ok(());
        };
        let node = match seen.stale || read_again {
            false => node,
            true => match self.api.get_node().await {
                Ok(node) => {
                    // Whatever was sent before, this is news.
                    self.sent.clear();
                    change(&self.seen, |seen| seen.answered(node.clone()));
                    Arc::new(node)
                }
                Err(error) if error.is_not_found() => {
                    change(&self.seen, ObservedNode::gone);
                    return Ok(());
                }
                Err(error) => return Err(error),
            },
        };
        self.report(&observed, &node).await
    }

    /// A deleted node object is not registered again before the next start, as in the kubelet.
    fn report_missing_node(&self, absent: bool) {
        let lost = self.registered && absent;
        let problem = lost.then(|| {
            let name = &self.settings.name;
            format!("the node object {name} was deleted; a restart of the agent registers it again")
        });
        let changed = self.problem.send_if_modified(|shown_problem| {
            let changed = *shown_problem != problem;
            shown_problem.clone_from(&problem);
            changed
        });
        match problem {
            Some(problem) if changed => warn!("{problem}"),
            None if changed => info!(node = %self.settings.name, "The node object exists again"),
            _ => {}
        }
    }

    /// Sends what differs from the node that the API server shows, or a sign of life when it is due.
    async fn report(&mut self, observed: &NodeObservation, node: &Node) -> Result<(), ApiError> {
        let wanted = self.compute(observed, node);
        let changed = has_changed(node, &wanted);
        let due = self.schedule.is_due(self.began.elapsed()) || (changed && self.may_send());
        if !due {
            return Ok(());
        }
        let Some(patch) = patch(node, &wanted) else {
            return Ok(());
        };
        match self.api.patch_node(&patch).await {
            Ok(node) => {
                self.note_ready(&node);
                self.reported(changed);
                change(&self.seen, |seen| seen.answered(node));
                Ok(())
            }
            Err(error) if error.is_not_found() => {
                change(&self.seen, ObservedNode::gone);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Computes the node and reports what happened to it.
    pub(super) fn compute(&mut self, observed: &NodeObservation, shown: &Node) -> Node {
        let (settings, facts) = (&self.settings, &self.facts);
        let updated = update(settings, facts, observed, shown, &mut self.update_state);
        match updated.address_problem {
            None => self.address_warning.reset(),
            Some(problem) => {
                let problem = problem.to_string();
                if self.address_warning.is_due(&problem) {
                    warn!(node = %self.settings.name, problem, "Cannot determine the node addresses");
                }
            }
        }
        for event in updated.events {
            self.record(&event);
        }
        updated.node
    }

    /// Notes that a report was sent.
    pub(super) fn reported(&mut self, changed: bool) {
        let chance = self.chance.next_unit();
        let frequency = self.settings.report_frequency;
        let at = self.began.elapsed();
        self.schedule.sent(at, frequency, changed, chance);
        if changed {
            self.sent.push_back(Instant::now());
        }
    }

    /// Notes for the metrics that the API server shows the node as ready.
    pub(super) fn note_ready(&self, node: &Node) {
        if is_ready(&node.status.conditions) {
            self.metrics.node_startup.ready();
        }
    }

    fn may_send(&mut self) -> bool {
        let window = self.settings.update_frequency;
        while self.sent.front().is_some_and(|at| at.elapsed() >= window) {
            self.sent.pop_front();
        }
        self.sent.len() < BURST
    }

    async fn observe(&mut self) -> NodeObservation {
        let imagefs = self.images.borrow_and_update().file_system.clone();
        let disks = self.disks.measure(imagefs).await;
        let found = self.addresses.find(&self.settings).await;
        self.report_empty_disk(disks);
        self.observed(&found, disks)
    }

    fn observed(&mut self, found: &HostAddresses, disks: DiskCapacities) -> NodeObservation {
        let runtime = self.runtime.borrow_and_update().clone();
        let now = Instant::now();
        self.silent_since = match runtime.silent {
            true => self.silent_since.or(Some(now)),
            false => None,
        };
        let health = RuntimeHealth {
            answered: runtime.answered,
            silent: self.silent_since.map(|since| now.duration_since(since)),
            problem: runtime.problem.clone(),
            network_problem: runtime.network_problem.clone(),
        };
        let mut problems = health.problems((self.pleg)());
        if *self.shutdown.borrow_and_update() == ShutdownState::ShuttingDown {
            problems.push(NOT_READY.to_owned());
        }
        let settings = &self.settings;
        NodeObservation {
            now: self.clock.now(),
            addresses: addresses::choose(settings, found),
            nodefs: disks.nodefs,
            pressure: *self.pressure.borrow_and_update(),
            runtime_version: runtime_version(&runtime),
            handlers: handlers(&runtime),
            supplemental_groups: runtime.supplemental_groups_policy,
            images: Arc::clone(&self.images.borrow().images),
            problems,
            port: self.port,
        }
    }

    /// Shows others the node as it would be registered now.
    fn show_own(&mut self, observed: &NodeObservation) {
        let first = initial(&self.settings, &self.facts);
        let mut state = NodeUpdateState::default();
        let updated = update(&self.settings, &self.facts, observed, &first, &mut state);
        let view = NodeView::new(&updated.node, &self.local);
        self.own.send_if_modified(|own| {
            let changed = **own != view;
            if changed {
                *own = Arc::new(view);
            }
            changed
        });
    }

    fn report_empty_disk(&mut self, disks: DiskCapacities) {
        let empty = disks.imagefs == Some(0);
        if empty && !self.empty_disk_reported {
            self.record(&NodeEvent {
                warning: true,
                reason: event_reason::INVALID_DISK_CAPACITY,
                message: "invalid capacity 0 on image filesystem".to_owned(),
            });
        }
        self.empty_disk_reported = empty;
    }

    fn record(&self, event: &NodeEvent) {
        let kind = match event.warning {
            true => EventType::Warning,
            false => EventType::Normal,
        };
        let subject = Subject::Node(self.settings.name.clone());
        self.recorder
            .record(subject, kind, event.reason, &event.message);
    }
}

/// `containerRuntimeVersion`: the runtime's name is its scheme.
fn runtime_version(runtime: &RuntimeState) -> Box<str> {
    let name = &*runtime.name;
    match runtime.version.strip_prefix(name).map(str::trim) {
        Some(version) if !version.is_empty() => format!("{name}://{version}").into(),
        _ => "".into(),
    }
}

fn handlers(runtime: &RuntimeState) -> Vec<NodeRuntimeHandler> {
    let handlers = runtime.handlers.iter();
    handlers
        .map(|handler| NodeRuntimeHandler {
            name: handler.name.clone(),
            features: Some(NodeRuntimeHandlerFeatures {
                recursive_read_only_mounts: Some(handler.recursive_read_only_mounts),
                user_namespaces: Some(handler.user_namespaces),
            }),
        })
        .collect()
}

/// Waits for a change; forever if there can be no more.
async fn changed<T>(receiver: &mut watch::Receiver<T>) {
    if receiver.changed().await.is_err() {
        pending::<()>().await;
    }
}
