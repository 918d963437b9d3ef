//! The way from the agent to the model: what a connection to another process adds to it.

use std::{
    any::Any,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use async_trait::async_trait;
use parking_lot::{Mutex, MutexGuard};
use rubelet_cri::{Call, CriError, CriResult, EventStream, RuntimeService, v1};
use rubelet_sim::Sim;

/// The model as another process: it may finish calls whose caller died, lose track of containers,
/// and say that it did what it did not do. Clones are the same wire.
#[derive(Clone)]
pub(super) struct Wire {
    sim: Sim,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    finishes: bool,
    breaks_off: bool,
    interrupted: BTreeSet<String>,
    ignores: BTreeSet<&'static str>,
    unknown: BTreeSet<String>,
    reasons: BTreeMap<String, String>,
    without_address: bool,
    stamped: bool,
    witness: Option<Arc<dyn Witness>>,
}

/// Sees every call that is made over the wire, and how it ends.
pub(super) trait Witness: Send + Sync {
    /// A call begins; returns what it is known by from now on.
    fn began(&self, call: &'static str, request: &dyn Any) -> usize;

    /// It ended; `None`: its caller gave it up.
    fn ended(&self, call: usize, result: Option<Result<(), &CriError>>);
}

impl Wire {
    pub(super) fn new(sim: &Sim) -> Self {
        Self {
            sim: sim.clone(),
            state: Arc::default(),
        }
    }

    /// Calls continue when the agent that made them is killed or gives them up.
    pub(super) fn finish_abandoned_calls(&self) {
        self.state().finishes = true;
    }

    /// The start of a container whose caller goes away before the answer fails, unless it has had
    /// its effect, as it does in containerd: the container is left exited.
    pub(super) fn break_off_starts(&self) {
        self.state().breaks_off = true;
    }

    /// Whether the start of this container was broken off: it is then to fail.
    pub(super) fn was_interrupted(&self, id: &str) -> bool {
        self.state().interrupted.contains(id)
    }

    /// From now on the reason of this container's exit is reported as this one.
    pub(super) fn change_reason(&self, id: &str, reason: &str) {
        self.state()
            .reasons
            .insert(id.to_owned(), reason.to_owned());
    }

    /// Calls of this RPC succeed and have no effect, or have one again.
    pub(super) fn ignore(&self, call: &'static str, ignored: bool) {
        let mut state = self.state();
        if ignored {
            state.ignores.insert(call);
        } else {
            state.ignores.remove(call);
        }
    }

    /// The state of this container is reported as unknown, or as it is.
    pub(super) fn lose_track(&self, id: &str, lost: bool) {
        let mut state = self.state();
        if lost {
            state.unknown.insert(id.to_owned());
        } else {
            state.unknown.remove(id);
        }
    }

    /// Sandboxes are reported to have no address, or to have theirs.
    pub(super) fn hide_addresses(&self, hidden: bool) {
        self.state().without_address = hidden;
    }

    /// Statuses of sandboxes have a time and no containers, as those of containerd 2.0.0 to 2.0.2,
    /// or neither.
    pub(super) fn stamp_sandboxes(&self, stamped: bool) {
        self.state().stamped = stamped;
    }

    /// All calls are seen by this witness from now on.
    pub(super) fn be_seen_by(&self, witness: Arc<dyn Witness>) {
        self.state().witness = Some(witness);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn with_lost<T: Any>(&self, mut answer: T) -> T {
        let state = self.state();
        let any: &mut dyn Any = &mut answer;
        if let Some(v1::ContainerStatusResponse {
            status: Some(status),
            ..
        }) = any.downcast_mut()
        {
            if state.unknown.contains(&status.id) {
                status.set_state(v1::ContainerState::ContainerUnknown);
            }
            if let Some(reason) = state.reasons.get(&status.id) {
                status.reason.clone_from(reason);
            }
        } else if let Some(v1::PodSandboxStatusResponse {
            status: Some(status),
            timestamp,
            ..
        }) = any.downcast_mut()
        {
            if state.stamped {
                *timestamp = self.sim.wall_now();
            }
            if let Some(network) = status.network.as_mut().filter(|_| state.without_address) {
                network.ip.clear();
            }
        } else if let Some(v1::ListContainersResponse { containers }) = any.downcast_mut() {
            for container in containers {
                if state.unknown.contains(&container.id) {
                    container.set_state(v1::ContainerState::ContainerUnknown);
                }
            }
        }
        answer
    }
}

/// A call that is under way; if it is given up, and was a start, that has consequences.
struct UnderWay {
    wire: Wire,
    starts: Option<v1::StartContainerRequest>,
}

impl UnderWay {
    fn new<T: Any>(wire: &Wire, request: &T) -> Self {
        let starts = (request as &dyn Any).downcast_ref::<v1::StartContainerRequest>();
        let breaks_off = wire.state().breaks_off;
        Self {
            wire: wire.clone(),
            starts: starts.filter(|_| breaks_off).cloned(),
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if let Some(request) = self.starts.take() {
            self.wire
                .state()
                .interrupted
                .insert(request.container_id.clone());
            let sim = self.wire.sim.clone();
            tokio::spawn(async move { sim.start_container(request).await });
        }
    }
}

/// A call that a witness sees.
struct Seen {
    witness: Option<Arc<dyn Witness>>,
    call: usize,
}

impl Seen {
    fn new(wire: &Wire, call: &'static str, request: &dyn Any) -> Self {
        let witness = wire.state().witness.clone();
        let call = witness
            .as_ref()
            .map_or(0, |witness| witness.began(call, request));
        Self { witness, call }
    }

    fn end<T>(mut self, answer: CriResult<T>) -> CriResult<T> {
        if let Some(witness) = self.witness.take() {
            witness.ended(self.call, Some(answer.as_ref().map(|_| ())));
        }
        answer
    }
}

impl Drop for Seen {
    fn drop(&mut self) {
        if let Some(witness) = self.witness.take() {
            witness.ended(self.call, None);
        }
    }
}

macro_rules! carry {
    ($($method:ident $request:ident $response:ident;)*) => {
        #[async_trait]
        impl RuntimeService for Wire {
            fn container_events(&self) -> EventStream {
                self.sim.container_events()
            }

            $(async fn $method(&self, request: v1::$request) -> CriResult<v1::$response> {
                let (finishes, ignored) = {
                    let state = self.state();
                    (state.finishes, state.ignores.contains(<v1::$request as Call>::NAME))
                };
                let seen = Seen::new(self, <v1::$request as Call>::NAME, &request);
                if ignored {
                    return seen.end(Ok(v1::$response::default()));
                }
                let mut under_way = UnderWay::new(self, &request);
                let sim = self.sim.clone();
                let call = async move { RuntimeService::$method(&sim, request).await };
                let answer = if finishes {
                    tokio::spawn(call).await.expect("the model does not panic")
                } else {
                    call.await
                };
                under_way.starts = None;
                seen.end(answer.map(|answer| self.with_lost(answer)))
            })*
        }
    };
}

carry! {
    version VersionRequest VersionResponse;
    status StatusRequest StatusResponse;
    runtime_config RuntimeConfigRequest RuntimeConfigResponse;
    run_pod_sandbox RunPodSandboxRequest RunPodSandboxResponse;
    stop_pod_sandbox StopPodSandboxRequest StopPodSandboxResponse;
    remove_pod_sandbox RemovePodSandboxRequest RemovePodSandboxResponse;
    pod_sandbox_status PodSandboxStatusRequest PodSandboxStatusResponse;
    list_pod_sandbox ListPodSandboxRequest ListPodSandboxResponse;
    create_container CreateContainerRequest CreateContainerResponse;
    start_container StartContainerRequest StartContainerResponse;
    stop_container StopContainerRequest StopContainerResponse;
    remove_container RemoveContainerRequest RemoveContainerResponse;
    list_containers ListContainersRequest ListContainersResponse;
    container_status ContainerStatusRequest ContainerStatusResponse;
    exec_sync ExecSyncRequest ExecSyncResponse;
    reopen_container_log ReopenContainerLogRequest ReopenContainerLogResponse;
}
