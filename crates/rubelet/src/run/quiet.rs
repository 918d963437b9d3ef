//! Memory that a burst of work took goes back when it is over.

use std::{sync::Arc, time::Duration};

use rubelet_host::{alloc, text};
use rubelet_kubelet::pod_task::PodBoard;
use tokio::{task::spawn_blocking, time::timeout};

/// Nothing happens to any pod for so long.
const QUIET: Duration = Duration::from_secs(5);

/// Gives memory back once after each burst of changes, for ever. Does nothing while nothing happens.
pub(super) async fn give_back(pods: Arc<PodBoard>) {
    let mut versions = pods.versions();
    loop {
        while let Ok(changed) = timeout(QUIET, versions.changed()).await {
            if changed.is_err() {
                return;
            }
        }
        let released = spawn_blocking(|| (alloc::trim(), text::release())).await;
        tracing::debug!(?released, "Memory was given back");
        if versions.changed().await.is_err() {
            return;
        }
    }
}
