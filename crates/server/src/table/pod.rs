//! Pods: READY, STATUS, RESTARTS, AGE and the wide columns.

use jiff::Timestamp;
use serde_json::Value;

use super::{Column, age, column, entries, or_none, text, time};

/// The annotation in which the agent reports when it next retries to start containers that do not
/// run: a JSON object from container names to RFC 3339 times.
pub const NEXT_TRY_ANNOTATION: &str = "rubelet.dev/next-try";

pub(super) const COLUMNS: &[Column] = &[
    column(
        "Name",
        "Name of the pod; a static pod's ends in the node's name.",
    )
    .named(),
    column("Ready", "Containers that are ready, of all that stay up."),
    column(
        "Status",
        "State of the pod; if it cannot run, the reason and the time of the next try.",
    ),
    column(
        "Restarts",
        "Restarts of its containers, and how long ago the last one was.",
    ),
    column("Age", "Time since the pod was created."),
    column("IP", "Primary IP address of the pod.").wide(),
    column("Node", "Node the pod runs on.").wide(),
    column("Nominated Node", "Node that is being cleared for the pod.").wide(),
    column(
        "Readiness Gates",
        "Conditions that must hold besides the containers' own.",
    )
    .wide(),
];

pub(super) fn cells(pod: &Value, now: Timestamp) -> Vec<Value> {
    let state = pod_state(pod);
    let restarts = match state.last_restart {
        Some(last) if state.restarts > 0 => {
            format!("{} ({} ago)", state.restarts, age::since(Some(last), now))
        }
        _ => state.restarts.to_string(),
    };
    let ip = match text(pod, "/status/podIPs/0/ip") {
        "" => text(pod, "/status/podIP"),
        ip => ip,
    };
    vec![
        text(pod, "/metadata/name").into(),
        format!("{}/{}", state.ready, state.containers).into(),
        status_cell(&state, now).into(),
        restarts.into(),
        age::since(time(pod, "/metadata/creationTimestamp"), now).into(),
        or_none(ip),
        or_none(text(pod, "/spec/nodeName")),
        or_none(text(pod, "/status/nominatedNodeName")),
        or_none(&readiness_gates(pod)),
    ]
}

/// The STATUS, and the time until the next retry if there is one.
fn status_cell(state: &PodState, now: Timestamp) -> String {
    let wait = state
        .next_try
        .map(|at| at.duration_since(now).as_millis())
        .filter(|millis| *millis > 0);
    match wait {
        // The time is rounded up to a whole second; "try in 0s" says nothing.
        Some(millis) => format!("{} (try in {})", state.status, age::human(millis.max(1000))),
        None => state.status.clone(),
    }
}

fn readiness_gates(pod: &Value) -> String {
    let gates = entries(pod, "/spec/readinessGates");
    let open = gates
        .iter()
        .filter(|gate| condition_is_true(pod, text(gate, "/conditionType")));
    if gates.is_empty() {
        String::new()
    } else {
        format!("{}/{}", open.count(), gates.len())
    }
}

/// A pod's summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PodState {
    /// Containers that are ready.
    pub ready: usize,
    /// Containers that keep running: regular ones and restartable init containers.
    pub containers: usize,
    /// `Running`, `Init:0/1`, `CrashLoopBackOff`, `Completed`, `Terminating`, ….
    pub status: String,
    /// Restarts of the containers that run now: init containers while they run, regular containers
    /// afterwards.
    pub restarts: u64,
    /// When the instance before the latest restart ended.
    pub last_restart: Option<Timestamp>,
    /// When the container whose waiting reason is the STATUS is retried.
    pub next_try: Option<Timestamp>,
}

/// Restarts of a group of containers.
#[derive(Default, Clone, Copy)]
struct Restarts {
    count: u64,
    last: Option<Timestamp>,
}

impl Restarts {
    fn add(&mut self, status: &Value) {
        self.count += status["restartCount"].as_u64().unwrap_or(0);
        self.last = self
            .last
            .max(time(status, "/lastState/terminated/finishedAt"));
    }
}

/// Computes the columns of `get pods` for a v1 Pod.
#[must_use]
pub(crate) fn pod_state(pod: &Value) -> PodState {
    let init = Init::of(pod);
    let phase = text(pod, "/status/phase");
    let mut status = match text(pod, "/status/reason") {
        "" => phase.to_owned(),
        reason => reason.to_owned(),
    };
    let mut ready = init.ready;
    let mut restarts = init.restarts;
    let done = init.waiting_for.is_none() || condition_is_true(pod, "Initialized");
    let mut next_try = None;
    if let Some(reason) = init.waiting_for {
        status = reason;
        next_try = init.next_try;
    }
    if done {
        restarts = init.sidecar_restarts;
        let regular = entries(pod, "/status/containerStatuses");
        regular.iter().for_each(|container| restarts.add(container));
        ready += regular.iter().filter(|container| is_up(container)).count();
        let before = status.clone();
        status = regular_status(pod, regular, status);
        if status != before || next_try.is_none() {
            next_try = next_try_of(pod, regular, &status);
        }
    }
    if !pod["metadata"]["deletionTimestamp"].is_null() {
        if text(pod, "/status/reason") == "NodeLost" {
            status = "Unknown".to_owned();
            next_try = None;
        } else if !matches!(phase, "Succeeded" | "Failed") {
            status = "Terminating".to_owned();
            next_try = None;
        }
    }
    let containers = entries(pod, "/spec/containers").len() + init.sidecars;
    PodState {
        ready,
        containers,
        status,
        restarts: restarts.count,
        last_restart: restarts.last,
        next_try,
    }
}

