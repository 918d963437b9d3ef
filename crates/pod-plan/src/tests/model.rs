//! A model runtime that applies plans to itself, for the properties of all plans.

use std::{collections::BTreeMap, time::Duration};

use rubelet_api::pod::{Pod, RestartPolicy};

use super::build::*;
use crate::{
    History, ObservedContainer, ObservedPod, OperatorIntents, PlanSettings, PodPlan, PodSnapshot,
    ProbeKind, ProbeResult, ProbeResults, Step, Target, VolumeState,
    observed::{ContainerPhase, Exit},
    plan,
};

/// A node with one pod: what runs, what was tried, what is known.
pub(super) struct Model {
    pub(super) pod: Pod,
    pub(super) observed: ObservedPod,
    pub(super) history: History,
    pub(super) probes: ProbeResults,
    pub(super) intents: OperatorIntents,
    pub(super) status: Option<rubelet_api::status::PodStatus>,
    pub(super) target: Target,
    /// Seconds since the beginning.
    pub(super) now: i64,
    /// The number that the log directory would tell of each container.
    logged: BTreeMap<Box<str>, u32>,
    made: u32,
}

impl Model {
    pub(super) fn new(pod: Pod) -> Self {
        Self {
            pod,
            observed: ObservedPod::default(),
            history: History::default(),
            probes: ProbeResults::default(),
            intents: OperatorIntents::default(),
            status: None,
            target: Target::Run,
            now: 1000,
            logged: BTreeMap::new(),
            made: 0,
        }
    }

    /// Plans, checks what holds for every plan, and publishes.
    pub(super) fn plan(&mut self) -> PodPlan {
        self.observed.sort();
        self.history.note_observed(&self.observed);
        let plan = plan(
            &PodSnapshot {
                pod: &self.pod,
                observed: &self.observed,
                history: &self.history,
                previous: self.status.as_ref(),
                target: self.target,
                settings: &PlanSettings::default(),
                probes: &self.probes,
                intents: &self.intents,
                generation: 1,
            },
            at(self.now),
        );
        super::properties::check(self, &plan);
        self.status = Some(plan.status.clone());
        plan
    }

    /// Applies the steps of a plan.
    pub(super) fn apply(&mut self, plan: &PodPlan) {
        for step in &plan.steps {
            self.now += 1;
            self.step(step);
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::CreateSandbox { attempt } => {
                let mut made = sandbox(&self.pod, *attempt, true);
                self.made += 1;
                made.id = format!("s{}", self.made).as_str().into();
                made.created_at = at(self.now);
                self.observed.sandboxes.insert(0, made);
            }
            Step::PrecreateContainer { .. } => self.precreate(step),
            Step::StartContainer { .. } => self.start(step),
            Step::StartCreated { id, .. } => {
                let running = self.running();
                self.record(id.as_str()).phase = running;
            }
            Step::PostStart { name, .. } => {
                self.history.containers.get_mut(name).unwrap().post_start = None;
            }
            Step::KillContainers(kills) => {
                for kill in kills {
                    self.end(kill.id.as_str(), 137);
                }
            }
            Step::StopSandboxes(ids) => {
                for id in ids {
                    self.kill_sandbox(id.as_str());
                }
            }
            Step::NoteRestart { name, after_exit } => {
                let container = self.pod.spec.container(name).unwrap().clone();
                let max = Duration::from_secs(300);
                self.history
                    .note_restart(&container, *after_exit, at(self.now), max);
            }
            Step::RemoveContainers(dead) => {
                self.observed
                    .containers
                    .retain(|found| dead.iter().all(|one| one.id != found.id));
            }
            Step::RemoveSandboxes(ids) => {
                self.observed
                    .sandboxes
                    .retain(|found| !ids.contains(&found.id));
            }
            Step::RemoveVolumes => self.history.volumes = VolumeState::Removed,
            Step::CleanUp => {}
        }
        self.observed.sort();
    }

