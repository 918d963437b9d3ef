//! Processes in containers: start, signals, exit.

use std::{sync::Arc, time::Duration};

use rubelet_cri::v1::{
    self,
    ContainerEventType::{ContainerStartedEvent, ContainerStoppedEvent},
};

use super::{
    RuntimeError, SimState,
    container::{Phase, plain_reason},
};
use crate::{
    Behavior, EntryKind, Exec, Instance, Start,
    behavior::{Exit, Term},
    clock::wall,
    wait::Wait,
};

/// Exit code after SIGKILL.
const KILLED: i32 = 137;

/// What containerd reports for a container that could not be started.
const START_ERROR: (i32, &str) = (128, "StartError");

impl SimState {
    pub(crate) fn start_container(
        &mut self,
        request: &v1::StartContainerRequest,
    ) -> Result<v1::StartContainerResponse, RuntimeError> {
        let container = self.container(&request.container_id)?;
        if !matches!(container.phase, Phase::Created) {
            return Err(RuntimeError::unknown(format!(
                "failed to set starting state for container {:?}: container is in {} state",
                request.container_id,
                container.state().as_str_name()
            )));
        }
        let instance = container.instance.clone();
        let image_id = container.image_id.clone();
        let sandbox = self.sandboxes.get(&instance.sandbox_id);
        let behavior = if sandbox.is_some_and(|sandbox| sandbox.ready) {
            self.behavior(&instance, &image_id)
        } else {
            Behavior::does_not_start("sandbox container is not running")
        };
        if let Some(message) = behavior.refusal {
            self.fail_start(&instance, &message);
            return Err(RuntimeError::unknown(message));
        }
        let now = self.clock.now();
        let started_at = self.clock.stamp();
        let end = behavior
            .exit
            .as_ref()
            .map(|exit| (now + exit.after, exit.code, exit.reason));
        if let Some((at, ..)) = end {
            self.exits.insert((at, instance.id.clone()));
        }
        let pid = self.fresh_pid();
        if let Some(container) = self.containers.get_mut(&instance.id) {
            container.pid = pid;
            container.started_at = started_at;
            container.log.clone_from(&behavior.prints);
            container.phase = Phase::Running {
                behavior,
                end,
                sigterm_sent: false,
            };
        }
        self.record(EntryKind::ContainerStarted(instance.clone()));
        self.emit_for_container(ContainerStartedEvent, now, &instance);
        Ok(v1::StartContainerResponse::default())
    }

    fn fail_start(&mut self, instance: &Instance, message: &str) {
        let finished_at = self.clock.stamp();
        let known = self.clock.now();
        let Some(container) = self.containers.get_mut(&instance.id) else {
            return;
        };
        container.finished_at = finished_at;
        container.phase = Phase::Exited {
            code: START_ERROR.0,
            reason: START_ERROR.1.to_owned(),
            message: message.to_owned(),
            known,
        };
        let instance = container.instance.clone();
        self.record(EntryKind::ContainerNotStarted(instance));
    }

    fn behavior(&mut self, instance: &Instance, image_id: &str) -> Behavior {
        let whose = (instance.pod_uid.clone(), instance.name.clone());
        let starts = self.starts.entry(whose).or_default();
        let start = Start {
            instance,
            earlier: *starts,
        };
        *starts += 1;
        if let Some(script) = self.scripts.by_container.get_mut(&instance.name) {
            return script(&start);
        }
        let image = self.images.find(image_id);
        let tags = image.map(|image| image.repo_tags.as_slice());
        for tag in tags.unwrap_or_default() {
            if let Some(script) = self.scripts.by_image.get_mut(tag) {
                return script(&start);
            }
        }
        Behavior::runs()
    }

    /// Processes the exits that are due by now.
    pub(crate) fn process_due_exits(&mut self) {
        let now = self.clock.now();
        while let Some((at, id)) = self.exits.first().filter(|(at, _)| *at <= now).cloned() {
            let end = match self.containers.get(&id).map(|container| &container.phase) {
                Some(Phase::Running { end, .. }) => *end,
                _ => None,
            };
            if let Some((at, code, reason)) = end {
                self.exit(&id, at, code, reason);
            }
            self.exits.remove(&(at, id));
        }
    }

    /// When the next container will exit by itself.
    pub(crate) fn next_exit(&self) -> Option<Duration> {
        self.exits.first().map(|(at, _)| *at)
    }

