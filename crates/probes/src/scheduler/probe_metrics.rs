//! Prometheus metrics of probes, with the kubelet's names: `/metrics/probes`.
//!
//! Kept beside the probes and rendered at each scrape: the metrics of a pod cost a few numbers and
//! are removed with it.

use std::{fmt::Write as _, time::Duration};

use jiff::Timestamp;
use rubelet_pod_plan::{ProbeKind, probe::AttemptOutcome};

/// Upper bounds of the buckets in seconds: those of the Prometheus client libraries.
const BOUNDS: [f64; 11] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

/// Results of the attempts of one probe, over all instances of its container.
#[derive(Debug)]
pub(super) struct ProbeMetrics {
    pub(super) container: Box<str>,
    pub(super) kind: ProbeKind,
    successful: u64,
    failed: u64,
    unknown: u64,
    /// Attempts by duration, each in the first matching bucket; the last bucket is for longer ones.
    buckets: [u32; BOUNDS.len() + 1],
    seconds: f64,
}

impl ProbeMetrics {
    pub(super) fn new(container: &str, kind: ProbeKind) -> Self {
        Self {
            container: container.into(),
            kind,
            successful: 0,
            failed: 0,
            unknown: 0,
            buckets: [0; BOUNDS.len() + 1],
            seconds: 0.0,
        }
    }

    /// Counts an attempt. The duration of a failed one is not counted, as in the kubelet.
    pub(super) fn add(&mut self, attempt: AttemptOutcome, took: Duration) {
        match attempt {
            AttemptOutcome::Success => self.successful += 1,
            AttemptOutcome::Failure | AttemptOutcome::Early => {
                self.failed += 1;
                return;
            }
            AttemptOutcome::Errored | AttemptOutcome::Late => self.unknown += 1,
        }
        let seconds = took.as_secs_f64();
        let bucket = BOUNDS.partition_point(|bound| *bound < seconds);
        self.buckets[bucket] = self.buckets[bucket].saturating_add(1);
        self.seconds += seconds;
    }
}

/// The labels of a probe's metrics.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProbeLabels<'a> {
    pub(super) namespace: &'a str,
    pub(super) pod: &'a str,
    pub(super) uid: &'a str,
}

/// The text that Prometheus reads.
pub(super) struct MetricsPage {
    totals: String,
    durations: String,
}

impl MetricsPage {
    pub(super) fn new() -> Self {
        Self {
            durations: "# HELP prober_probe_duration_seconds [ALPHA] Duration in seconds for a \
                        probe response.\n# TYPE prober_probe_duration_seconds histogram\n"
                .to_owned(),
            totals: "# HELP prober_probe_total [BETA] Cumulative number of a liveness, readiness \
                     or startup probe for a container by result.\n# TYPE prober_probe_total \
                     counter\n"
                .to_owned(),
        }
    }

    /// Adds a probe. Names of pods and containers need no escaping.
    pub(super) fn add(&mut self, owner: ProbeLabels<'_>, metrics: &ProbeMetrics) {
        let ProbeLabels {
            namespace,
            pod,
            uid,
        } = owner;
        let (container, kind) = (&metrics.container, metrics.kind.as_str());
        for (result, count) in [
            ("failed", metrics.failed),
            ("successful", metrics.successful),
            ("unknown", metrics.unknown),
        ] {
            if count > 0 {
                // Writing to a string never fails.
                let _ = writeln!(
                    self.totals,
                    "prober_probe_total{{container=\"{container}\",namespace=\"{namespace}\",\
                     pod=\"{pod}\",pod_uid=\"{uid}\",probe_type=\"{kind}\",result=\"{result}\"}} \
                     {count}"
                );
            }
        }
        let all: u64 = metrics.buckets.iter().map(|count| u64::from(*count)).sum();
        if all == 0 {
            return;
        }
        let labels = format!(
            "container=\"{container}\",namespace=\"{namespace}\",pod=\"{pod}\",\
             probe_type=\"{kind}\""
        );
        let mut below = 0;
        for (bound, count) in BOUNDS.iter().zip(metrics.buckets) {
            below += u64::from(count);
            let _ = writeln!(
                self.durations,
                "prober_probe_duration_seconds_bucket{{{labels},le=\"{bound}\"}} {below}"
            );
        }
        let _ = writeln!(
            self.durations,
            "prober_probe_duration_seconds_bucket{{{labels},le=\"+Inf\"}} {all}\n\
             prober_probe_duration_seconds_sum{{{labels}}} {}\n\
             prober_probe_duration_seconds_count{{{labels}}} {all}",
            metrics.seconds
        );
    }

