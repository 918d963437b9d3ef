//! The statistics of a series of probes, in a fixed amount of memory: loss, round trip times, their
//! spread and percentiles, jitter.

mod histogram;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use self::histogram::Histogram;
use crate::millis::{self, Millis};

/// Counters of sent and answered probes.
#[derive(Debug, Clone, Default)]
pub struct Statistics {
    sent: u64,
    received: u64,
    duplicates: u64,
    reordered: u64,
    errors: u64,
    damaged: u64,
    times: RoundTrips,
}

/// Round trip times. Sums are in nanoseconds.
#[derive(Debug, Clone, Default)]
struct RoundTrips {
    count: u64,
    sum: u128,
    squares: f64,
    min: Duration,
    max: Duration,
    last: Duration,
    /// In nanoseconds, as RFC 3550 smooths it.
    jitter: f64,
    histogram: Histogram,
}

/// The result of a series of probes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Probes that were sent.
    pub sent: u64,
    /// Probes that were answered.
    pub received: u64,
    /// Answers beyond the first to a probe.
    pub duplicates: u64,
    /// First answers that arrived behind the answer to a later probe.
    pub reordered: u64,
    /// ICMP errors, and errors of the kernel of this machine.
    pub errors: u64,
    /// Answers with other data than what was sent; the probe counts as not answered.
    pub damaged: u64,
    /// Lost probes, in percent of those sent.
    pub loss_percent: f64,
    /// Round trip times; absent without an answer, or if probes are too short to carry a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt: Option<RttSummary>,
}

/// Round trip times of a series, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RttSummary {
    /// The shortest.
    #[serde(with = "millis", rename = "minMs")]
    pub min: Duration,
    /// The mean.
    #[serde(with = "millis", rename = "avgMs")]
    pub avg: Duration,
    /// The longest.
    #[serde(with = "millis", rename = "maxMs")]
    pub max: Duration,
    /// The standard deviation.
    #[serde(with = "millis", rename = "mdevMs")]
    pub mdev: Duration,
    /// The last one.
    #[serde(with = "millis", rename = "lastMs")]
    pub last: Duration,
    /// The median; like the other percentiles exact to 1/64.
    #[serde(with = "millis", rename = "p50Ms")]
    pub p50: Duration,
    /// The 95th percentile.
    #[serde(with = "millis", rename = "p95Ms")]
    pub p95: Duration,
    /// The 99th percentile.
    #[serde(with = "millis", rename = "p99Ms")]
    pub p99: Duration,
    /// The difference between successive times, smoothed as RFC 3550 does.
    #[serde(with = "millis", rename = "jitterMs")]
    pub jitter: Duration,
}

impl Statistics {
    /// Counts a probe that was sent.
    pub fn on_sent(&mut self) {
        self.sent += 1;
    }

    /// Counts the first answer to a probe; its time is `None` if the probe carries none.
    pub fn on_reply(&mut self, rtt: Option<Duration>, reordered: bool) {
        self.received += 1;
        self.reordered += u64::from(reordered);
        if let Some(rtt) = rtt {
            self.times.add(rtt);
        }
    }

    /// Counts another answer to the same probe.
    pub fn on_duplicate(&mut self) {
        self.duplicates += 1;
    }

    /// Counts an error.
    pub fn on_error(&mut self) {
        self.errors += 1;
    }

    /// Counts an answer with other data than what was sent.
    pub(crate) fn on_damaged(&mut self) {
        self.damaged += 1;
    }

    /// Probes that were sent.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Probes that were answered.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Errors.
    #[must_use]
    pub fn errors(&self) -> u64 {
        self.errors
    }

    /// The longest round trip so far; zero without any.
    #[must_use]
    pub fn longest(&self) -> Duration {
        self.times.max
    }

    /// The result so far.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let lost = self.sent.saturating_sub(self.received);
        Summary {
            sent: self.sent,
            received: self.received,
            duplicates: self.duplicates,
            reordered: self.reordered,
            errors: self.errors,
            damaged: self.damaged,
            loss_percent: if self.sent == 0 {
                0.0
            } else {
                lost as f64 * 100.0 / self.sent as f64
            },
            rtt: self.times.summary(),
        }
    }
}

impl RoundTrips {
    fn add(&mut self, rtt: Duration) {
        let nanos = rtt.as_nanos();
        if self.count == 0 {
            (self.min, self.max) = (rtt, rtt);
        } else {
            let step = rtt.abs_diff(self.last).as_nanos() as f64;
            self.jitter += (step - self.jitter) / 16.0;
        }
        self.count += 1;
        self.sum += nanos;
        self.squares += (nanos as f64).powi(2);
        self.min = self.min.min(rtt);
        self.max = self.max.max(rtt);
        self.last = rtt;
        self.histogram.add(rtt);
    }

    fn summary(&self) -> Option<RttSummary> {
        if self.count == 0 {
            return None;
        }
        let mean = self.sum as f64 / self.count as f64;
        // Rounding can make the difference of two large sums negative.
        let variance = (self.squares / self.count as f64 - mean.powi(2)).max(0.0);
        let percentile = |percent| {
            let found = self.histogram.percentile(percent);
            found.clamp(self.min, self.max)
        };
        Some(RttSummary {
            min: self.min,
            avg: Millis::from_nanos(mean),
            max: self.max,
            mdev: Millis::from_nanos(variance.sqrt()),
            last: self.last,
            p50: percentile(50),
            p95: percentile(95),
            p99: percentile(99),
            jitter: Millis::from_nanos(self.jitter),
        })
    }
}

#[cfg(test)]
mod tests;
