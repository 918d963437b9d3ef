//! Controls for tests, besides the calls of the CRI.

mod events;
mod populate;

use std::time::Duration;

use rubelet_cri::v1;

use crate::{
    Behavior, Exec, Fault, Hang, Instance, ListFault, Pull, Sim, Start, Subject,
    clock::wall,
    fault::{Moment, known},
    image_name::canonical,
};

/// Scripts. They run while the model is locked: a script that calls the model deadlocks.
impl Sim {
    /// Sets the behavior of all containers of this image.
    pub fn on_image(&self, image: &str, behavior: Behavior) {
        self.on_image_with(image, move |_| behavior.clone());
    }

    /// `script` returns the behavior of each start of a container of this image.
    pub fn on_image_with(
        &self,
        image: &str,
        script: impl FnMut(&Start<'_>) -> Behavior + Send + 'static,
    ) {
        let image = canonical(image);
        self.with(|state| state.scripts.by_image.insert(image, Box::new(script)));
    }

    /// Sets the behavior of all containers of this name, whatever their image.
    pub fn on_container(&self, name: &str, behavior: Behavior) {
        self.on_container_with(name, move |_| behavior.clone());
    }

    /// `script` returns the behavior of each start of a container of this name, whatever its image.
    pub fn on_container_with(
        &self,
        name: &str,
        script: impl FnMut(&Start<'_>) -> Behavior + Send + 'static,
    ) {
        let name = name.to_owned();
        self.with(|state| state.scripts.by_container.insert(name, Box::new(script)));
    }

    /// `script` returns the behavior of each command of `ExecSync`. Without a script it exits with
    /// 0 and prints nothing.
    pub fn on_exec(&self, script: impl FnMut(&Instance, &[String]) -> Exec + Send + 'static) {
        self.with(|state| state.scripts.exec = Some(Box::new(script)));
    }

    /// Sets the result of pulling this image.
    pub fn on_pull(&self, image: &str, pull: Pull) {
        let image = canonical(image);
        self.with(|state| state.images.pulls.insert(image, pull));
    }

    /// Adds an image to the node. Returns its identifier.
    pub fn add_image(&self, image: &str) -> String {
        self.with(|state| state.images.add(image))
    }

    /// Changes an image that is on the node: its user, size, pin.
    ///
    /// # Panics
    /// The image is not on the node.
    pub fn edit_image(&self, image: &str, edit: impl FnOnce(&mut v1::Image)) {
        self.with(|state| {
            let found = state.images.find(image).map(|image| image.id.clone());
            let entry = found.and_then(|id| state.images.present.get_mut(&id));
            edit(entry.expect("a test edits only images it added"));
        });
    }
}

/// Failures.
impl Sim {
    /// While down, every call fails with `Unavailable`, including those in progress; containers
    /// continue. When up again, the state is unchanged.
    pub fn set_down(&self, down: bool) {
        self.with(|state| state.set_down(down));
    }

    /// Goes down and up again immediately: calls in progress fail.
    pub fn restart(&self) {
        self.with(|state| {
            state.set_down(true);
            state.set_down(false);
        });
    }

    /// Sets the conditions of the runtime and of its network in `Status`.
    pub fn set_ready(&self, runtime: bool, network: bool) {
        self.with(|state| (state.node.ready, state.node.network_ready) = (runtime, network));
    }

    /// Sets the cgroup driver in `RuntimeConfig`.
    pub fn set_cgroup_driver(&self, driver: v1::CgroupDriver) {
        self.with(|state| state.node.cgroup_driver = driver);
    }

    /// A running container's process exits, with this exit code and reason (empty: the one that
    /// belongs to the code). No effect if it is not running.
    pub fn kill_container(&self, id: &str, code: i32, reason: &str) {
        self.with(|state| {
            let now = state.clock.now();
            state.exit(id, now, code, reason);
        });
    }

    /// A running container's process exits without the runtime noticing. The kernel reports the exit
    /// code, if one is given.
    pub fn exit_unnoticed(&self, id: &str, code: Option<i32>) {
        self.with(|state| {
            if let Some(container) = state.containers.get_mut(id) {
                container.gone = Some(code);
            }
        });
    }

    /// Whether the kernel reports exit codes of processes that exit by themselves. Default: false.
    pub fn set_exit_codes(&self, reported: bool) {
        self.with(|state| state.exit_codes = reported);
    }

    /// How much later than the kernel the runtime notices the exit of a process that exits by
    /// itself. Default: zero.
    pub fn set_exit_lag(&self, lag: Duration) {
        self.with(|state| state.exit_lag = lag);
    }

    /// Waits for the exit of a container's process, as the kernel reports it. Returns the exit code, if
    /// the kernel reports it.
    pub async fn wait_process_exit(&self, id: &str) -> Option<i32> {
        self.wait(|state| state.process_gone(id)).await
    }

    /// A sandbox's pause process dies: the sandbox is no longer ready, its containers continue.
    pub fn kill_sandbox(&self, id: &str) {
        self.with(|state| state.end_sandbox(id));
    }

    /// Another client removes a sandbox and its containers.
    pub fn remove_sandbox_externally(&self, id: &str) {
        self.with(|state| state.drop_sandbox(id));
    }

    /// Sets the memory usage that is reported for a container, in bytes.
    pub fn set_memory(&self, id: &str, bytes: u64) {
        self.with(|state| {
            if let Some(container) = state.containers.get_mut(id) {
                container.memory = bytes;
            }
        });
    }

    /// Sets the latency of each call, half of it before the effect and half after it.
    pub fn set_latency(&self, latency: Duration) {
        self.with(|state| state.latency = latency);
    }

    /// The same for the calls of one RPC.
    ///
    /// # Panics
    /// There is no RPC of this name.
    pub fn set_latency_of(&self, call: &str, latency: Duration) {
        known(call);
        self.with(|state| state.latencies.insert(call.to_owned(), latency));
    }

    /// Adds a fault. If several match a call, the oldest one is used.
    pub fn inject(&self, fault: Fault) {
        self.with(|state| state.faults.failures.push(fault));
    }

    /// Removes all injected faults, including those of events and lists. A [`Hang`] ends when it is
    /// dropped; held events stay held until they are released.
    pub fn clear_faults(&self) {
        self.with(|state| {
            state.faults.failures.clear();
            state.faults.lists.0.clear();
            state.events.event_faults.clear();
        });
    }

    /// How long a sandbox still exists after the event of its removal, before `RemovePodSandbox`
    /// returns. Default: zero.
    pub fn set_removal_lag(&self, lag: Duration) {
        self.with(|state| state.removal_lag = lag);
    }

    /// Adds a fault of lists. The oldest one of an RPC is used.
    pub fn inject_list(&self, fault: ListFault) {
        self.with(|state| state.faults.lists.0.push(fault));
    }

    /// The runtime reports this state of a container, whatever the real one is: running for ever,
    /// because its exit was lost, or unknown, while the runtime recovers. `None` restores the real
    /// state.
    pub fn override_state(&self, id: &str, override_state: Option<v1::ContainerState>) {
        self.with(|state| {
            if let Some(container) = state.containers.get_mut(id) {
                container.override_state = override_state;
            }
        });
    }

    /// The next call of this RPC fails with this error, before or after its effect.
    ///
    /// # Panics
    /// There is no RPC of this name.
    pub fn fail_next(&self, call: &str, error: rubelet_cri::CriErrorKind, after_effect: bool) {
        let fault = Fault::of(call).error(error, "injected failure");
        self.inject(if after_effect {
            fault.after_effect()
        } else {
            fault
        });
    }

    /// Calls of this RPC about this subject hang before their effect, until the returned value is
    /// released or dropped. Their callers' deadlines still apply.
    ///
    /// # Panics
    /// There is no RPC of this name.
    pub fn hang(&self, call: &str, subject: Subject) -> Hang {
        Hang::new(self.clone(), call, subject, Moment::Before)
    }

    /// The same, but the calls hang after their effect; only the response is missing.
    ///
    /// # Panics
    /// There is no RPC of this name.
    pub fn hang_after_effect(&self, call: &str, subject: Subject) -> Hang {
        Hang::new(self.clone(), call, subject, Moment::After)
    }
}

/// The real state, without a call.
impl Sim {
    /// Wall time in the model, in nanoseconds since 1970, from which its timestamps are taken.
    #[must_use]
    pub fn wall_now(&self) -> i64 {
        self.look(|state| wall(state.clock.now()))
    }

    /// The running container of this pod and name; the newest if there are several.
    #[must_use]
    pub fn running(&self, pod_uid: &str, name: &str) -> Option<String> {
        self.look(|state| {
            let mut running = state.containers.values().filter(|container| {
                let instance = &container.instance;
                container.is_running() && instance.pod_uid == pod_uid && instance.name == name
            });
            running
                .next_back()
                .map(|container| container.instance.id.clone())
        })
    }

    /// Whether this process exists and belongs to this container.
    #[must_use]
    pub fn is_process_of(&self, pid: u32, id: &str) -> bool {
        self.look(|state| {
            let found = state.containers.get(id);
            found
                .is_some_and(|found| found.pid == pid && found.is_running() && found.gone.is_none())
        })
    }

    /// The log of a container of this pod, name and attempt.
    #[must_use]
    pub fn log(&self, pod_uid: &str, name: &str, attempt: u32) -> Vec<String> {
        self.look(|state| {
            let found = state.containers.values().find(|container| {
                let of = &container.instance;
                of.pod_uid == pod_uid && of.name == name && of.attempt == attempt
            });
            found
                .map(|container| container.log.clone())
                .unwrap_or_default()
        })
    }

    /// All containers, oldest first.
    #[must_use]
    pub fn containers(&self) -> Vec<Instance> {
        self.look(|state| {
            let all = state.containers.values();
            all.map(|container| (*container.instance).clone()).collect()
        })
    }

    /// The sandboxes of a pod, oldest first.
    #[must_use]
    pub fn sandboxes(&self, pod_uid: &str) -> Vec<String> {
        self.look(|state| {
            let all = state.sandboxes.values();
            let of_pod = all.filter(|sandbox| sandbox.metadata.uid == pod_uid);
            of_pod.map(|sandbox| sandbox.id.clone()).collect()
        })
    }

    /// The configuration of a container.
    #[must_use]
    pub fn container_config(&self, id: &str) -> Option<v1::ContainerConfig> {
        self.look(|state| Some(state.containers.get(id)?.config.clone()))
    }

    /// The configuration of a sandbox.
    #[must_use]
    pub fn sandbox_config(&self, id: &str) -> Option<v1::PodSandboxConfig> {
        self.look(|state| Some(state.sandboxes.get(id)?.config.clone()))
    }

    /// The last pod CIDR that the runtime received.
    #[must_use]
    pub fn pod_cidr(&self) -> String {
        self.look(|state| state.node.pod_cidr.clone())
    }
}
