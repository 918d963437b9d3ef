//! Measures on request. Nothing is read while nobody asks, and nothing twice within the age that a
//! request allows.

use std::{path::PathBuf, sync::Arc, time::Duration};

use rubelet_base::ErrorChain;
use rubelet_cri::{CriError, RuntimeService, v1};
use rubelet_host::CgroupFs;
use rubelet_node_plan::CgroupTree;
use rubelet_node_state::{clock::Clock, pod_board::PodBoard};
use tokio::{
    sync::Mutex,
    task::{spawn, spawn_blocking},
    time::Instant,
};

use crate::{
    assemble::{self, Readings, UsageSource},
    cgroups::{self, CgroupReadings},
    from_cri::RuntimeUsage,
    in_flight::InFlight,
    node,
    rate::CpuRates,
    sample::{NodeSample, StatsSample},
    target::{PodTarget, targets},
};

/// How long a request waits for each source. Metrics servers give up after 10 s.
const PATIENCE: Duration = Duration::from_secs(4);

/// What a collector measures, and how.
pub struct StatsSettings {
    /// The pods of this node.
    pub pods: Arc<PodBoard>,
    /// The container runtime.
    pub runtime: Arc<dyn RuntimeService>,
    /// The cgroup file systems.
    pub cgroups: CgroupFs,
    /// Names of the pods' cgroups; one tree for each driver that may be in use.
    pub trees: Vec<CgroupTree>,
    /// Whose numbers are used.
    pub source: UsageSource,
    /// The clock of the agent.
    pub clock: Clock,
    /// `/`, except in tests.
    pub root: PathBuf,
}

/// Measures the node and its pods.
pub struct StatsCollector {
    settings: StatsSettings,
    /// Held while numbers are read: other requests wait for the same ones.
    state: Mutex<CollectorState>,
}

#[derive(Default)]
struct CollectorState {
    last: Option<(Instant, Arc<StatsSample>)>,
    rates: CpuRates,
    node: InFlight<NodeSample>,
    cgroups: InFlight<CgroupReadings>,
    runtime: InFlight<Result<RuntimeUsage, CriError>>,
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
    pub async fn sample(&self, max_age: Duration) -> Arc<StatsSample> {
        let mut state = self.state.lock().await;
        if let Some((at, sample)) = &state.last
            && at.elapsed() <= max_age
        {
            return Arc::clone(sample);
        }
        let sample = Arc::new(self.measure(&mut state).await);
        state.last = Some((Instant::now(), Arc::clone(&sample)));
        sample
    }

    async fn measure(&self, state: &mut CollectorState) -> StatsSample {
        let settings = &self.settings;
        let entries = settings.pods.list();
        let entries = entries.iter().map(|(_, _, entry)| &**entry);
        let targets: Arc<[PodTarget]> = targets(entries, &settings.trees).into();
        let mut problems = Vec::new();
        let (node, cgroups) = tokio::join!(
            state.node.ask(PATIENCE, || {
                let (root, now) = (settings.root.clone(), settings.clock.now());
                spawn_blocking(move || node::read(&root, now))
            }),
            state.cgroups.ask(PATIENCE, || {
                let (fs, clock) = (settings.cgroups.clone(), settings.clock.clone());
                let targets = Arc::clone(&targets);
                spawn_blocking(move || cgroups::read(&fs, &targets, &|| clock.now()))
            }),
        );
        let cgroups = cgroups.unwrap_or_else(|| {
            problems.push("the cgroup file system does not respond".to_owned());
            CgroupReadings::default()
        });
        let needed = settings.source == UsageSource::Runtime
            || !assemble::cgroups_suffice(&targets, &cgroups);
        let runtime = match needed {
            false => RuntimeUsage::default(),
            true => runtime_usage(state, settings, &mut problems).await,
        };
        let mut node = node.unwrap_or_default();
        if node.cpu.is_none() || node.memory.is_none() {
            problems.push("the usage of the node cannot be read from /proc".to_owned());
        }
        if let Some(cpu) = &mut node.cpu {
            // No pod has an empty UID, and no container an empty identifier.
            cpu.nano_cores = state.rates.add(&"".into(), cpu.at, cpu.usage_ns);
        }
        let readings = Readings { cgroups, runtime };
        let pods = assemble::pods(&targets, &readings, settings.source, &mut state.rates);
        state.rates.end_round();
        for problem in &problems {
            tracing::warn!("Statistics are incomplete: {problem}");
        }
        StatsSample {
            node,
            pods,
            problems,
        }
    }
}

async fn runtime_usage(
    state: &mut CollectorState,
    settings: &StatsSettings,
    problems: &mut Vec<String>,
) -> RuntimeUsage {
    let start = || spawn(ask_runtime(Arc::clone(&settings.runtime)));
    match state.runtime.ask(PATIENCE, start).await {
        Some(Ok(usage)) => return usage,
        // It has no numbers, and those of the cgroups are all that exist.
        Some(Err(error)) if error.is_unimplemented() => {}
        Some(Err(error)) => problems.push(format!(
            "the container runtime has no statistics: {}",
            ErrorChain(&error)
        )),
        None => problems.push("the container runtime does not respond".to_owned()),
    }
    RuntimeUsage::default()
}

/// Asks for the statistics of all pods, or of all containers where a runtime has only those.
async fn ask_runtime(runtime: Arc<dyn RuntimeService>) -> Result<RuntimeUsage, CriError> {
    let request = v1::ListPodSandboxStatsRequest { filter: None };
    match runtime.list_pod_sandbox_stats(request).await {
        Ok(response) => return Ok(RuntimeUsage::of_sandboxes(response.stats)),
        Err(error) if error.is_unimplemented() => {}
        Err(error) => return Err(error),
    }
    let request = v1::ListContainerStatsRequest { filter: None };
    let response = runtime.list_container_stats(request).await?;
    Ok(RuntimeUsage::of_containers(response.stats))
}

#[cfg(test)]
mod tests;
