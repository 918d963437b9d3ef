//! The order of inspections when more are due than there are slots.

use std::collections::{BTreeMap, BTreeSet};

use rubelet_base::PodName;
use rubelet_cri::{Timeouts, v1::ContainerEventType as Kind};
use rubelet_image_pull::images::PullParallelism;
use rubelet_pleg::{FAST_SLOTS, LifecycleKind, MAX_INSPECTIONS};
use rubelet_sim::{EntryKind, EventFault, Subject};
use tokio::time::{Instant, sleep};

use super::queries::millis;
use crate::tests::node::{Node, seconds};

/// A node with this number of pods without tasks, on a slow runtime. All containers but one have
/// exited without an event, so only a list finds the exits.
async fn node_with_unreported_exits(pods: usize) -> Node {
    let mut node = Node::stopped(PullParallelism::Unlimited, Timeouts::default());
    node.sim.populate(pods, 1);
    node.set_waiting(true);
    node.start();
    sleep(seconds(20)).await;
    node.sim.set_latency_of("ContainerStatus", millis(300));
    let lost = EventFault::lost().of(Kind::ContainerStoppedEvent);
    node.sim.inject_event(lost.always());
    for container in node.sim.containers().iter().take(pods - 1) {
        node.sim.kill_container(&container.id, 1, "");
    }
    node.sim.clear_faults();
    node
}

#[tokio::test(start_paused = true)]
async fn an_exit_event_is_inspected_before_exits_found_by_a_list() {
    let node = node_with_unreported_exits(200).await;
    node.agent().pleg().relist_now();
    sleep(millis(50)).await;
    let last = node.sim.containers().pop().expect("it is there").id;
    node.sim.kill_container(&last, 1, "");
    let took = node.until_death_of(&last).await;
    // The next slot is free after 300 ms, and the inspection takes as long.
    assert!(took <= millis(650), "{took:?}");
    let reported = |node: &Node| {
        let all = node.sim.containers();
        let ends = all
            .iter()
            .filter(|of| node.lifecycle_count(&of.id, LifecycleKind::Died) > 0);
        ends.count()
    };
    assert!(reported(&node) < 60, "the others wait");
    sleep(seconds(5)).await;
    assert_eq!(reported(&node), 200);
}

#[tokio::test(start_paused = true)]
async fn a_pod_whose_task_waits_is_inspected_first() {
    let node = node_with_unreported_exits(200).await;
    let pleg = node.agent().pleg();
    pleg.relist_now();
    sleep(millis(50)).await;
    let (uid, after) = (
        node.sim.containers()[150].pod_uid.as_str().into(),
        pleg.now(),
    );
    let mut seen = pleg.observe(&uid, &PodName::new("default", "web"));
    let began = Instant::now();
    let seen = pleg.newer_than(&uid, &mut seen, after).await;
    assert!(seen.seq > after);
    assert!(began.elapsed() <= millis(650), "{:?}", began.elapsed());
}

/// I7.
#[tokio::test(start_paused = true)]
async fn at_most_sixteen_pods_are_inspected_at_a_time() {
    let node = node_with_unreported_exits(120).await;
    let mark = node.sim.oracle().mark();
    node.agent().pleg().relist_now();
    sleep(seconds(5)).await;
    let (most, read) = concurrent_reads(&node, mark);
    assert_eq!((most, read), (FAST_SLOTS, 119));
}

/// I7.
#[tokio::test(start_paused = true)]
async fn hung_inspections_are_bounded_and_others_go_ahead() {
    let mut node = Node::stopped(PullParallelism::Unlimited, Timeouts::default());
    node.sim.populate(320, 1);
    node.set_waiting(true);
    node.start();
    sleep(seconds(20)).await;
    let mark = node.sim.oracle().mark();
    let containers = node.sim.containers();
    let (good, bad) = containers.split_at(20);
    let hangs: Vec<_> = bad
        .iter()
        .map(|of| {
            let hang = node.sim.hang("ContainerStatus", Subject::pod(&of.pod_uid));
            node.sim.kill_container(&of.id, 1, "");
            hang
        })
        .collect();
    // Each of them occupies a fast slot for a second, once.
    sleep(seconds(20)).await;
    for of in good {
        sleep(seconds(3)).await;
        node.sim.kill_container(&of.id, 1, "");
        let took = node.until_death_of(&of.id).await;
        assert!(took <= millis(50), "{took:?}");
    }
    let (most, read) = concurrent_reads(&node, mark);
    assert_eq!((most, read), (MAX_INSPECTIONS, 320));
    drop(hangs);
    let reported = |node: &Node| {
        let mut all = bad.iter();
        all.all(|of| node.lifecycle_count(&of.id, LifecycleKind::Died) == 1)
    };
    let took = node.until("all exits are reported", reported).await;
    assert!(took <= seconds(6), "{took:?}");
}

/// The largest number of pods whose container statuses were read at the same time, and the number
/// of pods that were read. Checks that no pod was read twice at a time.
fn concurrent_reads(node: &Node, since: usize) -> (usize, usize) {
    let (mut reads, mut most, mut read) = (BTreeMap::new(), 0, BTreeSet::new());
    for entry in &node.sim.oracle().entries()[since..] {
        match &entry.what {
            EntryKind::CallBegan {
                number,
                call: "ContainerStatus",
                subject,
            } => {
                let pod = subject.pod_uid.clone().expect("it is there");
                assert!(reads.values().all(|other| *other != pod), "{subject} twice");
                read.insert(pod.clone());
                reads.insert(*number, pod);
            }
            EntryKind::CallEnded { number, .. } => {
                reads.remove(number);
            }
            _ => {}
        }
        most = most.max(reads.len());
    }
    (most, read.len())
}
