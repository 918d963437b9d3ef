//! The order in which a pod's containers are stopped, and the grace period of each.

use std::time::Duration;

use rubelet_cri::CriErrorKind;
use rubelet_sim::{Behavior, Exec, Fault, Subject};
use tokio::time::sleep;

use super::node::{Node, seconds};

/// Seconds that the preStop hook takes, and seconds from SIGTERM to the exit; `None` if the
/// container ignores SIGTERM.
type StopBehavior = (u64, Option<u64>);

/// A pod with two sidecars, `first` and `second`, and two regular containers, `a` and `b`.
struct SidecarPod {
    node: Node,
    uid: String,
    asked: Duration,
}

const NAMES: [&str; 4] = ["first", "second", "a", "b"];

impl SidecarPod {
    /// Starts the pod, whose containers have these stop behaviors.
    async fn new(grace: u64, behaviors: [StopBehavior; 4]) -> Self {
        let node = Node::new();
        for (name, (_, term)) in NAMES.iter().zip(behaviors) {
            let behavior = match term {
                Some(takes) => Behavior::runs().exiting_on_term(seconds(takes), 0),
                None => Behavior::runs().ignoring_term(),
            };
            node.sim.on_container(name, behavior);
        }
        node.sim.on_exec(move |instance, _| {
            let of = NAMES.iter().position(|name| *name == instance.name);
            Exec::exits(0).after(seconds(behaviors[of.expect("one of them")].0))
        });
        let container = |index: usize, more: &str| {
            let hook = match behaviors[index].0 {
                0 => "",
                _ => "lifecycle: {preStop: {exec: {command: [bye]}}}, ",
            };
            let name = NAMES[index];
            format!("{{name: {name}, image: 'app:1', {hook}{more}}}")
        };
        let sidecar = |index| container(index, "restartPolicy: Always");
        let spec = format!(
            "terminationGracePeriodSeconds: {grace}, initContainers: [{}, {}], \
             containers: [{}, {}]",
            sidecar(0),
            sidecar(1),
            container(2, ""),
            container(3, "")
        );
        let uid = node.apply("web", &spec);
        node.until_running().await;
        sleep(seconds(5)).await;
        let asked = node.uptime();
        Self { node, uid, asked }
    }

    fn remove(&mut self) {
        self.asked = self.node.uptime();
        self.node.remove_manifest("web");
    }

    async fn until_gone(&self) {
        let gone = |node: &Node| node.is_gone(&self.uid);
        self.node.until("the end", gone).await;
    }

    /// Whole seconds from the removal to SIGTERM and to the exit, for each container.
    fn times(&self) -> [(u64, u64); 4] {
        NAMES.map(|name| {
            let terms = self.node.term_times(&self.uid, name);
            let ends = self.node.exit_times(&self.uid, name);
            assert_eq!(
                (terms.len(), ends.len()),
                (1, 1),
                "{}",
                self.node.failure_report()
            );
            let since = |at: Duration| (at - self.asked + Duration::from_millis(20)).as_secs();
            (since(terms[0]), since(ends[0]))
        })
    }
}

#[tokio::test(start_paused = true)]
async fn sidecars_end_after_regular_containers_in_reverse_order() {
    let mut pod =
        SidecarPod::new(60, [(0, Some(1)), (0, Some(2)), (0, Some(3)), (0, Some(5))]).await;
    pod.remove();
    pod.until_gone().await;
    assert_eq!(pod.times(), [(7, 8), (5, 7), (0, 3), (0, 5)]);
    assert_eq!(
        pod.node.sim.oracle().exits(&pod.uid, "first"),
        [(0, "Completed")]
    );
}

