//! What systemd is told: ready, the state in words, and that the loops still go round.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use rubelet_api::{status::Phase, wire::seconds};
use rubelet_kube::{UnreadObject, UnreadObjects};
use rubelet_kubelet::{heartbeat::Heartbeat, pod_task::PodBoard, runtime_state::RuntimeState};
use sd_notify::NotifyState;
use tokio::{sync::watch, time::sleep};
use tracing::{error, warn};

/// A loop that did not go round for so long is stuck.
pub(crate) const STUCK: Duration = Duration::from_secs(60);

/// What is wrong on the way to the cluster, if the node is part of one.
#[derive(Debug, Clone)]
pub(crate) struct ClusterTrouble {
    /// Why the API server can't be used, in one line.
    pub(crate) api_server: watch::Receiver<Option<String>>,
    /// What the renewal of the node's certificate waits for, or why it fails.
    pub(crate) certificate: watch::Receiver<Option<String>>,
    /// What is wrong with the node object.
    pub(crate) node: watch::Receiver<Option<String>>,
    /// What can't be read of the API server's objects, once there is a way to it.
    pub(crate) unread: Arc<OnceLock<UnreadObjects>>,
}

impl ClusterTrouble {
    /// That of a node that is part of no cluster.
    pub(crate) fn none() -> Self {
        Self {
            api_server: watch::channel(None).1,
            certificate: watch::channel(None).1,
            node: watch::channel(None).1,
            unread: Arc::default(),
        }
    }

    /// The fields of the API server's objects that can't be read, each in one line.
    pub(crate) fn unread(&self) -> Vec<String> {
        let objects = self.unread.get().map(UnreadObjects::list);
        let mut lines = Vec::new();
        for UnreadObject {
            object,
            fields,
            since,
        } in objects.unwrap_or_default()
        {
            let since = seconds(since);
            lines.extend(fields.iter().map(|field| {
                let line = format!("{object}: {field}; cannot be read since {since}");
                // Names are the server's, and so may be anything.
                line.replace(char::is_control, "?")
            }));
        }
        lines
    }

    /// Ends when something changes that [`Self::line`] has not told; never on a lone node.
    async fn changed(&mut self) {
        tokio::select! {
            Ok(()) = self.api_server.changed() => {}
            Ok(()) = self.certificate.changed() => {}
            Ok(()) = self.node.changed() => {}
            else => std::future::pending().await,
        }
    }

    fn seen(&mut self) {
        self.api_server.mark_unchanged();
        self.certificate.mark_unchanged();
        self.node.mark_unchanged();
    }

    /// In one line, to be put behind another; empty if all is well.
    fn line(&self) -> String {
        let api_server = self.api_server.borrow().clone();
        // Before the node has joined, both tell the same.
        let certificate = self.certificate.borrow().clone();
        let certificate = certificate.filter(|line| Some(line) != api_server.as_ref());
        let part = |name: &str, problem: Option<String>| {
            problem.map_or(String::new(), |problem| format!(", {name}: {problem}"))
        };
        let node = self.node.borrow().clone();
        part("API server", api_server) + &part("certificate", certificate) + &part("node", node)
    }
}

/// Tells systemd that the agent is ready.
pub(super) fn ready() {
    send(&[NotifyState::Ready]);
}

/// Tells systemd that the agent stops.
pub(super) fn stopping() {
    send(&[NotifyState::Stopping]);
}

/// Keeps the status text up to date, for ever.
pub(super) async fn status(
    pods: Arc<PodBoard>,
    mut runtime: watch::Receiver<RuntimeState>,
    mut cluster: ClusterTrouble,
) {
    let mut versions = pods.versions();
    let mut last = String::new();
    loop {
        // First: what changes while the boards are read is looked at again.
        versions.mark_unchanged();
        cluster.seen();
        let text = summary(&pods, &runtime.borrow_and_update(), &cluster);
        if text != last {
            send(&[NotifyState::Status(&text)]);
            last = text;
        }
        // Cancel safety: watch receivers keep what was not seen.
        tokio::select! {
            changed = versions.changed() => if changed.is_err() { return },
            changed = runtime.changed() => if changed.is_err() { return },
            () = cluster.changed() => {}
        }
    }
}

/// Feeds the watchdog twice in its period, as long as every loop goes round.
pub(super) async fn watchdog(heartbeats: Vec<(&'static str, Heartbeat)>) {
    let Some(period) = sd_notify::watchdog_enabled() else {
        return;
    };
    loop {
        match stuck(&heartbeats) {
            None => send(&[NotifyState::Watchdog]),
            Some(message) => error!("The watchdog is not fed: {message}"),
        }
        sleep(period / 2).await;
    }
}

/// The first loop that did not go round for too long.
pub(crate) fn stuck(heartbeats: &[(&'static str, Heartbeat)]) -> Option<String> {
    heartbeats
        .iter()
        .find(|(_, beat)| beat.age() > STUCK)
        .map(|(name, beat)| {
            format!(
                "loop {name} did not go round for {} s",
                beat.age().as_secs()
            )
        })
}

/// `3/4 pods ready`, how many have completed, and what is wrong with the runtime or on the way
/// to the cluster.
pub(crate) fn summary(pods: &PodBoard, runtime: &RuntimeState, cluster: &ClusterTrouble) -> String {
    let rows = pods.list();
    let completed = rows
        .iter()
        .filter(|(_, _, entry)| entry.status.phase == Phase::Succeeded)
        .count();
    let ready = rows
        .iter()
        .filter(|(_, _, entry)| {
            let mut conditions = entry.status.conditions.iter();
            conditions.any(|condition| &*condition.kind == "Ready" && condition.status.is_true())
        })
        .count();
    let mut count = format!("{ready}/{} pods ready", rows.len() - completed);
    if completed > 0 {
        count.push_str(&format!(", {completed} completed"));
    }
    match &runtime.problem {
        Some(problem) => count.push_str(&format!(", {problem}")),
        None if !runtime.answered => count.push_str(", waiting for the container runtime"),
        None => {}
    }
    count.push_str(&cluster.line());
    count
}

fn send(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        warn!(%error, "systemd can't be told the state of the agent");
    }
}
