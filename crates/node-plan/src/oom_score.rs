//! `oom_score_adj`: whom the kernel kills first when memory runs out.

use rubelet_api::{
    container::Container,
    pod::Pod,
    resources::{Bytes, QosClass},
};

use crate::{critical::is_node_critical, pod_resources::effective};

/// Guaranteed and node-critical pods go last.
const GUARANTEED: i64 = -997;
/// BestEffort pods go first.
const BEST_EFFORT: i64 = 1000;
/// The lowest value of a Burstable container: a Guaranteed pod that uses all memory scores less.
const BURSTABLE_MIN: i64 = BEST_EFFORT + GUARANTEED;

/// The value for one container. A Burstable container that stays below its request ends up below
/// 1000 in the kernel's sum, one that exceeds it above: `1000 - 1000 * request / capacity`. What the
/// pod itself requests beyond its containers counts in equal parts for each of them.
#[must_use]
pub fn oom_score_adj(pod: &Pod, container: &Container, memory_capacity: Bytes) -> i64 {
    if is_node_critical(pod) {
        return GUARANTEED;
    }
    match pod.spec.qos {
        QosClass::Guaranteed => GUARANTEED,
        QosClass::BestEffort => BEST_EFFORT,
        QosClass::Burstable => {
            let request = counted_request(pod, container);
            let part = u128::from(request) * 1000 / u128::from(memory_capacity.max(1));
            let part = i64::try_from(part).unwrap_or(i64::MAX);
            BEST_EFFORT
                .saturating_sub(part)
                .clamp(BURSTABLE_MIN, BEST_EFFORT - 1)
        }
    }
}

/// A sidecar counts at least what the least of the regular containers requests: it goes after those
/// that need it.
fn counted_request(pod: &Pod, container: &Container) -> Bytes {
    let requested = |one: &Container| one.resources.requests.memory.unwrap_or(0);
    let own = requested(container);
    let own = match pod.spec.sidecar(&container.name) {
        Some(_) => own.max(pod.spec.containers.iter().map(requested).min().unwrap_or(0)),
        None => own,
    };
    own.saturating_add(part_of_remainder(pod, requested))
}

/// What the pod requests beyond its containers, for each of them.
fn part_of_remainder(pod: &Pod, requested: impl Fn(&Container) -> Bytes) -> Bytes {
    let own = pod
        .spec
        .resources
        .as_ref()
        .and_then(|own| own.requests.memory);
    let count = u64::try_from(pod.spec.all_containers().count()).unwrap_or(u64::MAX);
    let remainder = own
        .unwrap_or(0)
        .saturating_sub(effective(&pod.spec, requested));
    remainder / count.max(1)
}

#[cfg(test)]
mod tests {
    use rubelet_api::{
        pod::{PodSource, RestartPolicy},
        resources::Resources,
    };

    use super::*;
    use crate::test_pods::{amounts, container, pod};

    const GIB: u64 = 1 << 30;

    #[test]
    fn the_value_follows_quality_of_service_and_request() {
        use QosClass::{BestEffort, Burstable, Guaranteed};
        for (qos, request, capacity, expected) in [
            (Guaranteed, GIB, 8 * GIB, -997),
            (BestEffort, 0, 8 * GIB, 1000),
            (Burstable, 0, 8 * GIB, 999),
            (Burstable, 1, 8 * GIB, 999),
            (Burstable, GIB, 8 * GIB, 875),
            (Burstable, 8 * GIB, 8 * GIB, 3),
            (Burstable, 80 * GIB, 8 * GIB, 3),
            (Burstable, GIB, 0, 3),
        ] {
            let mut pod = pod();
            pod.spec.qos = qos;
            let container = container("a", amounts(1, request), Default::default());
            assert_eq!(
                oom_score_adj(&pod, &container, capacity),
                expected,
                "{qos:?} {request}"
            );
        }
    }

    #[test]
    fn containers_share_what_the_pod_requests_beside_them() {
        let mut pod = pod();
        pod.spec.qos = QosClass::Burstable;
        let one = |name: &str, request| container(name, amounts(1, request), Default::default());
        pod.spec.containers = vec![one("a", GIB), one("b", 0)];
        let mut sidecar = one("s", 0);
        sidecar.restart_policy = Some(RestartPolicy::Always);
        pod.spec.init_containers = vec![sidecar];
        let scores = |pod: &Pod| {
            let all = pod.spec.all_containers();
            all.map(|one| oom_score_adj(pod, one, 10 * GIB))
                .collect::<Vec<_>>()
        };
        assert_eq!(scores(&pod), [999, 900, 999], "the sidecar, then a and b");
        pod.spec.resources = Some(Resources {
            requests: amounts(3, 4 * GIB),
            ..Default::default()
        });
        assert_eq!(scores(&pod), [900, 800, 900]);
        pod.spec.containers = vec![one("a", 2 * GIB), one("b", GIB)];
        assert_eq!(
            scores(&pod),
            [867, 767, 867],
            "a sidecar goes after what needs it"
        );
    }

    #[test]
    fn a_node_critical_pod_goes_last() {
        let mut pod = pod();
        pod.spec.priority_class = Some("system-node-critical".into());
        for (source, priority, expected) in [
            (PodSource::File, 0, -997),
            (PodSource::Http, 0, -997),
            (PodSource::Api, 0, 1000),
            (PodSource::Api, 2_000_001_000, -997),
        ] {
            pod.source = source;
            pod.spec.priority = priority;
            assert_eq!(
                oom_score_adj(&pod, &pod.spec.containers[0], GIB),
                expected,
                "{source:?}"
            );
        }
        pod.spec.priority_class = Some("system-cluster-critical".into());
        assert_eq!(oom_score_adj(&pod, &pod.spec.containers[0], GIB), 1000);
    }
}
