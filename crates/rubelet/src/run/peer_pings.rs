//! Pings other nodes, for the metrics. Off without peers.

use std::{
    collections::BTreeSet, net::SocketAddr, ops::ControlFlow, os::fd::AsFd as _, sync::Arc, thread,
    time::Duration,
};

use rubelet_base::ErrorChain;
use rubelet_config::PeerPingOptions;
use rubelet_netprobe::{
    ping::{PingEvent, PingOptions, PingTarget, driver::PingError, ping},
    sockets::OwnNamespace,
    wait::{StopSignal, stop_pair},
};
use rubelet_node_state::metrics::{NodeMetrics, PeerPing};
use tokio::{
    net::lookup_host,
    sync::oneshot,
    time::{sleep, timeout},
};
use tracing::{info, warn};

/// After this time names are resolved again, and peers without a way are tried again.
const ROUND: Duration = Duration::from_secs(300);
/// A ping without an answer after this time is lost.
const LOST_AFTER: Duration = Duration::from_secs(5);
/// Timeout of a name lookup.
const RESOLVE: Duration = Duration::from_secs(10);

/// Pings the peers until it is dropped.
pub(super) async fn run(options: PeerPingOptions, metrics: Arc<NodeMetrics>) {
    let mut unreachable = BTreeSet::new();
    loop {
        let begun = tokio::time::Instant::now();
        let mut targets = Vec::new();
        for peer in &options.peers {
            match resolve(peer).await {
                Ok(address) => targets.push(PingTarget {
                    name: peer.clone(),
                    address,
                }),
                Err(why) => not_sent(peer, &why, &metrics, &mut unreachable),
            }
        }
        // One without a way would stop the others.
        while let Err(error) = round(&options, targets.clone(), &metrics).await {
            let PingError::Socket { target, .. } = &error else {
                warn!(error = %ErrorChain(&error), "Cannot ping peers");
                break;
            };
            not_sent(
                target,
                &ErrorChain(&error).to_string(),
                &metrics,
                &mut unreachable,
            );
            let before = targets.len();
            targets.retain(|one| one.name != *target);
            if targets.len() == before {
                break;
            }
        }
        for target in &targets {
            if unreachable.remove(&target.name) {
                info!(peer = target.name, "Pinging the peer again");
            }
        }
        // A round that could not begin is not repeated at once.
        sleep(options.interval.saturating_sub(begun.elapsed())).await;
    }
}

/// Counts a peer that can't be pinged, and logs it once.
fn not_sent(peer: &str, why: &str, metrics: &NodeMetrics, known: &mut BTreeSet<String>) {
    metrics.peers.ping(peer, PeerPing::NotSent);
    if known.insert(peer.to_owned()) {
        warn!(peer, error = why, "Cannot ping the peer");
    }
}

async fn resolve(peer: &str) -> Result<SocketAddr, String> {
    let found = timeout(RESOLVE, lookup_host((peer, 0))).await;
    let found = found.map_err(|_| "timed out resolving its name".to_owned())?;
    let mut found = found.map_err(|error| error.to_string())?;
    found.next().ok_or_else(|| "it has no address".to_owned())
}

/// One round of pings. Its thread ends when this is dropped.
async fn round(
    options: &PeerPingOptions,
    targets: Vec<PingTarget>,
    metrics: &Arc<NodeMetrics>,
) -> Result<(), PingError> {
    if targets.is_empty() {
        return Ok(());
    }
    let (_running, signal) = stop_pair().map_err(PingError::Wait)?;
    let count = ROUND.as_millis() / options.interval.as_millis().max(1);
    let options = PingOptions {
        count: Some(u64::try_from(count).unwrap_or(1).max(1)),
        interval: options.interval,
        timeout: LOST_AFTER,
        ..PingOptions::default()
    };
    let (done, ended) = oneshot::channel();
    let metrics = Arc::clone(metrics);
    let run = move || {
        // The receiver is gone if the agent ends.
        let _ = done.send(ping_all(&targets, &options, &signal, &metrics));
    };
    let started = thread::Builder::new()
        .name("peer-pings".to_owned())
        .spawn(run);
    started.map_err(PingError::Wait)?;
    ended.await.unwrap_or(Ok(()))
}

fn ping_all(
    targets: &[PingTarget],
    options: &PingOptions,
    signal: &StopSignal,
    metrics: &NodeMetrics,
) -> Result<(), PingError> {
    let mut report = |event: PingEvent| {
        match event {
            PingEvent::Reply(reply) if !reply.duplicate => {
                let rtt = reply.rtt.unwrap_or_default();
                metrics.peers.ping(&reply.target, PeerPing::Answered(rtt));
            }
            PingEvent::Lost { target, .. } => metrics.peers.ping(&target, PeerPing::Lost),
            _ => {}
        }
        ControlFlow::Continue(())
    };
    ping(targets, options, &OwnNamespace, signal.as_fd(), &mut report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn answers_and_peers_without_a_way_are_counted() {
        if !rubelet_needs::root() {
            return;
        }
        let metrics = NodeMetrics::new();
        // The resolver refuses a label of more than 63 bytes by itself; and the
        // kernel refuses pings to a broadcast address.
        let no_name = "n".repeat(64);
        let options = PeerPingOptions {
            peers: vec![
                "127.0.0.1".to_owned(),
                no_name.clone(),
                "255.255.255.255".to_owned(),
            ],
            interval: Duration::from_millis(10),
        };
        let count = |peer: &str, result: &str| -> u64 {
            let sample =
                format!("rubelet_peer_pings_total{{peer=\"{peer}\",result=\"{result}\"}} ");
            let text = metrics.render();
            let value = text.lines().find_map(|line| line.strip_prefix(&sample));
            value.map_or(0, |value| value.parse().unwrap())
        };
        let running = tokio::spawn(run(options, Arc::clone(&metrics)));
        let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
        while count("127.0.0.1", "answered") < 3 {
            assert!(tokio::time::Instant::now() < deadline && !running.is_finished());
            sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(count("127.0.0.1", "lost"), 0);
        assert!(count(&no_name, "not_sent") > 0);
        assert!(count("255.255.255.255", "not_sent") > 0);
        running.abort();
        assert!(running.await.unwrap_err().is_cancelled());
    }
}
