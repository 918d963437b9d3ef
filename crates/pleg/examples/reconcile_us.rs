//! Measures a relist without changes for 1000 pods with 3 containers each; prints the median in
//! microseconds. The time in which the simulated runtime builds its responses does not count.

use std::{
    io::{self, Write},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use rubelet_cri::{CriResult, RuntimeService, v1};
use rubelet_node_state::{clock::Clock, heartbeat::Heartbeat, metrics::NodeMetrics};
use rubelet_pleg::{PID_QUERY_IDLE, PlegSettings, PlegTask};
use rubelet_sim::Sim;
use tokio::{task::yield_now, time::Instant};

const PODS: usize = 1000;
const CONTAINERS: usize = 3;
/// Number of measured relists, after some that still lead to inspections.
const RELISTS: usize = 200;
/// The pause between two relists.
const PERIOD: Duration = Duration::from_millis(2);

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    let sim = Sim::new();
    sim.populate(PODS, CONTAINERS);
    let model = Arc::new(CountingRuntime {
        inner: sim.runtime(),
        inspected: AtomicU64::new(0),
        listing_ns: AtomicU64::new(0),
    });
    let metrics = NodeMetrics::new();
    let settings = PlegSettings {
        relist_period: PERIOD,
        events: false,
        pid_query_idle: PID_QUERY_IDLE,
    };
    let runtime: Arc<dyn RuntimeService> = model.clone();
    let (task, _handle) = PlegTask::new(
        runtime,
        settings,
        None,
        Heartbeat::new(),
        Clock::system(),
        Arc::clone(&metrics),
    );
    tokio::spawn(task.run());

    let relists = &metrics.pleg.relist_duration;
    let mut times = Vec::with_capacity(RELISTS);
    while times.len() < RELISTS {
        let count = relists.get_sample_count();
        let (whole, listing) = (relists.get_sample_sum(), model.listing());
        let inspected = model.inspected.load(Ordering::Relaxed);
        while relists.get_sample_count() == count {
            yield_now().await;
        }
        let settled = count > 0 && inspected == model.inspected.load(Ordering::Relaxed);
        if settled && relists.get_sample_count() == count + 1 {
            times.push(relists.get_sample_sum() - whole - (model.listing() - listing));
        }
    }
    times.sort_by(f64::total_cmp);
    writeln!(io::stdout(), "{:.1}", times[RELISTS / 2] * 1e6)
}

/// The simulated runtime, which counts PLEG's calls.
struct CountingRuntime {
    inner: Arc<dyn RuntimeService>,
    inspected: AtomicU64,
    listing_ns: AtomicU64,
}

impl CountingRuntime {
    /// The time in seconds that lists have taken so far.
    fn listing(&self) -> f64 {
        Duration::from_nanos(self.listing_ns.load(Ordering::Relaxed)).as_secs_f64()
    }

    async fn timed<T>(&self, list: impl Future<Output = T>) -> T {
        let begin = Instant::now();
        let answer = list.await;
        let took = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.listing_ns.fetch_add(took, Ordering::Relaxed);
        answer
    }
}

#[async_trait]
impl RuntimeService for CountingRuntime {
    async fn list_pod_sandbox(
        &self,
        request: v1::ListPodSandboxRequest,
    ) -> CriResult<v1::ListPodSandboxResponse> {
        self.timed(self.inner.list_pod_sandbox(request)).await
    }

    async fn list_containers(
        &self,
        request: v1::ListContainersRequest,
    ) -> CriResult<v1::ListContainersResponse> {
        self.timed(self.inner.list_containers(request)).await
    }

    async fn pod_sandbox_status(
        &self,
        request: v1::PodSandboxStatusRequest,
    ) -> CriResult<v1::PodSandboxStatusResponse> {
        self.inspected.fetch_add(1, Ordering::Relaxed);
        self.inner.pod_sandbox_status(request).await
    }

    async fn container_status(
        &self,
        request: v1::ContainerStatusRequest,
    ) -> CriResult<v1::ContainerStatusResponse> {
        self.inner.container_status(request).await
    }
}