    fn precreate(&mut self, step: &Step) {
        let Step::PrecreateContainer {
            name,
            sandbox,
            restart_count,
            before,
        } = step
        else {
            return;
        };
        self.history.note_precreate(name, before);
        let container = self.pod.spec.container(name).unwrap().clone();
        self.made += 1;
        self.observed.containers.push(ObservedContainer {
            id: format!("{name}-{}", self.made).as_str().into(),
            sandbox: sandbox.clone(),
            created_at: at(self.now),
            definition: container.definition.map(|hash| hash.0),
            precreated_after: Some(before.clone()),
            ..found(name, *restart_count, ContainerPhase::Created)
        });
    }

    fn start(&mut self, step: &Step) {
        let Step::StartContainer {
            name,
            sandbox,
            precreated,
            restart_count,
            after_exit,
            ..
        } = step
        else {
            return;
        };
        let container = self.pod.spec.container(name).unwrap().clone();
        if let Some(precreated) = precreated {
            self.history.count_precreated(name, precreated);
        }
        if let Some(end) = after_exit {
            let max = Duration::from_secs(300);
            self.history
                .note_restart(&container, *end, at(self.now), max);
        }
        let next = self.logged.get(name).map_or(0, |last| last + 1);
        let count = restart_count.unwrap_or(next);
        self.logged.insert(name.clone(), count);
        let running = self.running();
        if let Some(precreated) = precreated {
            self.record(precreated.as_str()).phase = running;
        } else {
            self.made += 1;
            self.observed.containers.push(ObservedContainer {
                id: format!("{name}-{}", self.made).as_str().into(),
                sandbox: sandbox.clone(),
                created_at: at(self.now),
                definition: container.definition.map(|hash| hash.0),
                ..found(name, count, running)
            });
        }
        self.history.note_started(name);
    }

    /// Ends a container, if it runs.
    pub(super) fn end(&mut self, id: &str, code: i32) {
        let finished_at = at(self.now);
        let found = self.record(id);
        if !found.phase.may_run() {
            return;
        }
        let started_at = match found.phase {
            ContainerPhase::Running { started_at } => Some(started_at),
            _ => None,
        };
        found.phase = ContainerPhase::Exited(Exit {
            code,
            reason: if code == 0 { "Completed" } else { "Error" }.into(),
            message: "".into(),
            started_at,
            finished_at,
        });
    }

    /// Ends a sandbox and all that runs in it.
    pub(super) fn kill_sandbox(&mut self, id: &str) {
        for sandbox in &mut self.observed.sandboxes {
            if sandbox.id.as_str() == id {
                sandbox.ready = false;
            }
        }
        let inside = self.observed.containers.iter();
        let ids: Vec<_> = inside
            .filter(|found| found.sandbox.as_str() == id)
            .map(|found| found.id.clone())
            .collect();
        for id in ids {
            self.end(id.as_str(), 137);
        }
    }

    /// What time brings where nothing goes wrong: init containers end well, probes succeed.
    pub(super) fn prosper(&mut self, plan: &PodPlan) {
        for target in &plan.probes {
            self.probes
                .set(target.id.clone(), target.kind, ProbeResult::Success);
        }
        let spec = &self.pod.spec;
        let run_to_end: Vec<_> = spec
            .init_containers
            .iter()
            .filter(|one| one.restart_policy != Some(RestartPolicy::Always))
            .filter_map(|one| self.observed.newest(&one.name))
            .map(|found| found.id.clone())
            .collect();
        for id in run_to_end {
            self.end(id.as_str(), 0);
        }
        if let Some(until) = plan.wake_at {
            let seconds = until.as_second() - at(0).as_second();
            self.now = self.now.max(seconds);
        }
        self.now += 1;
    }

    pub(super) fn probe(&mut self, name: &str, kind: ProbeKind, outcome: ProbeResult) {
        if let Some(found) = self.observed.newest(name) {
            self.probes.set(found.id.clone(), kind, outcome);
        }
    }

    fn running(&self) -> ContainerPhase {
        ContainerPhase::Running {
            started_at: at(self.now),
        }
    }

    pub(super) fn record(&mut self, id: &str) -> &mut ObservedContainer {
        let mut all = self.observed.containers.iter_mut();
        all.find(|found| found.id.as_str() == id).unwrap()
    }
}
