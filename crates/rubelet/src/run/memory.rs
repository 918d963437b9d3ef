//! Returns memory to the kernel after a burst of work.

use std::{sync::Arc, time::Duration};

use rubelet_host::{alloc, file_pages};
use rubelet_node_state::pod_board::PodBoard;
use tokio::{task::spawn_blocking, time::timeout};

/// Time without changes of pods before memory is returned.
const QUIET: Duration = Duration::from_secs(5);

/// Returns memory once after each burst of changes, forever. Does nothing while nothing changes.
pub(super) async fn trim_memory(pods: Arc<PodBoard>) {
    let mut versions = pods.versions();
    loop {
        while let Ok(changed) = timeout(QUIET, versions.changed()).await {
            if changed.is_err() {
                return;
            }
        }
        let released = spawn_blocking(|| (alloc::trim(), file_pages::release())).await;
        tracing::debug!(?released, "Returned memory to the kernel");
        if versions.changed().await.is_err() {
            return;
        }
    }
}
