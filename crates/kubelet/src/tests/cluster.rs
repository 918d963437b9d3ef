//! Pods of the API server: admission, preemption, deletion, and the status that the API server
//! holds.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use parking_lot::Mutex;
use rubelet_api::{
    annotations::CONFIG_SOURCE,
    pod::Pod,
    status::{Phase, PodStatus},
};
use rubelet_base::PodUid;
use rubelet_node_plan::admission::Rejection;
use rubelet_node_state::cluster_view::{ClusterView, NODE_AFFINITY, NoCluster, Preemption};
use rubelet_sim::Behavior;
use tokio::time::sleep;

use super::{
    metrics::value,
    node::{Node, seconds},
};

const APP: &str = "containers: [{name: app, image: 'app:1'}]";

/// A cluster view that admits a limited number of pods.
#[derive(Default)]
pub(super) struct FakeCluster {
    capacity: Mutex<Option<usize>>,
    /// The node's labels match pods only after the node was read again.
    stale: Mutex<bool>,
    published: Mutex<BTreeMap<PodUid, PodStatus>>,
    /// Pods whose names have this prefix never match the node.
    mismatched: Mutex<Option<&'static str>>,
    /// How often the node was read again; each read takes the longest time allowed.
    reads: Mutex<u32>,
}

impl FakeCluster {
    fn set_capacity(&self, pods: usize) {
        *self.capacity.lock() = Some(pods);
    }
}

#[async_trait]
impl ClusterView for FakeCluster {
    async fn refresh_node(&self) {
        *self.reads.lock() += 1;
        sleep(seconds(2)).await;
        *self.stale.lock() = false;
    }

    fn admit(&self, pod: &Pod, others: &[Arc<Pod>]) -> Result<(), Rejection> {
        NoCluster::default().admit(pod, others)?;
        let mismatched = *self.mismatched.lock();
        let is_mismatched = mismatched.is_some_and(|start| pod.name.name.starts_with(start));
        if *self.stale.lock() || is_mismatched {
            return Err(Rejection {
                reason: NODE_AFFINITY.into(),
                message: "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
                    .into(),
            });
        }
        match *self.capacity.lock() {
            Some(capacity) if others.len() >= capacity => Err(Rejection {
                reason: "OutOfpods".into(),
                message:
                    "Node didn't have enough resource: pods, requested: 1, used: 1, capacity: 1"
                        .into(),
            }),
            _ => Ok(()),
        }
    }

    fn preempt(&self, pod: &Pod, others: &[Arc<Pod>]) -> Option<Preemption> {
        let lesser = |other: &&Arc<Pod>| other.spec.priority < pod.spec.priority;
        let victim = others.iter().find(lesser)?;
        (pod.spec.priority >= 2_000_000_000).then(|| Preemption {
            victims: vec![victim.uid.clone()],
            resource: "pods".into(),
        })
    }

    fn published(&self, uid: &PodUid) -> Option<PodStatus> {
        self.published.lock().get(uid).cloned()
    }
}

#[tokio::test(start_paused = true)]
async fn the_node_is_read_again_for_a_pod_that_does_not_match_it() {
    let node = Node::new();
    *node.cluster.stale.lock() = true;
    node.apply("web", APP);
    node.until_running().await;
}