    /// The whole page; `began` is the start time of this process.
    pub(super) fn finish(self, began: Option<Timestamp>) -> String {
        let mut page = String::new();
        if let Some(began) = began {
            let seconds = began.as_millisecond() as f64 / 1000.0;
            page = format!(
                "# HELP process_start_time_seconds [ALPHA] Start time of the process since unix \
                 epoch in seconds.\n# TYPE process_start_time_seconds gauge\n\
                 process_start_time_seconds {seconds}\n"
            );
        }
        page + &self.durations + &self.totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_names_and_labels_of_the_kubelet() {
        let mut metrics = ProbeMetrics::new("app", ProbeKind::Readiness);
        metrics.add(AttemptOutcome::Success, Duration::from_millis(5));
        metrics.add(AttemptOutcome::Success, Duration::from_millis(500));
        metrics.add(AttemptOutcome::Failure, Duration::from_secs(9));
        let owner = ProbeLabels {
            namespace: "web",
            pod: "a-0",
            uid: "u",
        };
        let mut page = MetricsPage::new();
        page.add(owner, &metrics);
        page.add(owner, &ProbeMetrics::new("quiet", ProbeKind::Liveness));
        let began = Timestamp::from_second(1_700_000_000).unwrap();
        let expected = "\
# HELP process_start_time_seconds [ALPHA] Start time of the process since unix epoch in seconds.
# TYPE process_start_time_seconds gauge
process_start_time_seconds 1700000000
# HELP prober_probe_duration_seconds [ALPHA] Duration in seconds for a probe response.
# TYPE prober_probe_duration_seconds histogram
prober_probe_duration_seconds_bucket{container=\"app\",namespace=\"web\",pod=\"a-0\",probe_type=\"Readiness\",le=\"0.005\"} 1
prober_probe_duration_seconds_bucket{container=\"app\",namespace=\"web\",pod=\"a-0\",probe_type=\"Readiness\",le=\"0.01\"} 1
prober_probe_duration_seconds_bucket{container=\"app\",namespace=\"web\",pod=\"a-0\",probe_type=\"Readiness\",le=\"0.025\"} 1
prober_probe_duration_seconds_bucket{container=\"app\",namespace=\"web\",pod=\"a-0\",probe_type=\"Readiness\",le=\"0.05\"} 1
prober_probe_duration_seconds_bucket{container=\"app\",namespace=\"web\",pod=\"a-0\",probe_type=\"Readiness\",le=\"0.1\"} 1
prober_probe_duration_seconds_bucket{container=\"app\",namespace=\"web\",pod=\"a-0\",probe_type=\"Readiness\",le=\"0.25\"} 1
prober_probe_duration_seconds_bucket{container=\"app\",namespace=\"web\",pod=\"a-0\",probe_type=\"Readiness\",le=\"0.5\"} 2
prober_probe_duration_seconds_bucket{container=\"app\",namespace=\"web\",pod=\"a-0\",probe_type=\"Readiness\",le=\"1\"} 2
prober_probe_duration_seconds_bucket{container=\"app\",namespace=\"web\",pod=\"a-0\",probe_type=\"Readiness\",le=\"2.5\"} 2
prober_probe_duration_seconds_bucket{container=\"app\",namespace=\"web\",pod=\"a-0\",probe_type=\"Readiness\",le=\"5\"} 2
prober_probe_duration_seconds_bucket{container=\"app\",namespace=\"web\",pod=\"a-0\",probe_type=\"Readiness\",le=\"10\"} 2
prober_probe_duration_seconds_bucket{container=\"app\",namespace=\"web\",pod=\"a-0\",probe_type=\"Readiness\",le=\"+Inf\"} 2
prober_probe_duration_seconds_sum{container=\"app\",namespace=\"web\",pod=\"a-0\",probe_type=\"Readiness\"} 0.505
prober_probe_duration_seconds_count{container=\"app\",namespace=\"web\",pod=\"a-0\",probe_type=\"Readiness\"} 2
# HELP prober_probe_total [BETA] Cumulative number of a liveness, readiness or startup probe for a container by result.
# TYPE prober_probe_total counter
prober_probe_total{container=\"app\",namespace=\"web\",pod=\"a-0\",pod_uid=\"u\",probe_type=\"Readiness\",result=\"failed\"} 1
prober_probe_total{container=\"app\",namespace=\"web\",pod=\"a-0\",pod_uid=\"u\",probe_type=\"Readiness\",result=\"successful\"} 2
";
        assert_eq!(page.finish(Some(began)), expected);
    }
}
