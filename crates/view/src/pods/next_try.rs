//! When the agent next retries to start what does not run.

use std::collections::BTreeMap;

use jiff::Timestamp;
use rubelet_api::status::ContainerState;
use rubelet_node_state::pod_board::PodEntry;
use rubelet_pod_plan::PlanReason;

/// The next retry of each container. A sandbox that can't be created keeps all containers waiting.
pub(crate) fn next_tries(entry: &PodEntry) -> BTreeMap<Box<str>, Timestamp> {
    let mut times = BTreeMap::new();
    for why in &entry.why {
        match why {
            PlanReason::BackOff(name, until) => {
                times.insert(name.clone(), *until);
            }
            PlanReason::SandboxRetry(at) => {
                let waiting = entry
                    .status
                    .all_containers()
                    .filter(|status| matches!(status.state, ContainerState::Waiting { .. }));
                times.extend(waiting.map(|status| (status.name.clone(), *at)));
            }
            _ => {}
        }
    }
    times
}
