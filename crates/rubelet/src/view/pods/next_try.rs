//! When the agent next tries to start what does not run.

use std::collections::BTreeMap;

use jiff::Timestamp;
use rubelet_api::status::ContainerState;
use rubelet_kubelet::pod_task::PodEntry;
use rubelet_pod_plan::Why;

/// The times of the next tries by containers. A sandbox that can't be made keeps all containers
/// waiting.
pub(in crate::view) fn next_tries(entry: &PodEntry) -> BTreeMap<Box<str>, Timestamp> {
    let mut times = BTreeMap::new();
    for why in &entry.why {
        match why {
            Why::BackOff(name, until) => {
                times.insert(name.clone(), *until);
            }
            Why::SandboxRetry(at) => {
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
