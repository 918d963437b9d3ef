//! The sources of numbers. They are read at the same time, and each may hang.

use std::{collections::HashMap, future::Future, path::Path, sync::Arc};

use parking_lot::Mutex;
use rubelet_base::error_text;
use rubelet_cgroup_plan::CgroupPath;
use rubelet_cri::{CriError, RuntimeService, v1};
use rubelet_node_state::clock::Clock;
use tokio::task::{spawn, spawn_blocking};

use super::{
    StatsDetail, StatsSettings,
    answer::{PATIENCE, SourceAnswer, unless_unimplemented},
    layers::LayerSource,
};
use crate::{
    assemble::{self, Readings, UsageSource},
    cgroup_request::{CgroupReadings, CgroupRequest},
    cgroups,
    disks::{self, DiskReadings, RuntimeDisks},
    filesystem,
    from_cri::RuntimeUsage,
    in_flight::InFlight,
    known_pods::KnownPods,
    node,
    pod_network::NetworkReader,
    sample::{FsSample, NodeSample},
    target::PodTarget,
    volumes::{VolumeMeter, VolumeReadings, measurer},
};

/// Bytes and inodes, by container or pod.
type FilesByOwner = HashMap<Arc<str>, (u64, u64)>;

/// The file system of the logs, the log files by container, and other files by pod.
type LogReadings = (Option<FsSample>, FilesByOwner, FilesByOwner);

/// The sources, and the calls in flight.
#[derive(Default)]
pub(super) struct StatsSources {
    node: InFlight<SourceAnswer<NodeSample>>,
    cgroups: InFlight<SourceAnswer<CgroupReadings>>,
    known: Arc<Mutex<KnownPods>>,
    runtime: InFlight<SourceAnswer<RuntimeUsage>>,
    runtime_disks: InFlight<SourceAnswer<RuntimeDisks>>,
    root: InFlight<SourceAnswer<Option<FsSample>>>,
    logs: InFlight<SourceAnswer<LogReadings>>,
    layers: LayerSource,
    volumes: VolumeMeter,
}

/// What was read.
#[derive(Debug, Default)]
pub(super) struct SourceReadings {
    pub(super) node: NodeSample,
    pub(super) readings: Readings,
    /// Why numbers are missing, for an operator.
    pub(super) problems: Vec<String>,
}

impl StatsSources {
    /// Reads what `detail` needs. But for writable layers the runtime is asked only where nothing else suffices.
    pub(super) async fn read(
        &mut self,
        settings: &StatsSettings,
        targets: &Arc<[PodTarget]>,
        detail: StatsDetail,
    ) -> SourceReadings {
        let full = detail != StatsDetail::Usage;
        let is_summary = detail == StatsDetail::Summary;
        let of_runtime = settings.source == UsageSource::Runtime;
        let (node, cgroups, root, logs, volumes, runtime_disks, layers, mut runtime) = tokio::join!(
            self.node.ask(PATIENCE, || read_node(settings)),
            self.cgroups.ask(PATIENCE, || read_cgroups(
                settings,
                targets,
                detail,
                &self.known
            )),
            when(is_summary, self.root.ask(PATIENCE, || read_root(settings))),
            when(
                is_summary,
                self.logs.ask(PATIENCE, || read_logs(settings, targets))
            ),
            read_volumes(&mut self.volumes, settings, targets, detail),
            when(
                full,
                self.runtime_disks
                    .ask(PATIENCE, || read_runtime_disks(settings))
            ),
            when(
                full && !of_runtime,
                self.layers.read(&settings.runtime, targets)
            ),
            when(
                of_runtime,
                self.runtime.ask(PATIENCE, || read_runtime(settings))
            ),
        );
        let mut problems = Vec::new();
        let cgroups = value("the cgroup file system", Some(cgroups), &mut problems);
        let suffice = assemble::cgroups_suffice(targets, &cgroups)
            && (!full || assemble::has_networks(targets, &cgroups));
        // One that does not respond is not waited for twice.
        let hangs = matches!(layers, Some(None));
        if runtime.is_none() && !suffice && !hangs {
            runtime = Some(self.runtime.ask(PATIENCE, || read_runtime(settings)).await);
        }
        let mut node = value("/proc", Some(node), &mut problems);
        node.fs = value("the root directory", root, &mut problems);
        let (log_fs, log_files, pod_files) =
            value("the directory of the logs", logs, &mut problems);
        let disks = value(
            "the disks of the container runtime",
            runtime_disks,
            &mut problems,
        );
        (node.image_fs, node.container_fs) = (disks.image, disks.container.or(disks.image));
        node.pods.clone_from(&cgroups.kubepods);
        node.layers_device = disks.device;
        let readings = Readings {
            cgroups,
            layers: value("the container runtime", layers, &mut problems),
            runtime: value("the container runtime", runtime, &mut problems),
            disks: DiskReadings {
                layers: node.container_fs,
                logs: log_fs,
                log_files,
                pod_files,
                root: node.fs,
                volumes,
            },
        };
        SourceReadings {
            node,
            readings,
            problems,
        }
    }
}

