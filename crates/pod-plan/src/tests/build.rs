//! Pods and observations for tests, written in few words.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use rubelet_api::{
    container::{
        Container, DefinitionHash, PullPolicy, RestartAction, RestartRule, TerminationMessagePolicy,
    },
    pod::{Pod, PodSource, PodSpec, RestartPolicy},
    probe::{Probe, ProbeHandler},
    resources::Resources,
    security::ContainerSecurity,
    status::PodStatus,
};
use rubelet_base::PodName;

use crate::{
    History, ObservedContainer, ObservedPod, ObservedSandbox, OperatorIntents, PlanSettings,
    PodPlan, PodSnapshot, ProbeKind, ProbeResult, ProbeResults, Target,
    observed::{ContainerPhase, Exit},
    plan,
};

/// A moment: seconds after the start of the test's day.
pub(super) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + seconds).unwrap()
}

pub(super) fn container(name: &str) -> Container {
    Container {
        name: name.into(),
        image: "img:1".into(),
        pull_policy: PullPolicy::IfNotPresent,
        command: vec![],
        args: vec![],
        working_dir: None,
        env_from: vec![],
        env: vec![],
        ports: vec![],
        resources: Resources::default(),
        restart_policy: None,
        restart_rules: vec![],
        liveness: None,
        readiness: None,
        startup: None,
        lifecycle: None,
        mounts: vec![],
        termination_message_path: "/dev/termination-log".into(),
        termination_message_policy: TerminationMessagePolicy::File,
        security: ContainerSecurity::default(),
        stdin: false,
        stdin_once: false,
        tty: false,
        hash: "h1".into(),
        definition: Some(DefinitionHash("v1:0".into())),
    }
}

pub(crate) fn pod(policy: RestartPolicy, init: &[&str], regular: &[&str]) -> Pod {
    Pod {
        uid: "u".into(),
        name: PodName::new("default", "p"),
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        generation: 0,
        created: None,
        deletion: None,
        source: PodSource::File,
        spec: PodSpec {
            init_containers: init.iter().map(|name| container(name)).collect(),
            containers: regular.iter().map(|name| container(name)).collect(),
            restart_policy: policy,
            node_name: "n".into(),
            ..PodSpec::default()
        },
        sandbox_definition: Some(DefinitionHash("v1:s".into())),
        resize_infeasible: None,
        json: "{}".into(),
    }
}

/// A sandbox made from `pod`, attempt `attempt`.
pub(super) fn sandbox(pod: &Pod, attempt: u32, ready: bool) -> ObservedSandbox {
    ObservedSandbox {
        id: format!("s{attempt}").into(),
        attempt,
        ready,
        created_at: at(i64::from(attempt)),
        host_network: pod.spec.host_network,
        ips: if pod.spec.host_network {
            vec![]
        } else {
            vec!["10.0.0.2".into()]
        },
        definition: crate::definition::sandbox_definition(pod),
    }
}

/// A container of sandbox 0 with restart count `count`.
pub(super) fn found(name: &str, count: u32, phase: ContainerPhase) -> ObservedContainer {
    ObservedContainer {
        id: format!("{name}{count}").into(),
        sandbox: "s0".into(),
        name: name.into(),
        restart_count: count,
        created_at: at(10 + i64::from(count)),
        phase,
        image: "img:1".into(),
        image_ref: "img@sha256:1".into(),
        hash: "h1".into(),
        definition: Some("v1:0".into()),
        pre_stop: None,
        grace: None,
        precreated_after: None,
        user: None,
        recursive_read_only: Vec::new(),
        process: crate::ProcessState::AsReported,
        kernel_exit: None,
    }
}

pub(super) fn running() -> ContainerPhase {
    ContainerPhase::Running { started_at: at(20) }
}

pub(super) fn exited(code: i32) -> ContainerPhase {
    exited_at(code, 30)
}

pub(super) fn exited_at(code: i32, finished: i64) -> ContainerPhase {
    ContainerPhase::Exited(Exit {
        code,
        reason: if code == 0 { "Completed" } else { "Error" }.into(),
        message: "".into(),
        started_at: Some(at(20)),
        finished_at: at(finished),
    })
}

pub(super) fn seen(
    sandboxes: Vec<ObservedSandbox>,
    containers: Vec<ObservedContainer>,
) -> ObservedPod {
    let mut pod = ObservedPod {
        sandboxes,
        containers,
    };
    pod.sort();
    pod
}

/// A node that plans: keeps history and status between plans, as a pod's task does.
pub(super) struct Node {
    pub(super) history: History,
    pub(super) status: Option<PodStatus>,
    pub(super) target: Target,
    pub(super) probes: ProbeResults,
    pub(super) intents: OperatorIntents,
}

impl Node {
    pub(super) fn new() -> Self {
        Self {
            history: History::default(),
            status: None,
            target: Target::Run,
            probes: ProbeResults::default(),
            intents: OperatorIntents::default(),
        }
    }

    pub(super) fn plan(&mut self, pod: &Pod, observed: &ObservedPod, now: i64) -> PodPlan {
        let plan = plan(
            &PodSnapshot {
                pod,
                observed,
                history: &self.history,
                previous: self.status.as_ref(),
                target: self.target,
                settings: &PlanSettings::default(),
                probes: &self.probes,
                intents: &self.intents,
                generation: pod.generation,
            },
            at(now),
        );
        self.status = Some(plan.status.clone());
        plan
    }
}

