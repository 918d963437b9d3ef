//! Returns memory to the kernel after a burst of work.

use std::{sync::Arc, time::Duration};

use rubelet_host::{alloc, file_pages};
use rubelet_node_state::pod_board::PodBoard;
use tokio::{sync::watch, task::spawn_blocking, time::timeout};

/// Time without changes of pods and ends of sessions before memory is returned.
const QUIET: Duration = Duration::from_secs(5);

/// Returns memory once after each burst of changes of pods or ends of sessions, forever. Does nothing
/// while neither happens.
pub(super) async fn trim_memory(pods: Arc<PodBoard>, mut ended_sessions: watch::Receiver<u64>) {
    let mut versions = pods.versions();
    let mut work = async || {
        tokio::select! {
            changed = versions.changed() => changed,
            changed = ended_sessions.changed() => changed,
        }
    };
    loop {
        while let Ok(changed) = timeout(QUIET, work()).await {
            if changed.is_err() {
                return;
            }
        }
        let released = spawn_blocking(|| (alloc::trim(), file_pages::release())).await;
        tracing::debug!(?released, "Returned memory to the kernel");
        if work().await.is_err() {
            return;
        }
    }
}
