//! Passes the pod CIDRs of this node from the cluster to the runtime. Runtimes whose network
//! plugins are configured otherwise ignore them.

use std::{convert::Infallible, future::pending, sync::Arc, time::Duration};

use rubelet_base::ErrorChain;
use rubelet_cri::{RuntimeService, v1};
use tokio::{sync::watch, time::sleep};
use tracing::{info, warn};

use super::NodeView;

/// Time before another try, while the runtime does not take it.
const RETRY: Duration = Duration::from_secs(10);

/// Updates the runtime each time that the node's pod CIDRs change.
pub async fn forward_pod_cidrs(
    runtime: Arc<dyn RuntimeService>,
    mut node: watch::Receiver<Option<Arc<NodeView>>>,
) -> Infallible {
    let mut applied = String::new();
    loop {
        let view = node.borrow_and_update().clone();
        let cidrs = view
            .map(|view| view.pod_cidrs.join(","))
            .unwrap_or_default();
        let mut retry = false;
        if !cidrs.is_empty() && cidrs != applied {
            retry = !set_on_runtime(&*runtime, &cidrs).await;
            if !retry {
                applied = cidrs;
            }
        }
        let changed = async {
            if node.changed().await.is_err() {
                // The agent stops.
                pending::<()>().await;
            }
        };
        if retry {
            tokio::select! {
                () = changed => {}
                () = sleep(RETRY) => {}
            }
        } else {
            changed.await;
        }
    }
}

/// Passes the pod CIDRs of a node without a cluster, which never change, to the runtime: once, as
/// soon as the runtime accepts them.
pub async fn set_runtime_pod_cidrs(runtime: Arc<dyn RuntimeService>, cidrs: String) {
    while !set_on_runtime(&*runtime, &cidrs).await {
        sleep(RETRY).await;
    }
}

/// Whether the runtime took them.
async fn set_on_runtime(runtime: &dyn RuntimeService, cidrs: &str) -> bool {
    match runtime.update_runtime_config(request(cidrs)).await {
        Ok(_) => {
            info!(cidrs, "Updated the pod CIDR of the runtime");
            true
        }
        Err(error) => {
            let error = ErrorChain(&error);
            warn!(cidrs, %error, "Error updating pod CIDR");
            false
        }
    }
}

fn request(cidrs: &str) -> v1::UpdateRuntimeConfigRequest {
    v1::UpdateRuntimeConfigRequest {
        runtime_config: Some(v1::RuntimeConfig {
            network_config: Some(v1::NetworkConfig {
                pod_cidr: cidrs.to_owned(),
            }),
        }),
    }
}
