//! Rotates the logs of running containers: looks at their sizes, renames those that are large, has
//! the runtime open new ones, and compresses and removes old ones.
//!
//! The kubelet looks each `containerLogMonitorInterval`. This looks sooner at logs that grow so fast
//! that they would be far above their size by then, and never asks the runtime which containers run.

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
use rubelet_api::status::ContainerState;
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
    growth::{Growth, Sizes},
};
use crate::{pod_host::PodHost, pod_task::PodContext};

/// When logs are rotated.
#[derive(Debug, Clone, Copy)]
pub struct LogRotationSettings {
    /// How large they become, and how many files are kept.
    pub policy: RotationPolicy,
    /// `containerLogMonitorInterval`.
    pub interval: Duration,
    /// `containerLogMaxWorkers`: how many are rotated, and compressed, at the same time.
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

/// The log of a container that runs.
#[derive(Debug, Clone)]
struct RunningLog {
    id: ContainerId,
    path: PathBuf,
}

/// What the task remembers between two looks.
struct Memory {
    sizes: Sizes,
    at: Instant,
    /// Containers whose log could not be rotated, and how often in a row.
    failing: HashMap<ContainerId, u32>,
    /// Containers without a log, whom the runtime was asked to open one for.
    missing: HashSet<ContainerId>,
}

impl LogRotation {
    /// For the node of these pods.
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

    /// Looks, rotates, and waits, for ever.
    pub(crate) async fn run(self) {
        let compressor = Compressor::new(self.settings.workers);
        let mut memory = Memory {
            sizes: Sizes::default(),
            at: Instant::now(),
            failing: HashMap::new(),
            missing: HashSet::new(),
        };
        let mut wait = self.settings.interval;
        loop {
            sleep(wait).await;
            wait = self.look(&mut memory, &compressor).await;
        }
    }

    /// One look at all logs; when the next one is due.
    async fn look(&self, memory: &mut Memory, compressor: &Compressor) -> Duration {
        if !self.runtime_state.borrow().is_ready() {
            // Without the runtime, nothing can be rotated.
            return self.settings.interval;
        }
        let logs = self.running_logs();
        memory.forget_all_but(&logs);
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
        let mut sizes = Sizes::default();
        let mut due = Vec::new();
        for (log, size) in logs.into_iter().zip(found) {
            match size {
                Ok(Some(size)) => {
                    memory.missing.remove(&log.id);
                    sizes.insert(log.id.clone(), size);
                    if size >= max_bytes {
                        due.push(log);
                    }
                }
                // A rotation was interrupted between its two halves.
                Ok(None) if memory.missing.insert(log.id.clone()) => due.push(log),
                Ok(None) => {}
                Err(error) => memory.report(&log, &error),
            }
        }
        let growth = Growth {
            before: &memory.sizes,
            now: &sizes,
            between: now - memory.at,
            max_bytes,
        };
        let wait = growth.next_look(self.settings.interval);
        let mut work = stream::iter(due)
            .map(|log| async move { (self.rotate(&log).await, log) })
            .buffer_unordered(self.settings.workers);
        while let Some((done, log)) = work.next().await {
            match done {
                Ok(waiting) => {
                    memory.forget_failures(&log);
                    if waiting {
                        compressor.compress(&log.path);
                    }
                    // The new file is empty, and growth counts from there.
                    sizes.insert(log.id, 0);
                }
                Err(error) => memory.report(&log, &error),
            }
        }
        drop(work);
        memory.sizes = sizes;
        memory.at = now;
        wait
    }

    fn running_logs(&self) -> Vec<RunningLog> {
        let mut logs = Vec::new();
        for (_, _, entry) in self.pods.list() {
            for status in entry.status.all_containers() {
                if let ContainerState::Running { .. } = status.state {
                    let count = status.restart_count;
                    logs.push(RunningLog {
                        id: ContainerId::from(&*status.container_id),
                        path: self.host.log_path(&entry.pod, &status.name, count),
                    });
                }
            }
        }
        logs
    }

    /// Rotates one log; only has it opened again where there is none. Returns whether files of it wait
    /// for compression.
    async fn rotate(&self, log: &RunningLog) -> io::Result<bool> {
        let (path, now) = (log.path.clone(), self.clock.now());
        let rename = move || match RotatedLog::rename(&path, now) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            other => other.map(Some),
        };
        // Before the runtime opens a new file: until then it writes to the renamed one, and nothing
        // is lost.
        let renamed = blocking(rename).await?;
        let request = v1::ReopenContainerLogRequest {
            container_id: log.id.as_str().to_owned(),
        };
        if let Err(error) = self.runtime.reopen_container_log(request).await {
            // If it did so after all, there is a new file, and nothing is undone.
            if let Some(renamed) = renamed {
                blocking(move || {
                    renamed.undo();
                    Ok(())
                })
                .await?;
            }
            let text = format!(
                "the runtime can't open the log again: {}",
                ErrorChain(&error)
            );
            return Err(io::Error::other(text));
        }
        debug!(log = %log.path.display(), "Rotated a container's log");
        let (path, policy) = (log.path.clone(), self.settings.policy);
        blocking(move || rotation::remove_excess(&path, policy)).await
    }
}

impl Memory {
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
            info!(log = %log.path.display(), "A container's log is rotated again");
        }
    }

    fn report(&mut self, log: &RunningLog, error: &io::Error) {
        let failures = self.failing.entry(log.id.clone()).or_default();
        *failures += 1;
        // The first time, the container may just have ended. Later ones say nothing new.
        if *failures == 2 {
            warn!(log = %log.path.display(), %error, "Cannot rotate a container's log");
        }
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let stopped = |_| io::Error::other("the agent stops");
    spawn_blocking(work).await.map_err(stopped)?
}
