//! Tests of `pod_resources`.

use rubelet_api::{
    pod::RestartPolicy,
    resources::{ResourceAmounts, Resources},
};

use super::*;
use crate::test_pods::{amounts, container, pod};

const GIB: u64 = 1 << 30;

#[test]
fn init_containers_count_by_the_largest_and_others_by_the_sum() {
    let mut pod = pod();
    pod.spec.containers = vec![
        container("a", amounts(100, 10), amounts(200, 20)),
        container("b", amounts(50, 5), amounts(50, 5)),
    ];
    pod.spec.init_containers = vec![
        container("i", amounts(120, 90), amounts(400, 90)),
        container("j", amounts(10, 1), amounts(10, 1)),
    ];
    let totals = totals(&pod);
    assert_eq!(totals.cpu_request, 150);
    assert_eq!(totals.memory_request, 90);
    assert_eq!(totals.cpu_limit, Some(400));
    assert_eq!(totals.memory_limit, Some(90));
}

#[test]
fn sidecars_run_beside_containers_and_beside_the_init_containers_after_them() {
    let mut pod = pod();
    let of = |cpu| container("x", amounts(cpu, 1), amounts(cpu, 1));
    let sidecar = |cpu| Container {
        restart_policy: Some(RestartPolicy::Always),
        ..of(cpu)
    };
    pod.spec.containers = vec![of(100), of(50)];
    for (init, expected) in [
        (vec![sidecar(10), sidecar(20)], 180),
        (vec![of(300), sidecar(10)], 300),
        (vec![sidecar(10), of(300), sidecar(20)], 310),
    ] {
        pod.spec.init_containers = init;
        let totals = totals(&pod);
        assert_eq!(totals.cpu_request, expected);
        assert_eq!(totals.cpu_limit, Some(expected));
    }
    pod.spec.overhead = amounts(5, 7);
    let totals = totals(&pod);
    assert_eq!((totals.cpu_request, totals.cpu_limit), (315, Some(315)));
    assert_eq!(totals.memory_request, 4 + 7);
}

#[test]
fn one_container_without_a_limit_leaves_the_pod_without_one() {
    let mut pod = pod();
    pod.spec.containers = vec![
        container("a", amounts(100, 10), amounts(200, 20)),
        container(
            "b",
            amounts(50, 5),
            ResourceAmounts {
                cpu: Some(50),
                ..Default::default()
            },
        ),
    ];
    let totals = totals(&pod);
    assert_eq!(totals.cpu_limit, Some(250));
    assert_eq!(totals.memory_limit, None);
}

#[test]
fn huge_pages_of_one_size_add_up() {
    let mut pod = pod();
    let with = |pages: &[(u64, u64)]| ResourceAmounts {
        hugepages: pages.to_vec(),
        ..Default::default()
    };
    pod.spec.containers = vec![
        container(
            "a",
            with(&[(2 << 20, 4 << 20)]),
            with(&[(2 << 20, 4 << 20)]),
        ),
        container(
            "b",
            with(&[(2 << 20, 2 << 20), (GIB, GIB)]),
            with(&[(2 << 20, 2 << 20), (GIB, GIB)]),
        ),
    ];
    pod.spec.init_containers = vec![container(
        "i",
        with(&[(2 << 20, 5 << 20)]),
        with(&[(2 << 20, 5 << 20)]),
    )];
    assert_eq!(
        totals(&pod).hugepages,
        BTreeMap::from([(2 << 20, 6 << 20), (GIB, GIB)])
    );
}

#[test]
fn a_memory_volume_is_bounded_by_the_pod_and_by_the_node() {
    let mut pod = pod();
    assert_eq!(memory_volume_bound(&pod, 8 * GIB), 8 * GIB);
    pod.spec.containers = vec![container("a", amounts(1, GIB), amounts(1, GIB))];
    assert_eq!(memory_volume_bound(&pod, 8 * GIB), GIB);
    assert_eq!(memory_volume_bound(&pod, GIB / 2), GIB / 2);
}

#[test]
fn what_the_pod_has_itself_counts_instead_of_its_containers() {
    let mut pod = pod();
    pod.spec.containers = vec![
        container("a", amounts(100, 10), amounts(200, 20)),
        container("b", Default::default(), Default::default()),
    ];
    pod.spec.overhead = amounts(5, 7);
    pod.spec.resources = Some(Resources {
        requests: ResourceAmounts {
            hugepages: vec![(2 << 20, 4 << 20)],
            ..amounts(300, 40)
        },
        limits: ResourceAmounts {
            cpu: Some(400),
            ..ResourceAmounts::default()
        },
    });
    let totals = totals(&pod);
    assert_eq!((totals.cpu_request, totals.memory_request), (305, 47));
    assert_eq!(totals.cpu_limit, Some(405));
    assert_eq!(totals.memory_limit, None, "neither the pod nor b has one");
    assert_eq!(totals.hugepages, BTreeMap::from([(2 << 20, 4 << 20)]));
    let requests = crate::admission::pod_requests(&pod);
    assert_eq!((requests.cpu, requests.memory), (305, 47));
    assert_eq!(requests.scalars["hugepages-2Mi"], 4 << 20);
}
