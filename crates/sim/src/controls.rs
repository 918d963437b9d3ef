//! What a test can do to the runtime besides calling it.

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

/// Scripts. They run inside of the model: one that calls the model would wait for itself.
impl Sim {
    /// Every start of a container of this image does this.
    pub fn on_image(&self, image: &str, behavior: Behavior) {
        self.on_image_with(image, move |_| behavior.clone());
    }

    /// Each start of a container of this image is decided by `script`.
    pub fn on_image_with(
        &self,
        image: &str,
        script: impl FnMut(&Start<'_>) -> Behavior + Send + 'static,
    ) {
        let image = canonical(image);
        self.with(|state| state.scripts.by_image.insert(image, Box::new(script)));
    }

    /// Every start of a container of this name does this, whatever its image.
    pub fn on_container(&self, name: &str, behavior: Behavior) {
        self.on_container_with(name, move |_| behavior.clone());
    }

    /// Each start of a container of this name is decided by `script`, whatever its image.
    pub fn on_container_with(
        &self,
        name: &str,
        script: impl FnMut(&Start<'_>) -> Behavior + Send + 'static,
    ) {
        let name = name.to_owned();
        self.with(|state| state.scripts.by_container.insert(name, Box::new(script)));
    }

    /// Each command of `ExecSync` does what `script` says. Without one it exits 0 in silence.
    pub fn on_exec(&self, script: impl FnMut(&Instance, &[String]) -> Exec + Send + 'static) {
        self.with(|state| state.scripts.exec = Some(Box::new(script)));
    }

    /// Pulling this image comes to this.
    pub fn on_pull(&self, image: &str, pull: Pull) {
        let image = canonical(image);
        self.with(|state| state.images.pulls.insert(image, pull));
    }

    /// The image is on the node. Returns its identifier.
    pub fn add_image(&self, image: &str) -> String {
        self.with(|state| state.images.add(image))
    }

    /// Changes what is said about an image that is on the node: its user, size, pin.
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

/// Trouble.
impl Sim {
    /// Down, every call fails with `Unavailable`, those under way included; containers continue. Up
    /// again, everything is as it was.
    pub fn set_down(&self, down: bool) {
        self.with(|state| state.set_down(down));
    }

    /// Down and up again in the same instant: calls under way fail.
    pub fn restart(&self) {
        self.with(|state| {
            state.set_down(true);
            state.set_down(false);
        });
    }

    /// What `Status` says of the runtime and of its network.
    pub fn set_ready(&self, runtime: bool, network: bool) {
        self.with(|state| (state.node.ready, state.node.network_ready) = (runtime, network));
    }

    /// What `RuntimeConfig` says.
    pub fn set_cgroup_driver(&self, driver: v1::CgroupDriver) {
        self.with(|state| state.node.cgroup_driver = driver);
    }

    /// A running container's process ends from outside, with this exit code and reason (empty: the
    /// one that goes with the code). Nothing happens to one that does not run.
    pub fn kill_container(&self, id: &str, code: i32, reason: &str) {
        self.with(|state| {
            let now = state.clock.now();
            state.exit(id, now, code, reason);
        });
    }

    /// A running container's process ends, and the runtime does not notice. The kernel reports the exit
    /// code, if one is given.
    pub fn end_process(&self, id: &str, code: Option<i32>) {
        self.with(|state| {
            if let Some(container) = state.containers.get_mut(id) {
                container.gone = Some(code);
            }
        });
    }

    /// Whether the kernel reports exit codes of processes that exit by themselves. False at first.
    pub fn set_exit_codes(&self, reported: bool) {
        self.with(|state| state.exit_codes = reported);
    }

    /// Processes that end by themselves do so this much earlier than the runtime notices. Zero at
    /// first.
    pub fn set_exit_lag(&self, lag: Duration) {
        self.with(|state| state.exit_lag = lag);
    }

    /// Waits for the exit of a container's process, as the kernel reports it: perhaps with its exit code.
    pub async fn process_ended(&self, id: &str) -> Option<i32> {
        self.wait(|state| state.process_gone(id)).await
    }

    /// A sandbox's pause process dies: it is not ready any more, its containers run on.
    pub fn kill_sandbox(&self, id: &str) {
        self.with(|state| state.end_sandbox(id));
    }

    /// A sandbox and its containers are gone, removed by somebody else.
    pub fn vanish_sandbox(&self, id: &str) {
        self.with(|state| state.drop_sandbox(id));
    }

    /// The memory a container is reported to use, in bytes.
    pub fn set_memory(&self, id: &str, bytes: u64) {
        self.with(|state| {
            if let Some(container) = state.containers.get_mut(id) {
                container.memory = bytes;
            }
        });
    }

    /// How long each call takes, half of it on the way there and half on the way back.
    pub fn set_latency(&self, latency: Duration) {
        self.with(|state| state.latency = latency);
    }

    /// The same for the calls of one RPC.
    ///
    /// # Panics
    /// No RPC has this name.
    pub fn set_latency_of(&self, call: &str, latency: Duration) {
        known(call);
        self.with(|state| state.latencies.insert(call.to_owned(), latency));
    }

    /// Adds a fault. Of several that fit a call, the oldest strikes.
    pub fn inject(&self, fault: Fault) {
        self.with(|state| state.faults.failures.push(fault));
    }

    /// Takes all injected faults away, those of events and lists too. Hangs end when they are
    /// dropped; events that are held stay so until they are released.
    pub fn clear_faults(&self) {
        self.with(|state| {
            state.faults.failures.clear();
            state.faults.lists.0.clear();
            state.events.event_faults.clear();
        });
    }

    /// How long a sandbox still exists after the event of its removal, before `RemovePodSandbox`
    /// ends. Zero at first.
    pub fn set_removal_lag(&self, lag: Duration) {
        self.with(|state| state.removal_lag = lag);
    }

    /// Adds a fault of lists. The oldest one of an RPC strikes.
    pub fn inject_list(&self, fault: ListFault) {
        self.with(|state| state.faults.lists.0.push(fault));
    }

    /// The runtime says that a container is in this state, whatever is true: running for ever,
    /// because its end was lost, or unknown, while the runtime recovers. `None` ends the lie.
    pub fn claim_state(&self, id: &str, claim: Option<v1::ContainerState>) {
        self.with(|state| {
            if let Some(container) = state.containers.get_mut(id) {
                container.claim = claim;
            }
        });
    }

    /// The next call of this RPC fails with this error, without effect or after it.
    ///
    /// # Panics
    /// No RPC has this name.
    pub fn fail_next(&self, call: &str, error: rubelet_cri::CriErrorKind, after_effect: bool) {
        let fault = Fault::of(call).error(error, "injected failure");
        self.inject(if after_effect {
            fault.after_effect()
        } else {
            fault
        });
    }

    /// Calls of this RPC about this subject hang, before they have any effect, until the returned
    /// value is released or dropped. Their callers' deadlines still hold.
    ///
    /// # Panics
    /// No RPC has this name.
    pub fn hang(&self, call: &str, subject: Subject) -> Hang {
        Hang::new(self.clone(), call, subject, Moment::Before)
    }

    /// The same, but the calls have had their effect; only the answer does not come.
    ///
    /// # Panics
    /// No RPC has this name.
    pub fn hang_after_effect(&self, call: &str, subject: Subject) -> Hang {
        Hang::new(self.clone(), call, subject, Moment::After)
    }
}

/// The truth, without a call.
impl Sim {
    /// Wall time in the model, in nanoseconds since 1970: what its timestamps are taken from.
    #[must_use]
    pub fn wall_now(&self) -> i64 {
        self.look(|state| wall(state.clock.now()))
    }

    /// The running container of this pod and name; the newest, should there be several.
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

    /// True if this process is there and belongs to this container.
    #[must_use]
    pub fn is_process_of(&self, pid: u32, id: &str) -> bool {
        self.look(|state| {
            let found = state.containers.get(id);
            found
                .is_some_and(|found| found.pid == pid && found.is_running() && found.gone.is_none())
        })
    }

    /// What a container of this pod, name and attempt printed.
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

    /// All containers there are, oldest first.
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

    /// What a container was created with.
    #[must_use]
    pub fn container_config(&self, id: &str) -> Option<v1::ContainerConfig> {
        self.look(|state| Some(state.containers.get(id)?.config.clone()))
    }

    /// What a sandbox was created with.
    #[must_use]
    pub fn sandbox_config(&self, id: &str) -> Option<v1::PodSandboxConfig> {
        self.look(|state| Some(state.sandboxes.get(id)?.config.clone()))
    }

    /// The pod CIDR that the runtime was given last.
    #[must_use]
    pub fn pod_cidr(&self) -> String {
        self.look(|state| state.node.pod_cidr.clone())
    }
}