#[tokio::test(start_paused = true)]
async fn pods_that_do_not_match_the_node_do_not_delay_others() {
    let node = Node::new();
    node.apply("first", APP);
    node.until_running().await;
    *node.cluster.mismatched.lock() = Some("other");
    let others: Vec<_> = (0..30).map(|number| format!("other-{number}")).collect();
    for name in &others {
        node.apply(name, APP);
    }
    node.apply("web", APP);
    let took = node.until("web runs", |node| node.is_running("web")).await;
    assert!(took < seconds(2), "{took:?}");
    let failed = |node: &Node| {
        let phases = others.iter().map(|name| node.phase(name));
        phases.into_iter().all(|phase| phase == Some(Phase::Failed))
    };
    node.until("the others are rejected", failed).await;
    // Pods that arrive during a read need another read.
    let reads = *node.cluster.reads.lock();
    assert!((1..=2).contains(&reads), "{reads}");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_pod_terminates_and_stays_finished_until_removed() {
    let node = Node::new();
    node.sim
        .on_image("app:1", Behavior::runs().exiting_on_term(seconds(3), 0));
    let uid = node.apply("web", APP);
    node.change_in_api("web", |_| {});
    node.until_running().await;
    node.delete_in_api("web", 20);
    sleep(seconds(1)).await;
    let entry = node.pod("web").unwrap();
    assert!(!entry.finished);
    assert_eq!(
        entry.status.phase,
        Phase::Running,
        "its container is terminating"
    );
    let finished = |node: &Node| node.pod("web").is_some_and(|entry| entry.finished);
    node.until("the end", finished).await;
    let entry = node.pod("web").unwrap();
    assert!(entry.status.phase.is_terminal(), "{:?}", entry.status);
    assert!(node.state("web", "app").starts_with("Terminated"));
    assert_eq!(node.host.cleaned(&uid), 1);

    sleep(seconds(600)).await;
    assert_eq!(node.sim.oracle().starts(&uid, "app"), 1);
    assert!(finished(&node), "the API server was not updated yet");
    node.remove_manifest("web");
    node.until("the pod is forgotten", |node| node.pod("web").is_none())
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_deletion_can_be_shortened_while_containers_terminate() {
    let node = Node::new();
    node.sim.on_image("app:1", Behavior::runs().ignoring_term());
    let uid = node.apply("web", APP);
    node.change_in_api("web", |_| {});
    node.until_running().await;
    node.delete_in_api("web", 600);
    sleep(seconds(10)).await;
    assert!(node.sim.running(&uid, "app").is_some());
    node.delete_in_api("web", 2);
    let ended = |node: &Node| node.sim.running(&uid, "app").is_none();
    let took = node.until("the end", ended).await;
    assert!(took <= seconds(5), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn the_status_tells_which_deletion_the_node_has_seen() {
    let mut node = Node::new();
    node.sim.on_image("app:1", Behavior::runs().ignoring_term());
    node.apply("web", APP);
    node.change_in_api("web", |pod| pod.generation = 3);
    node.until_running().await;
    let tells = |node: &Node, generation: i64| {
        let status = node.pod("web").unwrap().status.clone();
        let mut conditions = status.conditions.iter();
        status.observed_generation == generation
            && conditions.all(|one| one.observed_generation == generation)
    };
    assert!(tells(&node, 3));
    node.delete_in_api("web", 600);
    node.until("the deletion", |node| tells(node, 4)).await;
    node.restart().await;
    sleep(seconds(5)).await;
    assert!(tells(&node, 4));
    node.delete_in_api("web", 300);
    node.until("the shorter one", |node| tells(node, 5)).await;
    let finished = |node: &Node| node.pod("web").is_some_and(|entry| entry.finished);
    node.until("the end", finished).await;
    assert!(tells(&node, 5));
}

#[tokio::test(start_paused = true)]
async fn a_restarted_agent_continues_deletions() {
    let mut node = Node::new();
    let uid = node.apply("web", APP);
    node.change_in_api("web", |_| {});
    node.until_running().await;
    node.kill().await;
    node.delete_in_api("web", 5);
    node.start();
    let finished = |node: &Node| node.pod("web").is_some_and(|entry| entry.finished);
    node.until("the end", finished).await;
    assert_eq!(node.sim.oracle().starts(&uid, "app"), 1);
    assert!(node.pod("web").unwrap().status.phase.is_terminal());

    node.restart().await;
    node.until("it is finished for the next one too", finished)
        .await;
    assert_eq!(node.sim.oracle().starts(&uid, "app"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_pod_with_a_forbidden_sysctl_fails_for_good() {
    let node = Node::new();
    let spec = "containers: [{name: app, image: 'app:1'}], \
                securityContext: {sysctls: [{name: net/core/somaxconn, value: '1'}]}";
    let uid = node.apply("web", spec);
    node.until("it fails", |node| {
        node.pod("web")
            .is_some_and(|entry| entry.status.phase == Phase::Failed)
    })
    .await;
    let status = node.pod("web").unwrap().status.clone();
    assert_eq!(&*status.reason, "SysctlForbidden");
    assert_eq!(
        &*status.message,
        "Pod was rejected: forbidden sysctl: \"net.core.somaxconn\" not allowlisted"
    );
    assert_eq!(node.sim.oracle().starts(&uid, "app"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_does_not_fit_fails_for_good_and_delays_no_other() {
    let node = Node::new();
    node.cluster.set_capacity(1);
    node.apply("first", APP);
    node.until_running().await;
    let uid = node.apply("second", APP);
    node.change_in_api("second", |_| {});
    let failed = |node: &Node| node.phase("second") == Some(Phase::Failed);
    node.until("the second is rejected", failed).await;
    let status = node.pod("second").unwrap().status.clone();
    assert_eq!(&*status.reason, "OutOfpods");
    assert_eq!(
        &*status.message,
        "Pod was rejected: Node didn't have enough resource: pods, requested: 1, used: 1, capacity: 1"
    );
    let rejections = "kubelet_admission_rejections_total{reason=\"OutOfpods\"}";
    assert_eq!(value(&node, rejections), 1.0);
    node.cluster.set_capacity(9);
    node.apply("third", APP);
    node.until("the third runs", |node| node.is_running("third"))
        .await;
    sleep(seconds(600)).await;
    assert!(failed(&node));
    assert_eq!(node.sim.oracle().starts(&uid, "app"), 0);

    node.delete_in_api("second", 30);
    let finished = |node: &Node| node.pod("second").is_some_and(|entry| entry.finished);
    node.until("it can be deleted", finished).await;
}

#[tokio::test(start_paused = true)]
async fn running_pods_are_not_admitted_again() {
    let mut node = Node::new();
    let uid = node.apply("web", APP);
    node.until_running().await;
    node.stop().await;
    std::fs::remove_file(node.record("web")).unwrap();
    node.cluster.set_capacity(0);
    node.start();
    node.until_running().await;
    assert_eq!(node.sim.oracle().starts(&uid, "app"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_completed_job_does_not_run_again_after_its_record_is_lost() {
    let mut node = Node::new();
    node.sim.on_image("app:1", Behavior::exits(seconds(1), 0));
    let uid = node.apply("job", &format!("restartPolicy: Never, {APP}"));
    node.change_in_api("job", |_| {});
    let done = |node: &Node| node.phase("job") == Some(Phase::Succeeded);
    node.until("the job is done", done).await;
    let status = node.pod("job").unwrap().status.clone();
    node.stop().await;
    std::fs::remove_file(node.record("job")).unwrap();
    for sandbox in node.sim.sandboxes(&uid) {
        node.sim.remove_sandbox_externally(&sandbox);
    }
    let uid_of_job = PodUid::from(uid.clone());
    let published = || node.cluster.published.lock();
    published().insert(uid_of_job, status);
    node.start();
    sleep(seconds(600)).await;
    assert!(done(&node));
    assert_eq!(node.sim.oracle().starts(&uid, "app"), 1);
}

/// How many pods were preempted.
fn preemptions(node: &Node) -> f64 {
    value(node, "kubelet_preemptions{preemption_signal=\"pods\"}")
}

#[tokio::test(start_paused = true)]
async fn a_critical_pod_starts_once_the_pod_it_preempts_has_ended() {
    let node = Node::new();
    node.cluster.set_capacity(1);
    let term = Behavior::runs().exiting_on_term(seconds(7), 0);
    node.sim.on_image("app:1", term);
    let lesser = node.apply(
        "lesser",
        &format!("terminationGracePeriodSeconds: 20, {APP}"),
    );
    node.change_in_api("lesser", |_| {});
    node.until_running().await;

    let critical =
        "priorityClassName: system-node-critical, containers: [{name: app, image: 'app:2'}]";
    let uid = node.apply("critical", critical);
    sleep(seconds(5)).await;
    let status = node.pod("lesser").unwrap().status.clone();
    assert_eq!(status.phase, Phase::Running, "its container is terminating");
    assert_eq!(node.phase("critical"), Some(Phase::Pending));
    assert_eq!(node.sim.oracle().starts(&uid, "app"), 0);
    let condition = status.condition("DisruptionTarget").unwrap();
    assert_eq!(&*condition.reason, "TerminationByKubelet");

    // An ordinary pod is not admitted in between and does not take the freed capacity.
    node.apply("late", APP);
    node.change_in_api("late", |_| {});
    let took = node
        .until("the critical one runs", |node| node.is_running("critical"))
        .await;
    assert!(took <= seconds(5), "{took:?}");
    let status = node.pod("lesser").unwrap().status.clone();
    assert_eq!(status.phase, Phase::Failed);
    assert_eq!(&*status.reason, "Preempting");
    assert_eq!(&*status.message, "Preempted in order to admit critical pod");
    assert!(status.condition("DisruptionTarget").is_some());
    node.until("the late one is rejected", |node| {
        node.phase("late") == Some(Phase::Failed)
    })
    .await;
    let events = node.events("lesser");
    let reported = "Warning Preempting: Preempted in order to admit critical pod";
    let count = events
        .iter()
        .filter(|event| event.contains("Preempting"))
        .count();
    assert_eq!(count, 1, "{reported} in {events:?}");
    assert_eq!(preemptions(&node), 1.0);
    sleep(seconds(600)).await;
    assert_eq!(
        node.sim.oracle().starts(&lesser, "app"),
        1,
        "it does not start again"
    );
}

/// A pod of the API server that takes 20 s to terminate, and a critical static pod that waits for it.
async fn preempted() -> (Node, String) {
    let node = Node::new();
    node.cluster.set_capacity(1);
    node.sim.on_image("app:1", Behavior::runs().ignoring_term());
    node.apply(
        "lesser",
        &format!("terminationGracePeriodSeconds: 20, {APP}"),
    );
    node.change_in_api("lesser", |pod| {
        let source = pod.annotations.get_mut(CONFIG_SOURCE).unwrap();
        *source = "api".into();
    });
    node.until_running().await;
    let critical =
        "priorityClassName: system-node-critical, containers: [{name: app, image: 'app:2'}]";
    let critical = node.apply("critical", critical);
    sleep(seconds(5)).await;
    (node, critical)
}

/// The critical pod starts once the other has ended, and not before.
async fn until_replaced(node: &Node, critical: &str) {
    node.until("the lesser one has ended", |node| {
        let has_ended = node.phase("lesser") == Some(Phase::Failed);
        let starts = node.sim.oracle().starts(critical, "app");
        assert!(has_ended || starts == 0, "both run");
        has_ended
    })
    .await;
    let took = node
        .until("the critical one runs", |node| node.is_running("critical"))
        .await;
    assert!(took <= seconds(2), "{took:?}");
    assert_eq!(&*node.pod("lesser").unwrap().status.reason, "Preempting");
    let text = node.metrics.render();
    assert!(
        !text.contains("kubelet_preemptions{"),
        "it was counted by the previous agent"
    );
}

#[tokio::test(start_paused = true)]
async fn a_preemption_completes_after_an_agent_restart() {
    let (mut node, critical) = preempted().await;
    node.restart().await;
    until_replaced(&node, &critical).await;
}

#[tokio::test(start_paused = true)]
async fn a_new_static_pod_waits_for_the_first_list_of_the_api_server() {
    let (mut node, critical) = preempted().await;
    node.kill().await;
    let lesser = node.hide_in_api("lesser");
    node.start();
    sleep(seconds(8)).await;
    assert_eq!(node.sim.oracle().starts(&critical, "app"), 0);
    node.show_in_api(lesser);
    until_replaced(&node, &critical).await;
}
