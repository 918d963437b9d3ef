//! Metrics of pings to other nodes.

use std::time::Duration;

use prometheus::{HistogramVec, IntCounterVec};

use super::factory::MetricFactory;

/// Buckets of round trip times, in seconds: from one switch to intercontinental.
const BUCKETS: &[f64] = &[
    0.000_05, 0.000_1, 0.000_2, 0.000_5, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0,
    5.0,
];

/// The result of a ping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerPing {
    /// It was answered, after this time.
    Answered(Duration),
    /// It was not answered in time.
    Lost,
    /// It was not sent: the name of the peer is unknown, or the peer is not reachable.
    NotSent,
}

/// Metrics of pings to other nodes; without samples if none are configured.
#[derive(Debug)]
pub struct PeerMetrics {
    pings: IntCounterVec,
    times: HistogramVec,
}

impl PeerMetrics {
    pub(super) fn new(factory: &MetricFactory<'_>) -> Self {
        Self {
            pings: factory.counters_by(
                "rubelet_peer_pings_total",
                "Pings to other nodes by their results: answered, lost, or not_sent because the name is \
                 not known or there is no route.",
                &["peer", "result"],
            ),
            times: factory.histograms(
                "rubelet_peer_ping_rtt_seconds",
                "Round trip times of pings to other nodes.",
                BUCKETS.to_vec(),
                "peer",
            ),
        }
    }

    /// Counts a ping.
    pub fn ping(&self, peer: &str, result: PeerPing) {
        let name = match result {
            PeerPing::Answered(rtt) => {
                self.times
                    .with_label_values(&[peer])
                    .observe(rtt.as_secs_f64());
                "answered"
            }
            PeerPing::Lost => "lost",
            PeerPing::NotSent => "not_sent",
        };
        self.pings.with_label_values(&[peer, name]).inc();
    }
}