#[tokio::test(start_paused = true)]
async fn pre_stop_hooks_of_sidecars_run_at_once_and_only_sigterm_waits() {
    let mut pod =
        SidecarPod::new(60, [(4, Some(1)), (9, Some(2)), (3, Some(1)), (0, Some(5))]).await;
    pod.remove();
    pod.until_gone().await;
    // The second sidecar is next after 5 s, but its hook takes 9 s.
    assert_eq!(pod.times(), [(11, 12), (9, 11), (3, 4), (0, 5)]);
    for name in ["first", "second", "a"] {
        let execs = pod.node.sim.oracle().execs(&pod.uid, name);
        assert_eq!(execs.len(), 1);
        assert!(
            execs[0].began - pod.asked < Duration::from_millis(20),
            "{name}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn sidecars_get_the_grace_that_regular_containers_leave() {
    let mut pod = SidecarPod::new(30, [(0, None), (0, Some(1)), (0, Some(20)), (0, Some(1))]).await;
    pod.remove();
    pod.until_gone().await;
    assert_eq!(pod.times(), [(21, 30), (20, 21), (0, 20), (0, 1)]);
}

#[tokio::test(start_paused = true)]
async fn sidecars_are_killed_within_two_seconds_after_the_grace() {
    let mut pod = SidecarPod::new(10, [(0, None), (0, Some(1)), (0, None), (0, Some(1))]).await;
    pod.remove();
    pod.until_gone().await;
    assert_eq!(pod.times(), [(10, 12), (10, 11), (0, 10), (0, 1)]);
}

#[tokio::test(start_paused = true)]
async fn an_operator_can_shorten_the_grace_during_termination() {
    let mut pod = SidecarPod::new(600, [(0, None), (0, None), (0, None), (0, Some(1))]).await;
    pod.remove();
    sleep(seconds(20)).await;
    for grace in [40, 15, 90] {
        pod.node
            .ask("web", |intents| intents.grace = Some(seconds(grace)))
            .await;
        sleep(seconds(1)).await;
    }
    pod.until_gone().await;
    // 15 s from second 21 on; the later request is longer, and a grace period does not grow.
    assert_eq!(pod.times(), [(36, 38), (36, 38), (0, 36), (0, 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_grace_of_zero_kills_but_not_within_two_seconds_of_sigterm() {
    let mut pod = SidecarPod::new(600, [(0, None), (300, None), (0, None), (0, None)]).await;
    pod.remove();
    sleep(seconds(20)).await;
    pod.node
        .ask("web", |intents| intents.grace = Some(Duration::ZERO))
        .await;
    pod.until_gone().await;
    assert_eq!(pod.times(), [(20, 22), (20, 22), (0, 20), (0, 20)]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_stop_is_retried_although_sidecars_wait() {
    let mut pod = SidecarPod::new(60, [(0, Some(1)), (3, Some(1)), (5, None), (0, Some(1))]).await;
    let fault = Fault::of("StopContainer")
        .on(Subject::container(&pod.uid, "a"))
        .times(2);
    pod.node.sim.inject(fault);
    pod.remove();
    pod.until_gone().await;
    // No hook runs twice, and the grace period does not start again.
    for (name, count) in [("second", 1), ("a", 1)] {
        let execs = pod.node.sim.oracle().execs(&pod.uid, name);
        assert_eq!(execs.len(), count, "{name}");
    }
    let [_, second, a, _] = pod.times();
    assert_eq!((second.0, a.1), (60, 60));
}

#[tokio::test(start_paused = true)]
async fn a_runtime_restart_neither_extends_the_grace_nor_repeats_hooks() {
    let mut pod = SidecarPod::new(60, [(0, Some(1)), (0, Some(1)), (5, None), (8, None)]).await;
    pod.remove();
    sleep(seconds(20)).await;
    pod.node.sim.restart();
    pod.until_gone().await;
    assert_eq!(pod.times()[2..], [(5, 60), (8, 60)]);
    for name in ["a", "b"] {
        assert_eq!(pod.node.sim.oracle().execs(&pod.uid, name).len(), 1);
    }
}

/// Removes a pod whose container ignores SIGTERM and calls `meanwhile` after SIGTERM; returns the
/// time from SIGTERM to SIGKILL.
async fn killed(grace: u64, meanwhile: impl AsyncFnOnce(&Node)) -> Duration {
    let node = Node::new();
    node.sim.on_image("app:1", Behavior::runs().ignoring_term());
    let spec = "containers: [{name: app, image: 'app:1'}]";
    let uid = node.apply(
        "web",
        &format!("terminationGracePeriodSeconds: {grace}, {spec}"),
    );
    node.until_running().await;
    node.remove_manifest("web");
    node.until("SIGTERM", |node| !node.term_times(&uid, "app").is_empty())
        .await;
    meanwhile(&node).await;
    node.until("the end", |node| node.is_gone(&uid)).await;
    node.exit_times(&uid, "app")[0] - node.term_times(&uid, "app")[0]
}

#[tokio::test(start_paused = true)]
async fn a_grace_is_kept_to_the_millisecond() {
    for grace in [1, 2, 3, 30] {
        let took = killed(grace, async |_| {}).await;
        assert_eq!(took, seconds(grace.max(2)));
    }
    for (after, asked, due) in [
        (1_000, 5_000, 6_000),
        (1_234, 5_000, 6_234),
        (1_234, 1_500, 2_734),
        (500, 0, 2_000),
        (7_900, 0, 7_900),
        (7_900, 60_000, 30_000),
    ] {
        let ms = Duration::from_millis;
        let took = killed(30, async |node| {
            sleep(ms(after)).await;
            node.ask("web", |intents| intents.grace = Some(ms(asked)))
                .await;
        })
        .await;
        let error = took.abs_diff(ms(due));
        assert!(error <= ms(25), "{due} ms were due, it took {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_immediate_kill_is_retried() {
    let took = killed(600, async |node| {
        node.sim.inject(
            Fault::of("StopContainer")
                .error(CriErrorKind::ResourceExhausted, "busy")
                .times(3),
        );
        node.ask("web", |intents| intents.grace = Some(seconds(5)))
            .await;
    })
    .await;
    assert!(took >= seconds(8) && took <= seconds(9), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn pod_removal_shortens_the_stop_of_a_replaced_container() {
    let node = Node::new();
    node.sim.on_image("app:1", Behavior::runs().ignoring_term());
    let spec = |grace: u64, image: &str| {
        format!(
            "terminationGracePeriodSeconds: {grace}, containers: [{{name: app, image: '{image}'}}]"
        )
    };
    let uid = node.apply("web", &spec(600, "app:1"));
    node.until_running().await;
    node.apply("web", &spec(600, "app:2"));
    sleep(seconds(30)).await;
    node.apply("web", &spec(20, "app:2"));
    sleep(seconds(30)).await;
    assert!(
        node.exit_times(&uid, "app").is_empty(),
        "it still has its first grace period"
    );
    node.remove_manifest("web");
    let took = node.until("the end", |node| node.is_gone(&uid)).await;
    assert!(took >= seconds(20) && took <= seconds(21), "{took:?}");
    assert_eq!(node.sim.oracle().starts(&uid, "app"), 1);
}

#[tokio::test(start_paused = true)]
async fn many_pods_that_end_at_once_each_have_their_full_grace() {
    let node = Node::new();
    node.sim.on_image("app:1", Behavior::runs().ignoring_term());
    let spec = "terminationGracePeriodSeconds: 10, containers: [{name: app, image: 'app:1'}]";
    let names: Vec<_> = (0..40).map(|number| format!("web-{number}")).collect();
    let uids: Vec<_> = names.iter().map(|name| node.apply(name, spec)).collect();
    node.until_running().await;
    for name in &names {
        node.remove_manifest(name);
    }
    node.until("all are gone", |node| {
        uids.iter().all(|uid| node.is_gone(uid))
    })
    .await;
    for uid in &uids {
        let took = node.exit_times(uid, "app")[0] - node.term_times(uid, "app")[0];
        let error = took.abs_diff(seconds(10));
        assert!(error <= Duration::from_millis(25), "{took:?}");
    }
}
