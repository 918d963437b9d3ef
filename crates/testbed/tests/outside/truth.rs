//! Containers of the runtime, in a form that can be compared over time.

use std::collections::BTreeMap;

use rubelet_cri::{RuntimeService, v1};
use rubelet_testbed::cri_truth::Container;
use rubelet_testbed::{Agent, CriTruth};

use super::TIMEOUT;

/// All containers by pod and name; more than one instance of a container is an error of the agent
/// in most tests, so instances are a list.
pub(crate) type Instances = BTreeMap<(String, String), Vec<Instance>>;

/// One instance of a container.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Instance {
    pub(crate) id: String,
    pub(crate) sandbox: String,
    pub(crate) attempt: u32,
    pub(crate) running: bool,
}

/// All containers of the runtime, running or not.
pub(crate) fn instances(truth: &CriTruth) -> Instances {
    collect(truth.containers().unwrap())
}

/// The running containers.
pub(crate) fn running(truth: &CriTruth) -> Instances {
    let mut all = truth.containers().unwrap();
    all.retain(Container::is_running);
    collect(all)
}

fn collect(containers: Vec<Container>) -> Instances {
    let mut found = Instances::new();
    for container in containers {
        let running = container.is_running();
        let instance = Instance {
            id: container.id,
            sandbox: container.sandbox,
            attempt: container.attempt,
            running,
        };
        let place = found.entry((container.pod, container.name)).or_default();
        place.push(instance);
        place.sort();
    }
    found
}

/// Whether the container's start was interrupted, so that it never ran.
pub(crate) fn never_ran(truth: &CriTruth, id: &str) -> bool {
    let request = v1::ContainerStatusRequest {
        container_id: id.to_owned(),
        verbose: false,
    };
    let answer = truth.block_on(truth.client().container_status(request));
    let status = answer.unwrap().status.unwrap();
    status.reason == "StartError" && status.started_at == 0
}

/// Waits until the runtime has neither sandboxes nor containers.
pub(crate) fn wait_empty(agent: &Agent, truth: &CriTruth) {
    agent
        .wait_for(
            "the runtime has no sandbox and no container",
            TIMEOUT,
            |_| Ok((truth.sandboxes()?.is_empty() && truth.containers()?.is_empty()).then_some(())),
        )
        .unwrap();
}
