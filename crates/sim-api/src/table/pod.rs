//! Columns of pods: ready containers, the reason why the pod does not run, and restarts.

use jiff::Timestamp;
use serde_json::Value;

use super::column::{AGE, Column, NAME, Row, column, wide};
use crate::meta::{self, entries, text};

pub(super) const COLUMNS: &[Column] = &[
    NAME,
    column("Ready", |row| {
        let pod = Summary::of(row.object);
        format!("{}/{}", pod.ready, pod.containers).into()
    }),
    column("Status", |row| Summary::of(row.object).reason.into()),
    column("Restarts", |row| {
        let restarts = Summary::of(row.object).restarts;
        match restarts.last {
            Some(_) if restarts.count > 0 => {
                let ago = super::age::since(restarts.last, row.now);
                format!("{} ({ago} ago)", restarts.count).into()
            }
            _ => restarts.count.to_string().into(),
        }
    }),
    AGE,
    wide("IP", |row| row.or_none("/status/podIPs/0/ip")),
    wide("Node", |row| row.or_none("/spec/nodeName")),
    wide("Nominated Node", |row| {
        row.or_none("/status/nominatedNodeName")
    }),
    wide("Readiness Gates", |row| readiness_gates(row).into()),
];

fn readiness_gates(row: Row<'_>) -> String {
    let gates = entries(row.object, "/spec/readinessGates");
    if gates.is_empty() {
        return "<none>".to_owned();
    }
    let open = gates
        .iter()
        .filter(|gate| is_true(row.object, text(gate, "/conditionType")));
    format!("{}/{}", open.count(), gates.len())
}

fn is_true(pod: &Value, condition: &str) -> bool {
    let mut conditions = entries(pod, "/status/conditions").iter();
    let found = conditions.find(|found| found["type"] == condition);
    found.is_some_and(|found| found["status"] == "True")
}

/// Input of a pod's cells.
struct Summary {
    ready: usize,
    containers: usize,
    reason: String,
    restarts: Restarts,
}

#[derive(Default, Clone, Copy)]
struct Restarts {
    count: i64,
    last: Option<Timestamp>,
}

impl Restarts {
    fn add(&mut self, status: &Value) {
        self.count += meta::number(status, "/restartCount").unwrap_or(0);
        let ended = text(status, "/lastState/terminated/finishedAt")
            .parse()
            .ok();
        self.last = self.last.max(ended);
    }
}

impl Summary {
    fn of(pod: &Value) -> Self {
        let is_sidecar = |name: &Value| {
            let mut specs = entries(pod, "/spec/initContainers").iter();
            specs.any(|spec| spec["name"] == *name && spec["restartPolicy"] == "Always")
        };
        let specs = entries(pod, "/spec/initContainers");
        let sidecars = specs
            .iter()
            .filter(|spec| is_sidecar(&spec["name"]))
            .count();
        let mut summary = Self {
            ready: 0,
            containers: entries(pod, "/spec/containers").len() + sidecars,
            reason: first_reason(pod),
            restarts: Restarts::default(),
        };
        let mut of_sidecars = Restarts::default();
        let mut is_initializing = false;
        for (index, status) in entries(pod, "/status/initContainerStatuses")
            .iter()
            .enumerate()
        {
            summary.restarts.add(status);
            let is_sidecar = is_sidecar(&status["name"]);
            if is_sidecar {
                of_sidecars.add(status);
            }
            if status["state"]["terminated"]["exitCode"] == 0 {
                continue;
            }
            if is_sidecar && status["started"] == true {
                summary.ready += usize::from(status["ready"] == true);
                continue;
            }
            let progress = || format!("{index}/{}", specs.len());
            summary.reason = format!("Init:{}", init_reason(status).unwrap_or_else(progress));
            is_initializing = true;
            break;
        }
        if !is_initializing || is_true(pod, "Initialized") {
            summary.restarts = of_sidecars;
            summary.add_regular(pod);
        }
        if meta::is_deleting(pod) {
            let is_over = ["Succeeded", "Failed"].contains(&text(pod, "/status/phase"));
            match text(pod, "/status/reason") {
                "NodeLost" => summary.reason = "Unknown".to_owned(),
                _ if !is_over => summary.reason = "Terminating".to_owned(),
                _ => {}
            }
        }
        summary
    }

    /// The first container with a reason wins, so they are visited in reverse order.
    fn add_regular(&mut self, pod: &Value) {
        let (mut is_running, mut failed) = (false, None);
        for status in entries(pod, "/status/containerStatuses").iter().rev() {
            self.restarts.add(status);
            let state = &status["state"];
            let terminated = &state["terminated"];
            if !text(state, "/waiting/reason").is_empty() {
                self.reason = text(state, "/waiting/reason").to_owned();
            } else if terminated.is_object() {
                self.reason = end_reason(terminated);
                if terminated["exitCode"] != 0 {
                    failed = Some(self.reason.clone());
                }
            } else if status["ready"] == true && state["running"].is_object() {
                is_running = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" {
            if is_running && is_true(pod, "Ready") {
                self.reason = "Running".to_owned();
            } else if let Some(failed) = failed {
                self.reason = failed;
            } else if is_running {
                self.reason = "NotReady".to_owned();
            }
        }
    }
}

fn first_reason(pod: &Value) -> String {
    let mut conditions = entries(pod, "/status/conditions").iter();
    let is_gated = conditions
        .any(|found| found["type"] == "PodScheduled" && found["reason"] == "SchedulingGated");
    match text(pod, "/status/reason") {
        _ if is_gated => "SchedulingGated",
        "" => text(pod, "/status/phase"),
        reason => reason,
    }
    .to_owned()
}

/// Why an init container has not completed; `None` for no particular reason.
fn init_reason(status: &Value) -> Option<String> {
    let state = &status["state"];
    if state["terminated"].is_object() {
        return Some(end_reason(&state["terminated"]));
    }
    let waiting = text(state, "/waiting/reason");
    (!["", "PodInitializing"].contains(&waiting)).then(|| waiting.to_owned())
}

fn end_reason(terminated: &Value) -> String {
    let number = |place| meta::number(terminated, place).unwrap_or(0);
    match (text(terminated, "/reason"), number("/signal")) {
        ("", 0) => format!("ExitCode:{}", number("/exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}
