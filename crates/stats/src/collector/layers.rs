//! Writable layers of containers, which only the runtime knows. It measures them from time to time, and takes long to
//! tell: containerd asks a process of each container. So what it told is shown while newer sizes are on their way.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use rubelet_cri::{CriError, RuntimeService, v1};
use tokio::{task::spawn, time::Instant};

use super::answer::{PATIENCE, SourceAnswer, unless_unimplemented};
use crate::{
    from_cri::{LayerUsage, RuntimeUsage},
    in_flight::InFlight,
    target::PodTarget,
};

/// The age from which newer sizes are asked for. containerd measures layers as often (`stats_collect_period`).
const AGING: Duration = Duration::from_secs(10);
/// The age from which sizes are not shown any more.
const OLD: Duration = Duration::from_secs(90);

/// Layers by the identifier of the container.
pub(super) type Layers = HashMap<String, LayerUsage>;

/// What the runtime told last.
struct LayerAnswer {
    at: Instant,
    /// The containers that ran then.
    containers: HashSet<Arc<str>>,
    layers: SourceAnswer<Arc<Layers>>,
}

/// The runtime as a source of layers.
#[derive(Default)]
pub(super) struct LayerSource {
    call: InFlight<()>,
    last: Arc<Mutex<Option<Arc<LayerAnswer>>>>,
}

/// What a request does.
#[derive(Debug, PartialEq, Eq)]
enum LayerRequest {
    /// It takes what is known.
    Take,
    /// It takes what is known, and asks for the next request.
    AskForNext,
    /// It waits for the runtime.
    Wait,
}

impl LayerSource {
    /// The layers, some seconds old; of containers that were not there then, new ones. `None` if the runtime does
    /// not respond.
    pub(super) async fn read(
        &mut self,
        runtime: &Arc<dyn RuntimeService>,
        targets: &[PodTarget],
    ) -> Option<SourceAnswer<Arc<Layers>>> {
        let all = targets.iter().flat_map(|pod| &pod.containers);
        let containers: HashSet<_> = all.map(|one| Arc::clone(&one.id)).collect();
        let last = self.last.lock().clone();
        let what = request(last.as_deref(), &containers);
        let start = || {
            let (runtime, last) = (Arc::clone(runtime), Arc::clone(&self.last));
            spawn(async move {
                let answer = unless_unimplemented(ask(runtime).await);
                *last.lock() = Some(Arc::new(LayerAnswer {
                    at: Instant::now(),
                    containers,
                    layers: answer,
                }));
            })
        };
        match what {
            LayerRequest::Take => {}
            LayerRequest::AskForNext => self.call.begin(start),
            LayerRequest::Wait => self.call.ask(PATIENCE, start).await?,
        }
        let last = self.last.lock().clone();
        last.map(|answer| answer.layers.clone())
    }
}

fn request(last: Option<&LayerAnswer>, containers: &HashSet<Arc<str>>) -> LayerRequest {
    let Some(last) = last else {
        return LayerRequest::Wait;
    };
    let age = last.at.elapsed();
    if age >= OLD || last.layers.is_err() || !containers.is_subset(&last.containers) {
        return LayerRequest::Wait;
    }
    match age >= AGING {
        true => LayerRequest::AskForNext,
        false => LayerRequest::Take,
    }
}

async fn ask(runtime: Arc<dyn RuntimeService>) -> Result<Arc<Layers>, CriError> {
    let request = v1::ListContainerStatsRequest { filter: None };
    let response = runtime.list_container_stats(request).await?;
    let all = RuntimeUsage::of_containers(response.stats).containers;
    let layers = all
        .into_iter()
        .filter_map(|(id, usage)| Some((id, usage.layer?)));
    Ok(Arc::new(layers.collect()))
}