/// The steps in short: `sandbox 0`, `start a #1`, `kill a`, `stop s0`, `remove a0`.
pub(super) fn short(plan: &PodPlan) -> Vec<String> {
    use crate::Step::*;
    plan.steps
        .iter()
        .map(|step| match step {
            CreateSandbox { attempt } => format!("sandbox {attempt}"),
            StartContainer {
                name,
                precreated: Some(precreated),
                ..
            } => format!("start {name} as {precreated}"),
            StartContainer {
                name,
                restart_count,
                sandbox,
                ..
            } => match restart_count {
                Some(count) => format!("start {name} #{count} in {sandbox}"),
                None => format!("start {name} in {sandbox}"),
            },
            PrecreateContainer {
                name,
                restart_count,
                sandbox,
                before,
            } => {
                format!("precreate {name} #{restart_count} after {before} in {sandbox}")
            }
            NoteRestart { name, .. } => format!("note restart of {name}"),
            PostStart { id, .. } => format!("post start {id}"),
            StartCreated { id, .. } => format!("start created {id}"),
            KillContainers(kills) => {
                let ids: Vec<_> = kills.iter().map(|kill| kill.id.to_string()).collect();
                format!("kill {}", ids.join(","))
            }
            StopSandboxes(ids) => format!("stop {}", join(ids)),
            RemoveContainers(dead) => {
                let ids: Vec<_> = dead.iter().map(|dead| dead.id.to_string()).collect();
                format!("remove {}", ids.join(","))
            }
            RemoveSandboxes(ids) => format!("remove {}", join(ids)),
            RemoveVolumes => "remove volumes".to_owned(),
            CleanUp => "clean up".to_owned(),
        })
        .collect()
}

fn join(ids: &[rubelet_base::SandboxId]) -> String {
    ids.iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(",")
}

/// The phase, then each container as `name:state`, where a waiting or terminated state is its
/// reason.
pub(super) fn said(status: &PodStatus) -> String {
    use rubelet_api::status::ContainerState::*;
    let mut words = vec![status.phase.as_str().to_owned()];
    for one in status.all_containers() {
        let state = match &one.state {
            Waiting { reason, .. } => reason.to_string(),
            Running { .. } => "Running".to_owned(),
            Terminated(end) => format!("{}({})", end.reason, end.exit_code),
        };
        words.push(format!("{}:{state}", one.name));
    }
    words.join(" ")
}

/// Records of sandbox 0 in few words: `a=run`, `b#2=exit:1`, `c=created`, `d=unknown`, `e=oom`.
pub(super) fn records(text: &str) -> Vec<ObservedContainer> {
    text.split_whitespace()
        .map(|word| {
            let (name, state) = word.split_once('=').unwrap();
            let (name, count) = name.split_once('#').unwrap_or((name, "0"));
            let phase = match state.split_once(':') {
                Some(("exit", code)) => exited(code.parse().unwrap()),
                None if state == "run" => running(),
                None if state == "created" => ContainerPhase::Created,
                None if state == "unknown" => ContainerPhase::Unknown,
                None if state == "oom" => ContainerPhase::Exited(Exit {
                    reason: "OOMKilled".into(),
                    ..exited(137).exit().cloned().unwrap()
                }),
                _ => panic!("{word}"),
            };
            found(name, count.parse().unwrap(), phase)
        })
        .collect()
}

/// A sidecar.
pub(super) fn sidecar(name: &str) -> Container {
    Container {
        restart_policy: Some(RestartPolicy::Always),
        ..container(name)
    }
}

/// Any probe.
pub(super) fn probe() -> Box<Probe> {
    Box::new(Probe {
        handler: ProbeHandler::Exec(vec!["true".into()]),
        initial_delay: Duration::ZERO,
        period: Duration::from_secs(10),
        timeout: Duration::from_secs(1),
        success_threshold: 1,
        failure_threshold: 3,
        termination_grace: None,
    })
}

/// `Restart` or `RestartAllContainers` where the container ends with one of these codes.
pub(super) fn rule(action: RestartAction, codes: &[i32]) -> RestartRule {
    RestartRule {
        action,
        negated: false,
        exit_codes: codes.into(),
    }
}

impl Node {
    /// What the plan is for these records of a good sandbox: the steps, and what is said.
    pub(super) fn in_sandbox(&mut self, pod: &Pod, text: &str) -> (Vec<String>, String) {
        let observed = seen(vec![sandbox(pod, 0, true)], records(text));
        let plan = self.plan(pod, &observed, 100);
        (short(&plan), said(&plan.status))
    }

    /// Notes what a probe says of instance 0 of a container.
    pub(super) fn probed(mut self, name: &str, kind: ProbeKind, outcome: ProbeResult) -> Self {
        self.probes
            .set(format!("{name}0").as_str().into(), kind, outcome);
        self
    }
}

/// True conditions with a plus, others with a minus, and why.
pub(super) fn conditions(status: &PodStatus) -> Vec<String> {
    status
        .conditions
        .iter()
        .map(|one| {
            let mark = if one.status.is_true() { '+' } else { '-' };
            format!("{mark}{} {} {}", one.kind, one.reason, one.message)
                .trim_end()
                .to_owned()
        })
        .collect()
}
