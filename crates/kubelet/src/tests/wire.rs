//! The connection from the agent to the model runtime, with the faults of a connection to another
//! process.

use std::{
    any::Any,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use async_trait::async_trait;
use parking_lot::{Mutex, MutexGuard};
use rubelet_cri::{Call, CriError, CriResult, EventStream, RuntimeService, v1};
use rubelet_sim::Sim;

/// The model runtime as another process: it may complete calls whose caller died, lose track of
/// containers, and report success for calls without an effect. Clones share their state.
#[derive(Clone)]
pub(super) struct Wire {
    sim: Sim,
    state: Arc<Mutex<WireState>>,
}

#[derive(Default)]
struct WireState {
    finishes: bool,
    interrupts_starts: bool,
    interrupted: BTreeSet<String>,
    ignores: BTreeSet<&'static str>,
    unknown: BTreeSet<String>,
    reasons: BTreeMap<String, String>,
    without_address: bool,
    stamped: bool,
    observer: Option<Arc<dyn CallObserver>>,
}

/// Observes every call over the connection, and how it ends.
pub(super) trait CallObserver: Send + Sync {
    /// A call begins; returns its number.
    fn began(&self, call: &'static str, request: &dyn Any) -> usize;

    /// The call ended; `None` if its caller abandoned it.
    fn ended(&self, call: usize, result: Option<Result<(), &CriError>>);
}

impl Wire {
    pub(super) fn new(sim: &Sim) -> Self {
        Self {
            sim: sim.clone(),
            state: Arc::default(),
        }
    }

    /// Calls continue when their agent is killed or abandons them.
    pub(super) fn finish_abandoned_calls(&self) {
        self.state().finishes = true;
    }

    /// A start whose caller goes away before the response fails, as in containerd, unless it has
    /// had its effect: the container is left exited.
    pub(super) fn interrupt_starts(&self) {
        self.state().interrupts_starts = true;
    }

    /// Whether the start of this container was interrupted and must fail.
    pub(super) fn was_interrupted(&self, id: &str) -> bool {
        self.state().interrupted.contains(id)
    }

    /// Changes the reported reason of this container's exit.
    pub(super) fn change_reason(&self, id: &str, reason: &str) {
        self.state()
            .reasons
            .insert(id.to_owned(), reason.to_owned());
    }

    /// Makes calls of this RPC succeed without an effect, or have their effect again.
    pub(super) fn ignore(&self, call: &'static str, ignored: bool) {
        let mut state = self.state();
        if ignored {
            state.ignores.insert(call);
        } else {
            state.ignores.remove(call);
        }
    }

    /// Reports the state of this container as UNKNOWN, or truthfully again.
    pub(super) fn lose_track(&self, id: &str, lost: bool) {
        let mut state = self.state();
        if lost {
            state.unknown.insert(id.to_owned());
        } else {
            state.unknown.remove(id);
        }
    }

    /// Reports sandboxes without addresses, or with them again.
    pub(super) fn hide_addresses(&self, hidden: bool) {
        self.state().without_address = hidden;
    }

    /// Reports sandbox statuses with a timestamp and no containers, as containerd 2.0.0 to 2.0.2
    /// does, or without the timestamp.
    pub(super) fn stamp_sandboxes(&self, stamped: bool) {
        self.state().stamped = stamped;
    }

    /// Passes all further calls to this observer.
    pub(super) fn observe_calls(&self, observer: Arc<dyn CallObserver>) {
        self.state().observer = Some(observer);
    }

    fn state(&self) -> MutexGuard<'_, WireState> {
        self.state.lock()
    }

    fn with_faults<T: Any>(&self, mut answer: T) -> T {
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

/// A call in flight. A start that is dropped before its response is interrupted.
struct InFlightCall {
    wire: Wire,
    starts: Option<v1::StartContainerRequest>,
}

impl InFlightCall {
    fn new<T: Any>(wire: &Wire, request: &T) -> Self {
        let starts = (request as &dyn Any).downcast_ref::<v1::StartContainerRequest>();
        let interrupts_starts = wire.state().interrupts_starts;
        Self {
            wire: wire.clone(),
            starts: starts.filter(|_| interrupts_starts).cloned(),
        }
    }
}

impl Drop for InFlightCall {
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

/// A call that is reported to the observer.
struct ObservedCall {
    observer: Option<Arc<dyn CallObserver>>,
    call: usize,
}

impl ObservedCall {
    fn new(wire: &Wire, call: &'static str, request: &dyn Any) -> Self {
        let observer = wire.state().observer.clone();
        let call = observer
            .as_ref()
            .map_or(0, |observer| observer.began(call, request));
        Self { observer, call }
    }

    fn end<T>(mut self, answer: CriResult<T>) -> CriResult<T> {
        if let Some(observer) = self.observer.take() {
            observer.ended(self.call, Some(answer.as_ref().map(|_| ())));
        }
        answer
    }
}

impl Drop for ObservedCall {
    fn drop(&mut self) {
        if let Some(observer) = self.observer.take() {
            observer.ended(self.call, None);
        }
    }
}

macro_rules! forward {
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
                let observed = ObservedCall::new(self, <v1::$request as Call>::NAME, &request);
                if ignored {
                    return observed.end(Ok(v1::$response::default()));
                }
                let mut in_flight = InFlightCall::new(self, &request);
                let sim = self.sim.clone();
                let call = async move { RuntimeService::$method(&sim, request).await };
                let answer = if finishes {
                    tokio::spawn(call).await.expect("the model does not panic")
                } else {
                    call.await
                };
                in_flight.starts = None;
                observed.end(answer.map(|answer| self.with_faults(answer)))
            })*
        }
    };
}

forward! {
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
