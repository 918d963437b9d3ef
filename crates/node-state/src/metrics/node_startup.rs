//! How long the node took to become ready.

use std::time::Duration;

use parking_lot::Mutex;
use prometheus::Gauge;
use rubelet_host::own_process;
use tokio::time::Instant;

use super::factory::MetricFactory;

/// How long the node took to become ready, counted from the boot of the machine. Only for a node whose object this
/// process created: for any other the times say nothing.
#[derive(Debug)]
pub struct NodeStartupMetrics {
    pre_agent: Gauge,
    pre_registration: Gauge,
    registration: Gauge,
    post_registration: Gauge,
    total: Gauge,
    progress: Mutex<StartupProgress>,
}

#[derive(Debug)]
struct StartupProgress {
    began: Instant,
    attempted: Option<Instant>,
    registered: Option<Instant>,
    is_ready: bool,
}

impl NodeStartupMetrics {
    pub(super) fn new(factory: &MetricFactory<'_>) -> Self {
        let gauge = |name, help| factory.seconds(name, help);
        Self {
            pre_agent: gauge(
                "kubelet_node_startup_pre_kubelet_duration_seconds",
                "Duration in seconds of node startup before kubelet starts.",
            ),
            pre_registration: gauge(
                "kubelet_node_startup_pre_registration_duration_seconds",
                "Duration in seconds of node startup before registration.",
            ),
            registration: gauge(
                "kubelet_node_startup_registration_duration_seconds",
                "Duration in seconds of node startup during registration.",
            ),
            post_registration: gauge(
                "kubelet_node_startup_post_registration_duration_seconds",
                "Duration in seconds of node startup after registration.",
            ),
            total: gauge(
                "kubelet_node_startup_duration_seconds",
                "Duration in seconds of node startup in total.",
            ),
            progress: Mutex::new(StartupProgress {
                began: Instant::now(),
                attempted: None,
                registered: None,
                is_ready: false,
            }),
        }
    }

    /// The agent tries to register the node. Only the first try counts.
    pub fn attempted(&self) {
        self.progress
            .lock()
            .attempted
            .get_or_insert_with(Instant::now);
    }

    /// The node's object was created.
    pub fn registered(&self) {
        let mut progress = self.progress.lock();
        let (Some(attempted), None) = (progress.attempted, progress.registered) else {
            return;
        };
        let now = Instant::now();
        progress.registered = Some(now);
        if let Some(before) = before_start() {
            self.pre_agent.set(before.as_secs_f64());
        }
        let waited = attempted.duration_since(progress.began);
        self.pre_registration.set(waited.as_secs_f64());
        self.registration
            .set(now.duration_since(attempted).as_secs_f64());
    }

    /// The node reports that it is ready. Only the first time after it was registered counts.
    pub fn ready(&self) {
        let mut progress = self.progress.lock();
        let Some(registered) = progress.registered.filter(|_| !progress.is_ready) else {
            return;
        };
        progress.is_ready = true;
        let now = Instant::now();
        self.post_registration
            .set(now.duration_since(registered).as_secs_f64());
        if let Some(before) = before_start() {
            let all = before + now.duration_since(progress.began);
            self.total.set(all.as_secs_f64());
        }
    }
}

/// Time from the boot of the machine to the start of this process.
fn before_start() -> Option<Duration> {
    own_process::started_after_boot().map(|hundredths| Duration::from_millis(hundredths * 10))
}
