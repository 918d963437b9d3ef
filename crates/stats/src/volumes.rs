//! The space that volumes use: added up when somebody asks and the known numbers are older than
//! `volumeStatsAggPeriod`, one volume after the other, in the background.
//!
//! The kubelet adds them up whether somebody asks or not, all volumes at the same time.

use std::{
    collections::{HashMap, HashSet},
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::Path,
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use rubelet_host::project_quota;
use rubelet_node_state::{clock::Clock, metrics::NodeMetrics};
use tokio::{
    task::{JoinHandle, spawn, spawn_blocking},
    time::{Instant, timeout},
};
use tracing::debug;

use crate::{
    filesystem,
    sample::FsSample,
    target::{PodTarget, VolumeDirectory},
};

/// How long a request waits for new numbers. After that it has those that are known.
const WAIT: Duration = Duration::from_secs(1);
/// A volume that takes longer does not keep the others waiting any more.
const PATIENCE: Duration = Duration::from_secs(10);
/// Most volumes that are added up at the same time: all but one of them hang.
const MOST_AT_ONCE: usize = 4;
/// A volume is left alone for this many times as long as adding it up took: at most a twentieth of a
/// processor is spent on it.
const REST: u32 = 20;

/// The UID of a pod, and the name of its volume.
pub(crate) type VolumeKey = (Arc<str>, Arc<str>);

/// What was read of volumes.
pub(crate) type VolumeReadings = HashMap<VolumeKey, FsSample>;

/// Starts to add up a volume.
pub(crate) type MeasureVolume =
    Arc<dyn Fn(VolumeDirectory) -> JoinHandle<io::Result<FsSample>> + Send + Sync>;

/// A volume that was added up.
#[derive(Debug, Clone, Copy)]
struct MeasuredVolume {
    at: Instant,
    took: Duration,
    /// `None` if it could not be read.
    fs: Option<FsSample>,
}

impl MeasuredVolume {
    /// Whether it is time for new numbers.
    fn is_due(&self, period: Duration, now: Instant) -> bool {
        now.duration_since(self.at) >= period.max(self.took * REST)
    }
}

#[derive(Debug, Default)]
struct MeterState {
    known: HashMap<VolumeKey, MeasuredVolume>,
    running: HashSet<VolumeKey>,
}

/// The volumes of all pods.
#[derive(Default)]
pub(crate) struct VolumeMeter {
    state: Arc<Mutex<MeterState>>,
    /// The volumes that are being added up now.
    round: Option<JoinHandle<()>>,
}

impl VolumeMeter {
    /// The space that the volumes of these pods use, as far as it is known.
    ///
    /// Cancel safety: a round goes on, and the next request finds it.
    pub(crate) async fn read(
        &mut self,
        targets: &[PodTarget],
        period: Duration,
        measure: &MeasureVolume,
    ) -> VolumeReadings {
        if self.round.as_ref().is_none_or(JoinHandle::is_finished) {
            let due = self.due(targets, period, Instant::now());
            let state = Arc::clone(&self.state);
            let measure = Arc::clone(measure);
            self.round = (!due.is_empty()).then(|| spawn(round(state, due, measure)));
        }
        if let Some(round) = &mut self.round
            && timeout(WAIT, round).await.is_ok()
        {
            self.round = None;
        }
        let state = self.state.lock();
        let known = state.known.iter();
        known
            .filter_map(|(key, volume)| Some((key.clone(), volume.fs?)))
            .collect()
    }

    /// The volumes to add up. Forgets those that no pod has any more.
    fn due(
        &self,
        targets: &[PodTarget],
        period: Duration,
        now: Instant,
    ) -> Vec<(VolumeKey, VolumeDirectory)> {
        let all: HashMap<VolumeKey, &VolumeDirectory> = targets
            .iter()
            .flat_map(|pod| {
                let key = |one: &VolumeDirectory| (Arc::clone(&pod.uid), Arc::clone(&one.name));
                pod.volumes.iter().map(move |one| (key(one), one))
            })
            .collect();
        let mut state = self.state.lock();
        state.known.retain(|key, _| all.contains_key(key));
        if state.running.len() >= MOST_AT_ONCE {
            return Vec::new();
        }
        let due = all.into_iter().filter(|(key, _)| {
            let known = state.known.get(key);
            !state.running.contains(key) && known.is_none_or(|known| known.is_due(period, now))
        });
        due.map(|(key, directory)| (key, directory.clone()))
            .collect()
    }
}

/// Adds up volumes, one after the other, for as long as not too many of them hang.
async fn round(
    state: Arc<Mutex<MeterState>>,
    due: Vec<(VolumeKey, VolumeDirectory)>,
    measure: MeasureVolume,
) {
    for (key, directory) in due {
        let began = Instant::now();
        state.lock().running.insert(key.clone());
        let (path, call) = (directory.path.clone(), measure(directory));
        let (known, of) = (Arc::clone(&state), key.clone());
        // One that hangs has its numbers in the end, too.
        let noted = spawn(async move {
            let found = call
                .await
                .unwrap_or_else(|error| Err(io::Error::other(error)));
            if let Err(error) = &found {
                debug!(volume = %path.display(), %error, "Cannot add up the files of a volume");
            }
            let mut state = known.lock();
            state.running.remove(&of);
            let volume = MeasuredVolume {
                at: Instant::now(),
                took: began.elapsed(),
                fs: found.ok(),
            };
            state.known.insert(of, volume);
        });
        if timeout(PATIENCE, noted).await.is_err() {
            debug!(pod = %key.0, volume = %key.1, "Adding up the files of a volume takes long");
        }
        if state.lock().running.len() >= MOST_AT_ONCE {
            return;
        }
    }
}

/// Adds up volumes of this machine.
pub(crate) fn measurer(clock: Clock, metrics: Arc<NodeMetrics>) -> MeasureVolume {
    Arc::new(move |directory| {
        let (clock, metrics) = (clock.clone(), Arc::clone(&metrics));
        spawn_blocking(move || measure(&directory, &clock, &metrics))
    })
}

/// The space that a volume uses, and what is left on its file system.
fn measure(
    directory: &VolumeDirectory,
    clock: &Clock,
    metrics: &NodeMetrics,
) -> io::Result<FsSample> {
    let path = &directory.path;
    let whole = filesystem::read(path, clock.now())?;
    // A volume in memory is a file system of its own, which knows its numbers.
    if is_mount_point(path)? && whole.capacity > Some(0) {
        return Ok(whole);
    }
    let began = Instant::now();
    let used = project_quota::usage_of_tree(path, directory.may_have_quota)?;
    if used.is_partial {
        return Err(io::Error::other(
            "it has too many files or levels of directories",
        ));
    }
    metrics.pods.volume_measured(began.elapsed());
    Ok(FsSample {
        at: clock.now(),
        ..whole.part(Some(used.bytes), Some(used.inodes))
    })
}

fn is_mount_point(path: &Path) -> io::Result<bool> {
    let device = |path: &Path| fs::symlink_metadata(path).map(|found| found.dev());
    Ok(match path.parent() {
        Some(parent) => device(path)? != device(parent)?,
        None => false,
    })
}

#[cfg(test)]
mod tests;
