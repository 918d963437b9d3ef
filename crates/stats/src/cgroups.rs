//! Reads the cgroups of pods and containers.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZero,
    panic::resume_unwind,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use parking_lot::Mutex;
use rubelet_host::{CgroupFs, cgroup::StatsScope};

use crate::{
    cgroup_request::{CgroupReadings, CgroupRequest},
    filesystem,
    known_pods::KnownPods,
};

/// Threads that read at the same time: one request is soon done, and leaves processors to the pods.
const MOST_THREADS: usize = 4;
/// Pods that one thread reads sooner than another one could be started.
const FEW_PODS: usize = 16;

/// Readings of some pods, and where they are.
#[derive(Default)]
struct PodReadings {
    readings: CgroupReadings,
    known: KnownPods,
}

impl PodReadings {
    /// Adds those of other pods.
    fn extend(&mut self, other: Self) {
        self.known.extend(other.known);
        let (readings, other) = (&mut self.readings, other.readings);
        readings.pods.extend(other.pods);
        readings.containers.extend(other.containers);
        readings.networks.extend(other.networks);
    }
}

/// Reads cgroups; those that are gone, or belong to another machine, are omitted. `known` is where the last request found
/// pods. Blocks.
pub(crate) fn read(
    fs: &CgroupFs,
    request: &CgroupRequest<'_>,
    known: &mut KnownPods,
) -> CgroupReadings {
    let before = Mutex::new(std::mem::take(known));
    let next = AtomicUsize::new(0);
    let read_some = || read_pods(request, fs, &next, &before);
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let most = cores.min(MOST_THREADS);
    let threads = request.targets.len().div_ceil(FEW_PODS).min(most);
    let all = thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(read_some)).collect();
        let mut all = read_some();
        for other in others {
            // A panic there is one here.
            all.extend(other.join().unwrap_or_else(|cause| resume_unwind(cause)));
        }
        all
    });
    *known = all.known;
    let mut readings = all.readings;
    let reader = &mut fs.stats_reader();
    let system = request.system.iter();
    readings.system = system
        .filter_map(|(name, path)| {
            Some((*name, request.read_one(reader, path, StatsScope::Usage)?))
        })
        .collect();
    let mut kubepods = request.kubepods.iter();
    readings.kubepods = kubepods.find_map(|path| request.read_one(reader, path, StatsScope::Usage));
    readings.devices = devices(&readings);
    readings
}

/// Reads pods, beginning with that of the number `next`, until none is left: others that do so take the next ones, and a
/// thread that has to wait for a processor holds up the pod that it reads only.
fn read_pods(
    request: &CgroupRequest<'_>,
    fs: &CgroupFs,
    next: &AtomicUsize,
    before: &Mutex<KnownPods>,
) -> PodReadings {
    let mut all = PodReadings::default();
    let mut reader = fs.stats_reader();
    let take = || request.targets.get(next.fetch_add(1, Ordering::Relaxed));
    while let Some(pod) = take() {
        let known = before.lock().remove(&pod.uid);
        let known = request.read_pod(fs, &mut reader, pod, known, &mut all.readings);
        all.known
            .extend(known.map(|known| (Arc::clone(&pod.uid), known)));
    }
    all
}

/// Names such as `/dev/vda`. A device that is gone has none.
fn devices(readings: &CgroupReadings) -> BTreeMap<(u32, u32), Box<str>> {
    let cgroups = readings.pods.values().chain(readings.containers.values());
    let all = cgroups.chain(&readings.kubepods);
    let numbers: BTreeSet<(u32, u32)> = all
        .flat_map(|cgroup| &cgroup.stats.io)
        .map(|io| (io.major, io.minor))
        .collect();
    let name = |(major, minor): (u32, u32)| {
        let name = filesystem::block_device(major, minor)?;
        Some(((major, minor), name))
    };
    numbers.into_iter().filter_map(name).collect()
}
