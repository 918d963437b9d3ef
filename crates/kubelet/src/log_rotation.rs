//! Rotates the logs of running containers: checks their sizes, renames those that are too large,
//! has the runtime open new ones, and compresses and removes old ones.
//!
//! The kubelet checks each `containerLogMonitorInterval`. This checks sooner if a log grows so fast
//! that it would far exceed its size by then, and does not list containers in the runtime.

mod compressor;
mod growth;

use std::{
    collections::{HashMap, HashSet},
    io,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use futures_util::{StreamExt as _, stream};
use rubelet_base::{ContainerId, ErrorChain};
use rubelet_cri::{RuntimeService, v1};
pub use rubelet_logs::rotation::RotationPolicy;
use rubelet_logs::rotation::{self, RotatedLog};
use rubelet_node_state::{clock::Clock, pod_board::PodBoard, runtime_state::RuntimeState};
use tokio::{
    sync::watch,
    task::spawn_blocking,
    time::{Instant, sleep},
};
use tracing::{debug, info, warn};

use self::{
    compressor::Compressor,
    growth::{LogGrowth, LogSizes},
};
use crate::{pod_host::PodHost, pod_task::PodContext};

/// Settings of log rotation.
#[derive(Debug, Clone, Copy)]
pub struct LogRotationSettings {
    /// Maximum size, and number of kept files.
    pub policy: RotationPolicy,
    /// `containerLogMonitorInterval`.
    pub interval: Duration,
    /// `containerLogMaxWorkers`: number of logs that are rotated, and compressed, at the same time.
    pub workers: usize,
}

/// The task that rotates logs.
pub(crate) struct LogRotation {
    settings: LogRotationSettings,
    runtime: Arc<dyn RuntimeService>,
    host: Arc<dyn PodHost>,
    pods: Arc<PodBoard>,
    runtime_state: watch::Receiver<RuntimeState>,
    clock: Clock,
}

/// The log of a running container.
#[derive(Debug, Clone)]
struct RunningLog {
    id: ContainerId,
    path: PathBuf,
}

/// The state that is kept between two checks.
struct LogRotationState {
    sizes: LogSizes,
    at: Instant,
    /// Number of failed rotations in a row, by container.
    failing: HashMap<ContainerId, u32>,
    /// Containers without a log file, for which the runtime was asked to open one.
    missing: HashSet<ContainerId>,
}

impl LogRotation {
    /// Creates the task for the pods of this node.
    pub(crate) fn new(settings: LogRotationSettings, node: &PodContext) -> Self {
        Self {
            settings,
            runtime: Arc::clone(&node.runtime),
            host: Arc::clone(&node.host),
            pods: Arc::clone(&node.board),
            runtime_state: node.runtime_state.clone(),
            clock: node.clock.clone(),
        }
    }

    /// Checks, rotates, and waits, for ever.
    pub(crate) async fn run(self) {
        let compressor = Compressor::new(self.settings.workers);
        let mut state = LogRotationState {
            sizes: LogSizes::default(),
            at: Instant::now(),
            failing: HashMap::new(),
            missing: HashSet::new(),
        };
        let mut wait = self.settings.interval;
        loop {
            sleep(wait).await;
            wait = self.look(&mut state, &compressor).await;
        }
    }

    /// Checks all logs once. Returns the time until the next check.
    async fn look(&self, state: &mut LogRotationState, compressor: &Compressor) -> Duration {
        if !self.runtime_state.borrow().is_ready() {
            // Without the runtime, nothing can be rotated.
            return self.settings.interval;
        }
        let logs = self.running_logs();
        state.forget_all_but(&logs);
        let Ok((logs, found)) = spawn_blocking(move || {
            let found: Vec<_> = logs.iter().map(|log| rotation::size(&log.path)).collect();
            (logs, found)
        })
        .await
        else {
            // The agent stops.
            return self.settings.interval;
        };
        let now = Instant::now();
        let max_bytes = self.settings.policy.max_bytes;
        let mut sizes = LogSizes::default();
        let mut due = Vec::new();
        for (log, size) in logs.into_iter().zip(found) {
            match size {
                Ok(Some(size)) => {
                    state.missing.remove(&log.id);
                    sizes.insert(log.id.clone(), size);
                    if size >= max_bytes {
                        due.push(log);
                    }
                }
                // A rotation was interrupted between the renaming and the reopening.
                Ok(None) if state.missing.insert(log.id.clone()) => due.push(log),
                Ok(None) => {}
                Err(error) => state.report(&log, &error),
            }
        }
        let growth = LogGrowth {
            before: &state.sizes,
            now: &sizes,
            between: now - state.at,
            max_bytes,
        };
        let wait = growth.next_look(self.settings.interval);
        let mut work = stream::iter(due)
            .map(|log| async move { (self.rotate(&log).await, log) })
            .buffer_unordered(self.settings.workers);
        while let Some((done, log)) = work.next().await {
            match done {
                Ok(waiting) => {
                    state.forget_failures(&log);
                    if waiting {
                        compressor.compress(&log.path);
                    }
                    // The new file is empty, and growth counts from there.
                    sizes.insert(log.id, 0);
                }
                Err(error) => state.report(&log, &error),
            }
        }
        drop(work);
        state.sizes = sizes;
        state.at = now;
        wait
    }

    fn running_logs(&self) -> Vec<RunningLog> {
        let mut logs = Vec::new();
        for (_, _, entry) in self.pods.list() {
            for status in entry.status.running_containers() {
                let count = status.restart_count;
                logs.push(RunningLog {
                    id: ContainerId::from(&*status.container_id),
                    path: self.host.log_path(&entry.pod, &status.name, count),
                });
            }
        }
        logs
    }

    /// Rotates one log, or only has it reopened if the file is missing. Returns true if rotated
    /// files wait for compression.
    async fn rotate(&self, log: &RunningLog) -> io::Result<bool> {
        let (path, now) = (log.path.clone(), self.clock.now());
        let rename = move || match RotatedLog::rename(&path, now) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            other => other.map(Some),
        };
        // Renamed before the runtime opens a new file: until then it writes to the renamed one, and
        // no output is lost.
        let renamed = blocking(rename).await?;
        let request = v1::ReopenContainerLogRequest {
            container_id: log.id.as_str().to_owned(),
        };
        if let Err(error) = self.runtime.reopen_container_log(request).await {
            // If the runtime has reopened the log after all, there is a new file, and this does
            // nothing.
            if let Some(renamed) = renamed {
                blocking(move || {
                    renamed.undo();
                    Ok(())
                })
                .await?;
            }
            let text = format!(
                "failed to reopen the log in the container runtime: {}",
                ErrorChain(&error)
            );
            return Err(io::Error::other(text));
        }
        debug!(log = %log.path.display(), "Rotated container log");
        let (path, policy) = (log.path.clone(), self.settings.policy);
        blocking(move || rotation::remove_excess(&path, policy)).await
    }
}

impl LogRotationState {
    fn forget_all_but(&mut self, logs: &[RunningLog]) {
        if self.failing.is_empty() && self.missing.is_empty() {
            return;
        }
        let running: HashSet<&ContainerId> = logs.iter().map(|log| &log.id).collect();
        self.failing.retain(|id, _| running.contains(id));
        self.missing.retain(|id| running.contains(id));
    }

    fn forget_failures(&mut self, log: &RunningLog) {
        if self.failing.remove(&log.id) > Some(1) {
            info!(log = %log.path.display(), "Container log is rotated again");
        }
    }

    fn report(&mut self, log: &RunningLog, error: &io::Error) {
        let failures = self.failing.entry(log.id.clone()).or_default();
        *failures += 1;
        // The first failure may be due to a container that has just exited; further ones are not
        // news.
        if *failures == 2 {
            warn!(log = %log.path.display(), %error, "Failed to rotate container log");
        }
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let stopped = |_| io::Error::other("the agent stops");
    spawn_blocking(work).await.map_err(stopped)?
}