    /// Ends a running container's process. An empty reason means the one that belongs to the code.
    pub(crate) fn exit(&mut self, id: &str, at: Duration, code: i32, reason: &str) {
        let running = self
            .containers
            .get_mut(id)
            .filter(|container| container.is_running());
        let Some(container) = running else {
            return;
        };
        let (reason, known) = match reason {
            "" => (plain_reason(code), at),
            reason => (reason, at + container.reason_lag()),
        };
        if let Phase::Running {
            end: Some((planned, ..)),
            ..
        } = &container.phase
        {
            self.exits.remove(&(*planned, id.to_owned()));
        }
        // The exit is after the start, even if the clock's resolution does not distinguish them.
        container.finished_at = wall(at).max(container.started_at + 1);
        container.phase = Phase::Exited {
            code,
            reason: reason.to_owned(),
            message: String::new(),
            known,
        };
        let instance = container.instance.clone();
        let what = EntryKind::ContainerExited {
            instance: instance.clone(),
            code,
            reason: reason.to_owned(),
        };
        self.record_at(at, what);
        self.emit_for_container(ContainerStoppedEvent, at, &instance);
    }

    /// PIDs above the kernel's default maximum, so that no real process has one.
    fn fresh_pid(&mut self) -> u32 {
        self.processes += 1;
        4_194_304 + self.processes
    }

    /// Waits until the process of a container has exited, as the kernel reports it. Returns the exit
    /// code if the kernel reports it.
    pub(crate) fn process_gone(&self, id: &str) -> Wait<Option<i32>> {
        let running = self.containers.get(id);
        let exited = |code: i32| Wait::Done(Some(code).filter(|_| self.exit_codes));
        match running.map(|container| (&container.phase, container.gone)) {
            Some((_, Some(code))) => Wait::Done(code),
            Some((Phase::Running { end: None, .. }, None)) => Wait::ForChange,
            Some((Phase::Running { end: Some(end), .. }, None)) => {
                let at = end.0.saturating_sub(self.exit_lag);
                if at <= self.clock.now() {
                    return exited(end.1);
                }
                Wait::Until(at)
            }
            Some((Phase::Exited { code, .. }, None)) => exited(*code),
            _ => Wait::Done(None),
        }
    }

    /// SIGKILL, for a container that runs.
    pub(crate) fn kill(&mut self, id: &str) {
        let now = self.clock.now();
        self.exit(id, now, KILLED, "");
    }

    /// SIGTERM, once, for a container that runs.
    pub(crate) fn term(&mut self, id: &str) {
        let now = self.clock.now();
        let Some(container) = self.containers.get_mut(id) else {
            return;
        };
        let Phase::Running {
            behavior,
            end,
            sigterm_sent,
        } = &mut container.phase
        else {
            return;
        };
        if std::mem::replace(sigterm_sent, true) {
            return;
        }
        if let Term::Exit { after, code } = behavior.term {
            let by = now + after;
            if end.is_none_or(|(at, ..)| at > by) {
                if let Some((planned, ..)) = end.replace((by, code, "")) {
                    self.exits.remove(&(planned, id.to_owned()));
                }
                self.exits.insert((by, id.to_owned()));
            }
        }
        let instance = container.instance.clone();
        self.record(EntryKind::SigtermSent(instance));
        self.process_due_exits();
    }

    /// Waits for a container's exit; kills it at `kill_at`.
    pub(crate) fn stopped(&mut self, id: &str, kill_at: Duration) -> Wait<()> {
        let Some(Phase::Running { end, .. }) = self.containers.get(id).map(|c| &c.phase) else {
            return Wait::Done(());
        };
        let end = *end;
        if self.clock.now() >= kill_at {
            self.kill(id);
            return Wait::Done(());
        }
        Wait::Until(end.map_or(kill_at, |(at, ..)| at.min(kill_at)))
    }

    /// Behavior of a command in a container, which must be running.
    pub(crate) fn exec(
        &mut self,
        id: &str,
        command: &[String],
    ) -> Result<(Arc<Instance>, Exec), RuntimeError> {
        let Some(container) = self.containers.get(id) else {
            return Err(RuntimeError::not_found(format!(
                "failed to exec in container: failed to find container {id:?} in store: not found"
            )));
        };
        if !container.is_running() {
            return Err(RuntimeError::unknown(format!(
                "failed to exec in container: container is in {} state",
                container.state().as_str_name()
            )));
        }
        let instance = container.instance.clone();
        self.record(EntryKind::ExecBegan {
            instance: Arc::clone(&instance),
            command: command.to_vec(),
        });
        let script = self.scripts.exec.as_mut();
        let exec = script.map_or_else(Exec::default, |script| script(&instance, command));
        Ok((instance, exec))
    }

    /// Waits until a command has run for its duration, or its container has exited.
    pub(crate) fn exec_ended(&self, id: &str, until: Duration) -> Wait<bool> {
        let running = self
            .containers
            .get(id)
            .filter(|container| container.is_running());
        match running.map(|container| &container.phase) {
            Some(Phase::Running { end, .. }) if self.clock.now() < until => {
                Wait::Until(end.map_or(until, |(at, ..)| at.min(until)))
            }
            still => Wait::Done(still.is_some()),
        }
    }
}

impl Exit {
    pub(crate) const KILLED: i32 = KILLED;
}
