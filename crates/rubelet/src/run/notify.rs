//! Notifications to systemd: ready, the status text, and the watchdog of the loops.

use std::sync::Arc;

use rubelet_node_state::{heartbeat::Heartbeat, pod_board::PodBoard, runtime_state::RuntimeState};
use rubelet_view::{ClusterProblems, stuck_loop, summary};
use sd_notify::NotifyState;
use tokio::{sync::watch, time::sleep};
use tracing::{error, warn};

/// Notifies systemd that the agent is ready.
pub(super) fn ready() {
    send(&[NotifyState::Ready]);
}

/// Notifies systemd that the agent is stopping.
pub(super) fn stopping() {
    send(&[NotifyState::Stopping]);
}

/// Keeps the status text up to date, forever.
pub(super) async fn status(
    pods: Arc<PodBoard>,
    mut runtime: watch::Receiver<RuntimeState>,
    mut cluster: ClusterProblems,
) {
    let mut versions = pods.versions();
    let mut last = String::new();
    loop {
        // First: changes while the boards are read are then observed.
        versions.mark_unchanged();
        cluster.mark_unchanged();
        let text = summary(&pods, &runtime.borrow_and_update(), &cluster);
        if text != last {
            send(&[NotifyState::Status(&text)]);
            last = text;
        }
        // Cancel safety: watch receivers keep changes that were not observed.
        tokio::select! {
            changed = versions.changed() => if changed.is_err() { return },
            changed = runtime.changed() => if changed.is_err() { return },
            () = cluster.changed() => {}
        }
    }
}

/// Notifies the watchdog twice per period, while all loops make progress.
pub(super) async fn watchdog(heartbeats: Vec<(&'static str, Heartbeat)>) {
    let Some(period) = sd_notify::watchdog_enabled() else {
        return;
    };
    loop {
        match stuck_loop(&heartbeats) {
            None => send(&[NotifyState::Watchdog]),
            Some(message) => error!("Not notifying the systemd watchdog: {message}"),
        }
        sleep(period / 2).await;
    }
}

fn send(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        warn!(%error, "Cannot notify systemd");
    }
}
