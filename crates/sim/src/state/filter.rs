//! Filters of lists.

use std::collections::BTreeMap;

use rubelet_cri::v1;

use super::{Container, Sandbox};

/// Whether `labels` contains all of `wanted`.
fn selects(wanted: &BTreeMap<String, String>, labels: &BTreeMap<String, String>) -> bool {
    wanted
        .iter()
        .all(|(key, value)| labels.get(key) == Some(value))
}

fn is_or_empty(wanted: &str, have: &str) -> bool {
    wanted.is_empty() || wanted == have
}

pub(super) fn sandbox(filter: Option<&v1::PodSandboxFilter>, sandbox: &Sandbox) -> bool {
    filter.is_none_or(|filter| {
        is_or_empty(&filter.id, &sandbox.id)
            && filter
                .state
                .is_none_or(|state| state.state() == sandbox.state())
            && selects(&filter.label_selector, &sandbox.config.labels)
    })
}

pub(super) fn container(filter: Option<&v1::ContainerFilter>, container: &Container) -> bool {
    filter.is_none_or(|filter| {
        is_or_empty(&filter.id, &container.instance.id)
            && is_or_empty(&filter.pod_sandbox_id, &container.instance.sandbox_id)
            && filter
                .state
                .is_none_or(|state| state.state() == container.state())
            && selects(&filter.label_selector, &container.config.labels)
    })
}

pub(super) fn stats(filter: Option<&v1::ContainerStatsFilter>, container: &Container) -> bool {
    filter.is_none_or(|filter| {
        is_or_empty(&filter.id, &container.instance.id)
            && is_or_empty(&filter.pod_sandbox_id, &container.instance.sandbox_id)
            && selects(&filter.label_selector, &container.config.labels)
    })
}