/// Runs a call if its value is needed.
async fn when<T>(needed: bool, call: impl Future<Output = Option<T>>) -> Option<Option<T>> {
    match needed {
        true => Some(call.await),
        false => None,
    }
}

/// The value of a call; nothing where there was none.
fn value<T: Default>(
    source: &str,
    answer: Option<Option<SourceAnswer<T>>>,
    problems: &mut Vec<String>,
) -> T {
    match answer {
        None => return T::default(),
        Some(Some(Ok(value))) => return value,
        Some(Some(Err(why))) => problems.push(format!("{source}: {why}")),
        Some(None) => problems.push(format!("{source} does not respond")),
    }
    T::default()
}

type Call<T> = tokio::task::JoinHandle<SourceAnswer<T>>;

fn read_node(settings: &StatsSettings) -> Call<NodeSample> {
    let (machine, now) = (settings.machine.clone(), settings.clock.now());
    spawn_blocking(move || {
        let node = node::read(&machine, now);
        match node.usage.cpu.is_some() && node.usage.memory.is_some() {
            true => Ok(node),
            false => Err("it has no numbers of the machine".to_owned()),
        }
    })
}

fn read_cgroups(
    settings: &StatsSettings,
    targets: &Arc<[PodTarget]>,
    detail: StatsDetail,
    known: &Arc<Mutex<KnownPods>>,
) -> Call<CgroupReadings> {
    let known = Arc::clone(known);
    let (fs, clock) = (settings.cgroups.clone(), settings.clock.clone());
    let kubepods: Vec<CgroupPath> = settings
        .trees
        .iter()
        .map(|tree| tree.kubepods().clone())
        .collect();
    let (targets, system) = (Arc::clone(targets), settings.system.clone());
    let machine = settings.machine.clone();
    let reads_networks = detail != StatsDetail::Usage && settings.source == UsageSource::Cgroups;
    spawn(async move {
        let runtime = system.runtime_process().await;
        let read = spawn_blocking(move || {
            let request = CgroupRequest {
                targets: &targets,
                kubepods: &kubepods,
                system: &system.find(&fs, runtime),
                all: detail == StatsDetail::Cadvisor,
                networks: reads_networks.then(|| NetworkReader::new(&fs, &machine)),
                now: &|| clock.now(),
            };
            // Only one call is in flight.
            cgroups::read(&fs, &request, &mut known.lock())
        });
        read.await.map_err(|error| error.to_string())
    })
}

fn read_root(settings: &StatsSettings) -> Call<Option<FsSample>> {
    let (root, clock) = (settings.root.clone(), settings.clock.clone());
    spawn_blocking(move || file_system(&root, &clock).map(Some))
}

fn read_logs(settings: &StatsSettings, targets: &Arc<[PodTarget]>) -> Call<LogReadings> {
    let (logs, clock) = (settings.logs.clone(), settings.clock.clone());
    let targets = Arc::clone(targets);
    spawn_blocking(move || {
        // There is no directory before the first pod.
        let fs = match logs.exists() {
            true => Some(file_system(&logs, &clock)?),
            false => None,
        };
        Ok((fs, disks::log_files(&targets), disks::pod_files(&targets)))
    })
}

async fn read_volumes(
    meter: &mut VolumeMeter,
    settings: &StatsSettings,
    targets: &[PodTarget],
    detail: StatsDetail,
) -> VolumeReadings {
    match settings.volume_period {
        Some(period) if detail == StatsDetail::Summary => {
            let measure = measurer(settings.clock.clone(), Arc::clone(&settings.metrics));
            meter.read(targets, period, &measure).await
        }
        _ => VolumeReadings::default(),
    }
}

fn file_system(path: &Path, clock: &Clock) -> SourceAnswer<FsSample> {
    let found = filesystem::read(path, clock.now());
    found.map_err(|error| format!("{}: {}", path.display(), error_text(&error)))
}

fn read_runtime_disks(settings: &StatsSettings) -> Call<RuntimeDisks> {
    let (images, clock) = (Arc::clone(&settings.images), settings.clock.clone());
    spawn(async move { unless_unimplemented(disks::of_runtime(images, clock).await) })
}

fn read_runtime(settings: &StatsSettings) -> Call<RuntimeUsage> {
    let runtime = Arc::clone(&settings.runtime);
    spawn(async move { unless_unimplemented(ask_runtime(runtime).await) })
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
