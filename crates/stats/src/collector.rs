//! Measures on request. Nothing is read while nobody asks, and nothing twice within the age that a
//! request allows.

mod answer;
mod layers;
mod sources;

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use rubelet_cri::{ImageService, RuntimeService};
use rubelet_host::CgroupFs;
use rubelet_node_plan::CgroupTree;
use rubelet_node_state::{clock::Clock, metrics::NodeMetrics, pod_board::PodBoard};
use tokio::{sync::Mutex, time::Instant};

use self::sources::StatsSources;
use crate::{
    assemble::{self, UsageSource},
    rate::CpuRates,
    sample::StatsSample,
    system::SystemCgroups,
    target::{LogDirectory, PodDirectoriesOf, PodTarget, TargetRules, targets},
};

/// What a collector measures, and how.
pub struct StatsSettings {
    /// The pods of this node.
    pub pods: Arc<PodBoard>,
    /// The container runtime.
    pub runtime: Arc<dyn RuntimeService>,
    /// Its images.
    pub images: Arc<dyn ImageService>,
    /// The cgroup file systems.
    pub cgroups: CgroupFs,
    /// Names of the pods' cgroups; one tree for each driver that may be in use.
    pub trees: Vec<CgroupTree>,
    /// The cgroups of the node's own services.
    pub system: SystemCgroups,
    /// Whose numbers are used.
    pub source: UsageSource,
    /// The clock of the agent.
    pub clock: Clock,
    /// The directory of `proc`: `/`, except in tests.
    pub machine: PathBuf,
    /// `--root-dir`.
    pub root: PathBuf,
    /// `podLogsDir`.
    pub logs: PathBuf,
    /// Directories of the logs of containers.
    pub log_directory: LogDirectory,
    /// Directories of the volumes of pods.
    pub directories: PodDirectoriesOf,
    /// `volumeStatsAggPeriod`: volumes are added up at most this often; `None`: never.
    pub volume_period: Option<Duration>,
    /// Metrics of the node.
    pub metrics: Arc<NodeMetrics>,
    /// `cpuCFSQuotaPeriod` in microseconds; `None` without `cpuCFSQuota`.
    pub cpu_period_us: Option<u64>,
}

/// What a request is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StatsDetail {
    /// CPU, memory, swap and processes.
    Usage,
    /// Also writable layers, networks, and all other numbers of cgroups.
    Cadvisor,
    /// Usage, disks, networks, and the space that logs and volumes use.
    Summary,
}

/// Measures the node and its pods.
pub struct StatsCollector {
    settings: StatsSettings,
    /// Held while numbers are read: other requests wait for the same ones.
    state: Mutex<CollectorState>,
}

/// A sample and the time when it was complete.
type TimedSample = (Instant, Arc<StatsSample>);

#[derive(Default)]
struct CollectorState {
    /// The last sample of each detail.
    last: BTreeMap<StatsDetail, TimedSample>,
    rates: CpuRates,
    sources: StatsSources,
}

impl CollectorState {
    fn newest(&self) -> Option<&TimedSample> {
        self.last.values().max_by_key(|(at, _)| *at)
    }
}

impl StatsCollector {
    /// A collector; it reads nothing yet.
    #[must_use]
    pub fn new(settings: StatsSettings) -> Self {
        Self {
            settings,
            state: Mutex::default(),
        }
    }

    /// The usage, at most `max_age` old. Takes a few seconds at most: what hangs is missing, and
    /// named among the problems.
    pub async fn sample(&self, detail: StatsDetail, max_age: Duration) -> Arc<StatsSample> {
        let mut state = self.state.lock().await;
        let known = match detail {
            // Every sample has the usage.
            StatsDetail::Usage => state.newest(),
            _ => state.last.get(&detail),
        };
        if let Some((at, sample)) = known
            && at.elapsed() <= max_age
        {
            return Arc::clone(sample);
        }
        let sample = Arc::new(self.measure(detail, &mut state).await);
        let known = state.newest().map(|(_, known)| &known.problems);
        if known != Some(&sample.problems) {
            for problem in &sample.problems {
                tracing::warn!("Statistics are incomplete: {problem}");
            }
        }
        let timed = (Instant::now(), Arc::clone(&sample));
        state.last.insert(detail, timed);
        sample
    }

    async fn measure(&self, detail: StatsDetail, state: &mut CollectorState) -> StatsSample {
        let settings = &self.settings;
        let entries = settings.pods.list();
        let entries = entries.iter().map(|(_, _, entry)| &**entry);
        let rules = TargetRules {
            trees: &settings.trees,
            log_directory: &settings.log_directory,
            cpu_period_us: settings.cpu_period_us,
            directories: (detail == StatsDetail::Summary).then_some(&settings.directories),
        };
        let targets = targets(entries, &rules);
        let targets: Arc<[PodTarget]> = targets.into();
        let mut read = state.sources.read(settings, &targets, detail).await;
        if let Some(cpu) = &mut read.node.usage.cpu {
            // No pod has an empty UID, and no container an empty identifier.
            cpu.nano_cores = state.rates.add(&"".into(), cpu.at, cpu.usage_ns);
        }
        read.node.system =
            assemble::system(&read.readings.cgroups, &settings.system, &mut state.rates);
        let pods = assemble::pods(&targets, &read.readings, settings.source, &mut state.rates);
        state.rates.end_round();
        StatsSample {
            node: read.node,
            pods,
            devices: read.readings.cgroups.devices,
            problems: read.problems,
        }
    }
}

#[cfg(test)]
mod tests;
