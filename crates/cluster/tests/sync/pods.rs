//! What pods do: they start, fail, restart, get ready and not ready, end, and are cleaned up.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use rubelet_api::{
    pod::{Pod, PodSource, RestartPolicy},
    status::{
        Condition, ConditionStatus, ContainerState, ContainerStatus, Phase, PodStatus, Terminated,
    },
};
use rubelet_base::PodUid;
use rubelet_node_state::pod_board::{PodBoard, PodEntry};
use rubelet_pod_plan::History;

/// All pods of the node.
pub(crate) struct Lives {
    dice: u64,
    calm: bool,
    second: i64,
    number: u32,
    pods: BTreeMap<PodUid, Life>,
}

struct Life {
    pod: Arc<Pod>,
    status: PodStatus,
    finished: bool,
}

impl Lives {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            dice: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            calm: false,
            second: 1_800_000_000,
            number: 0,
            pods: BTreeMap::new(),
        }
    }

    pub(crate) fn calm(&mut self) {
        self.calm = true;
    }

    /// True if something of the pod is left on the node.
    pub(crate) fn has(&self, uid: &PodUid) -> bool {
        self.pods.get(uid).is_some_and(|life| !life.finished)
    }

    fn roll(&mut self, sides: u64) -> u64 {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        self.dice % sides
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_second(self.second).expect("a time")
    }

    /// One step of each pod.
    pub(crate) fn step(&mut self, wanted: &[Arc<Pod>], board: &PodBoard) {
        self.second += 1;
        let now = self.now();
        for pod in wanted {
            let new = || Life {
                pod: Arc::clone(pod),
                status: first(now),
                finished: false,
            };
            let life = self.pods.entry(pod.uid.clone()).or_insert_with(new);
            life.pod = Arc::clone(pod);
        }
        let uids: Vec<PodUid> = self.pods.keys().cloned().collect();
        for uid in uids {
            let is_wanted = wanted.iter().any(|pod| pod.uid == uid);
            let (action, code) = (self.roll(12), self.roll(2));
            let id = format!("c{}", self.number);
            let Some(life) = self.pods.get_mut(&uid) else {
                continue;
            };
            if !is_wanted || life.pod.deletion.is_some() {
                if life.runs() {
                    life.end(137, now);
                    life.close(now);
                } else if !is_wanted {
                    self.pods.remove(&uid);
                    board.remove(&uid);
                    continue;
                } else {
                    life.close(now);
                    life.finished = true;
                }
            } else if life.status.phase == Phase::Pending
                || self.calm && !life.runs() && !life.status.phase.is_terminal()
            {
                life.start(&id, now);
                self.number += 1;
            } else if !self.calm && !life.status.phase.is_terminal() {
                match action {
                    0..3 => life.flip(now),
                    3 if life.runs() => life.end(i32::from(code == 0), now),
                    _ if !life.runs() => {
                        life.start(&id, now);
                        self.number += 1;
                    }
                    _ => {}
                }
            }
            let life = &self.pods[&uid];
            board.set(uid, life.entry());
        }
    }

    pub(crate) fn flip_all(&mut self, board: &PodBoard) -> usize {
        let now = self.now();
        let running = self.pods.iter_mut().filter(|(_, life)| life.runs());
        running
            .map(|(uid, life)| {
                life.flip(now);
                board.set(uid.clone(), life.entry());
            })
            .count()
    }
}

fn first(now: Timestamp) -> PodStatus {
    PodStatus {
        phase: Phase::Pending,
        reason: "".into(),
        message: "".into(),
        start_time: now,
        pod_ips: Vec::new(),
        conditions: vec![condition(false, now)],
        observed_generation: 1,
        init_containers: Vec::new(),
        containers: vec![ContainerStatus {
            name: "a".into(),
            image: "x".into(),
            image_id: "".into(),
            container_id: "".into(),
            ready: false,
            started: false,
            restart_count: 0,
            state: ContainerState::Waiting {
                reason: "ContainerCreating".into(),
                message: "".into(),
            },
            last_state: None,
            user: None,
            recursive_read_only: Vec::new(),
        }],
        ephemeral_containers: Vec::new(),
    }
}

fn condition(is: bool, now: Timestamp) -> Condition {
    Condition {
        kind: "Ready".into(),
        status: ConditionStatus::from(is),
        reason: "".into(),
        message: "".into(),
        last_transition: now,
        observed_generation: 1,
    }
}

impl Life {
    fn container(&mut self) -> &mut ContainerStatus {
        &mut self.status.containers[0]
    }

    fn runs(&self) -> bool {
        matches!(
            self.status.containers[0].state,
            ContainerState::Running { .. }
        )
    }

    fn set_ready(&mut self, is: bool, now: Timestamp) {
        self.status.conditions = vec![condition(is, now)];
        self.container().ready = is;
    }

    fn flip(&mut self, now: Timestamp) {
        if self.runs() {
            let is = self.status.containers[0].ready;
            self.set_ready(!is, now);
        }
    }

    fn start(&mut self, id: &str, now: Timestamp) {
        let container = self.container();
        if let ContainerState::Terminated(end) = container.state.clone() {
            container.last_state = Some(end);
            container.restart_count += 1;
        }
        container.state = ContainerState::Running { started_at: now };
        container.container_id = id.into();
        container.started = true;
        self.status.phase = Phase::Running;
        self.status.pod_ips = vec!["10.0.0.7".into()];
        self.set_ready(true, now);
    }

    /// The container ends; the pod with it, if it does not restart.
    fn end(&mut self, exit_code: i32, now: Timestamp) {
        let container_id = self.container().container_id.clone();
        let started_at = match self.container().state {
            ContainerState::Running { started_at } => Some(started_at),
            _ => None,
        };
        self.container().state = ContainerState::Terminated(Terminated {
            exit_code,
            reason: if exit_code == 0 { "Completed" } else { "Error" }.into(),
            message: "".into(),
            started_at,
            finished_at: Some(now),
            container_id,
        });
        self.container().started = false;
        self.set_ready(false, now);
        let restarts = match self.pod.spec.restart_policy {
            RestartPolicy::Always => true,
            RestartPolicy::OnFailure => exit_code != 0,
            RestartPolicy::Never => false,
        };
        if !restarts {
            self.status.phase = if exit_code == 0 {
                Phase::Succeeded
            } else {
                Phase::Failed
            };
        }
    }

    /// The last container of a pod that is removed has ended.
    fn close(&mut self, now: Timestamp) {
        if self.pod.source == PodSource::Api && !self.status.phase.is_terminal() {
            self.status.phase = Phase::Failed;
            self.set_ready(false, now);
        }
    }

    fn entry(&self) -> PodEntry {
        PodEntry {
            pod: Arc::clone(&self.pod),
            status: self.status.clone(),
            deletion: None,
            why: Vec::new(),
            history: Arc::new(History::default()),
            wake_at: None,
            finished: self.finished,
        }
    }
}
