//! What the containers of a pod need together.

use crate::{container::Container, pod::RestartPolicy};

/// The most that runs of a pod at any time, of what `take` takes of each container: all regular
/// containers and sidecars, or an init container beside the sidecars before it.
///
/// Source of the rule: `AggregateContainerRequests` in `k8s.io/component-helpers/resource` of
/// Kubernetes 1.36.
pub fn aggregate(
    init: &[Container],
    regular: &[Container],
    take: impl Fn(&Container) -> u64,
) -> u64 {
    let mut sidecars = 0u64;
    let mut starting = 0u64;
    for container in init {
        let amount = take(container);
        if container.restart_policy == Some(RestartPolicy::Always) {
            sidecars = sidecars.saturating_add(amount);
            starting = starting.max(sidecars);
        } else {
            starting = starting.max(sidecars.saturating_add(amount));
        }
    }
    let running = regular.iter().fold(sidecars, |sum, container| {
        sum.saturating_add(take(container))
    });
    running.max(starting)
}
