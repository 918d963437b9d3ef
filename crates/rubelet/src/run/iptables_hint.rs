//! The chain by which others find out which variant of iptables this machine uses: images of CNI plugins
//! and of kube-proxy bring both, and use the one that has this chain.

use std::time::Duration;

use rubelet_base::ErrorChain;
use rubelet_host::nft::iptables;
use tokio::{task::spawn_blocking, time::sleep};
use tracing::{info, warn};

/// The table and the chain, as the kubelet names them.
const TABLE: &str = "mangle";
const CHAIN: &str = "KUBE-IPTABLES-HINT";

/// Time after which a chain that was flushed is there again, as in the kubelet.
const PERIOD: Duration = Duration::from_secs(60);

/// Keeps the chain, forever.
pub(super) async fn keep() {
    let mut said = String::new();
    loop {
        let problem = spawn_blocking(ensure).await.unwrap_or_default();
        if problem != said {
            match problem.is_empty() {
                true => info!(chain = CHAIN, "The chain exists"),
                false => warn!(chain = CHAIN, why = problem, "Cannot create the chain"),
            }
            said = problem;
        }
        sleep(PERIOD).await;
    }
}

/// Why the chain can't be created; empty if it exists.
fn ensure() -> String {
    if iptables::is_legacy_in_use() {
        return "this machine uses iptables-legacy".to_owned();
    }
    let made = iptables::ensure_chain(TABLE, CHAIN);
    made.map_err(|error| ErrorChain(&error).to_string())
        .err()
        .unwrap_or_default()
}