/// When the first of these containers that waits with that reason is retried.
fn next_try_of(pod: &Value, containers: &[Value], reason: &str) -> Option<Timestamp> {
    let annotation = text(pod, "/metadata/annotations/rubelet.dev~1next-try");
    let times: Value = serde_json::from_str(annotation).ok()?;
    let mut waiting = containers.iter().filter(|container| {
        let own = text(container, "/state/waiting/reason");
        container["state"]["waiting"].is_object() && (own == reason || reason.is_empty())
    });
    waiting.find_map(|container| times[text(container, "/name")].as_str()?.parse().ok())
}

/// Progress of the init containers.
struct Init {
    /// The STATUS, unless all of them are done.
    waiting_for: Option<String>,
    /// Restartable init containers.
    sidecars: usize,
    /// Restartable init containers that are ready.
    ready: usize,
    /// Restarts up to the one in progress.
    restarts: Restarts,
    /// The part of them that belongs to restartable init containers.
    sidecar_restarts: Restarts,
    /// When the one in progress is retried.
    next_try: Option<Timestamp>,
}

impl Init {
    fn of(pod: &Value) -> Self {
        let specs = entries(pod, "/spec/initContainers");
        let restartable = |spec: &Value| spec["restartPolicy"] == "Always";
        let mut init = Self {
            waiting_for: None,
            sidecars: specs.iter().filter(|spec| restartable(spec)).count(),
            ready: 0,
            restarts: Restarts::default(),
            sidecar_restarts: Restarts::default(),
            next_try: None,
        };
        for (index, status) in entries(pod, "/status/initContainerStatuses")
            .iter()
            .enumerate()
        {
            let sidecar = specs
                .iter()
                .any(|spec| spec["name"] == status["name"] && restartable(spec));
            init.restarts.add(status);
            if sidecar {
                init.sidecar_restarts.add(status);
            }
            let state = &status["state"];
            let terminated = &state["terminated"];
            let waiting = text(state, "/waiting/reason");
            if terminated.is_object() && terminated["exitCode"] == 0 {
                continue;
            }
            if sidecar && status["started"] == true {
                init.ready += usize::from(status["ready"] == true);
                continue;
            }
            init.waiting_for = Some(if terminated.is_object() {
                format!("Init:{}", ended(terminated))
            } else if !matches!(waiting, "" | "PodInitializing") {
                format!("Init:{waiting}")
            } else {
                format!("Init:{index}/{}", specs.len())
            });
            init.next_try = next_try_of(pod, std::slice::from_ref(status), waiting);
            break;
        }
        init
    }
}

/// The STATUS of the regular containers; the first one with a reason wins.
fn regular_status(pod: &Value, containers: &[Value], before: String) -> String {
    let own = containers.iter().find_map(|container| {
        let state = &container["state"];
        match (text(state, "/waiting/reason"), &state["terminated"]) {
            ("", terminated) if terminated.is_object() => Some(ended(terminated)),
            ("", _) => None,
            (reason, _) => Some(reason.to_owned()),
        }
    });
    let status = own.unwrap_or(before);
    if status != "Completed" {
        return status;
    }
    // A completed container matters little while others run or have failed.
    let running = containers.iter().any(is_up);
    let failed = containers.iter().find_map(|container| {
        let terminated = &container["state"]["terminated"];
        let failed = terminated.is_object()
            && terminated["exitCode"] != 0
            && text(&container["state"], "/waiting/reason").is_empty();
        failed.then(|| ended(terminated))
    });
    match (running, failed) {
        (true, _) if condition_is_true(pod, "Ready") => "Running".to_owned(),
        (_, Some(failed)) => failed,
        (true, None) => "NotReady".to_owned(),
        (false, None) => status,
    }
}

fn is_up(container: &Value) -> bool {
    let state = &container["state"];
    container["ready"] == true
        && state["running"].is_object()
        && !state["terminated"].is_object()
        && text(state, "/waiting/reason").is_empty()
}

/// The reason of a termination, or its signal, or its exit code.
fn ended(terminated: &Value) -> String {
    let signal = terminated["signal"].as_i64().unwrap_or(0);
    match text(terminated, "/reason") {
        "" if signal != 0 => format!("Signal:{signal}"),
        "" => format!("ExitCode:{}", terminated["exitCode"].as_i64().unwrap_or(0)),
        reason => reason.to_owned(),
    }
}

fn condition_is_true(pod: &Value, kind: &str) -> bool {
    entries(pod, "/status/conditions")
        .iter()
        .any(|condition| condition["type"] == kind && condition["status"] == "True")
}

#[cfg(test)]
mod tests;
