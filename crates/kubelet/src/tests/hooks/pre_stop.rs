//! preStop: runs before SIGTERM and within the grace period.

use jiff::Timestamp;
use rubelet_cri::CriErrorKind;
use rubelet_sim::{Behavior, Exec, Fault};
use tokio::time::sleep;

use super::{Commands, app_with, raised};
use crate::tests::{
    net::NetResponse,
    node::{Node, seconds},
};

const FAILED: &str = "FailedPreStopHook PreStopHook failed";

/// A node with a pod `web` that ignores SIGTERM, with this grace period in seconds and this preStop
/// hook.
async fn node_with(grace: u64, hook: &str) -> (Node, Commands, String) {
    let node = Node::new();
    node.sim.on_image("app:1", Behavior::runs().ignoring_term());
    let commands = Commands::of(&node);
    let app = app_with(&format!("preStop: {{{hook}}}"));
    let uid = node.apply(
        "web",
        &format!("terminationGracePeriodSeconds: {grace}, {app}"),
    );
    node.until_running().await;
    sleep(seconds(5)).await;
    (node, commands, uid)
}

/// Removes the pod and waits until it is gone; returns the seconds until SIGTERM and until SIGKILL.
async fn removed(node: &Node, uid: &str) -> (f64, f64) {
    let asked = node.uptime();
    node.remove_manifest("web");
    node.until("the end", |node| node.is_gone(uid)).await;
    let since = |at: std::time::Duration| (at - asked).as_secs_f64();
    let (terms, ends) = (node.term_times(uid, "app"), node.exit_times(uid, "app"));
    assert_eq!((terms.len(), ends.len()), (1, 1));
    (since(terms[0]), since(ends[0]))
}

/// Compares times in seconds, with tolerance for what the agent itself takes.
fn assert_times(what: &str, (term, kill): (f64, f64), (due_term, due_kill): (f64, f64)) {
    let near = |is: f64, due: f64| (is - due).abs() <= 0.02;
    assert!(
        near(term, due_term) && near(kill, due_kill),
        "{what}: SIGTERM after {term} s, not {due_term}; SIGKILL after {kill} s, not {due_kill}"
    );
}

#[tokio::test(start_paused = true)]
async fn each_kind_runs_before_sigterm_and_counts_toward_the_grace() {
    for (hook, term) in [
        ("exec: {command: [say-bye]}", 6.0),
        ("exec: {command: [bye-at-once]}", 0.0),
        ("httpGet: {port: 80}", 8.0),
        ("sleep: {seconds: 11}", 11.0),
        ("sleep: {seconds: 20}", 20.0),
    ] {
        let (node, commands, uid) = node_with(20, hook).await;
        commands.set("say-bye", Exec::exits(0).after(seconds(6)));
        node.net.on(|_| NetResponse::passes().after(seconds(8)));
        let times = removed(&node, &uid).await;
        let kill = f64::max(20.0, term + 2.0);
        assert_times(hook, times, (term, kill));
        assert!(!raised(&node, FAILED), "{hook}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_fraction_of_a_second_is_counted_as_well() {
    for (takes, due) in [(6_300, 20.0), (6_700, 20.0), (19_400, 21.4)] {
        let (node, commands, uid) = node_with(20, "exec: {command: [say-bye]}").await;
        let takes = std::time::Duration::from_millis(takes);
        commands.set("say-bye", Exec::exits(0).after(takes));
        let times = removed(&node, &uid).await;
        assert_times("say-bye", times, (takes.as_secs_f64(), due));
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_reported_and_termination_continues() {
    for hook in [
        "exec: {command: [say-bye]}",
        "httpGet: {port: 80}",
        "tcpSocket: {port: 80}",
    ] {
        let (node, commands, uid) = node_with(20, hook).await;
        commands.set("say-bye", Exec::exits(1));
        node.net.on(|_| NetResponse::fails("connection refused"));
        let times = removed(&node, &uid).await;
        assert_times(hook, times, (0.0, 20.0));
        assert!(raised(&node, FAILED), "{hook}");
    }
}

/// When failures of the hook were reported, in whole seconds since `asked`, and how often each.
fn failures(node: &Node, asked: Timestamp) -> Vec<(i64, u32)> {
    let all = node.recorder().board().list().into_iter();
    let all = all.filter(|(_, _, event)| &*event.reason == "FailedPreStopHook");
    all.map(|(_, _, event)| (event.first.duration_since(asked).as_secs(), event.count))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_hook_longer_than_the_grace_runs_until_sigkill() {
    // (duration of the hook, its exit code, when and with what code it ends, when its failure is
    // reported)
    for (takes, code, end, reported) in [
        (None, 0, (22, 137), Some(22)),
        (Some(21), 0, (21, 0), None),
        (Some(21), 1, (21, 1), Some(21)),
    ] {
        let (node, commands, uid) = node_with(20, "exec: {command: [say-bye]}").await;
        let exec = takes.map_or_else(Exec::hangs, |takes| Exec::exits(code).after(seconds(takes)));
        commands.set("say-bye", exec);
        let asked = node.now();
        let times = removed(&node, &uid).await;
        assert_times("say-bye", times, (20.0, 22.0));
        let execs = node.sim.oracle().execs(&uid, "app");
        let [exec] = &execs[..] else {
            panic!("{execs:?}");
        };
        let ended = exec
            .ended
            .map(|(at, code)| ((at - exec.began).as_secs(), code));
        assert_eq!(ended, Some((end.0, Some(end.1))));
        let reported: Vec<_> = reported.into_iter().map(|at| (at, 1)).collect();
        assert_eq!(failures(&node, asked), reported, "{takes:?}, {code}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_sidecar_hook_longer_than_the_grace_runs_until_sigkill() {
    let node = Node::new();
    node.sim.on_image("app:1", Behavior::runs().ignoring_term());
    let commands = Commands::of(&node);
    commands.set("say-bye", Exec::exits(0).after(seconds(21)));
    let hook = "lifecycle: {preStop: {exec: {command: [say-bye]}}}";
    let uid = node.apply(
        "web",
        &format!(
            "terminationGracePeriodSeconds: 20, \
             initContainers: [{{name: proxy, image: 'app:1', restartPolicy: Always, {hook}}}], \
             containers: [{{name: app, image: 'app:1'}}]"
        ),
    );
    node.until_running().await;
    node.remove_manifest("web");
    node.until("the end", |node| node.is_gone(&uid)).await;
    let execs = node.sim.oracle().execs(&uid, "proxy");
    let (ended, code) = execs[0].ended.unwrap();
    assert_eq!(((ended - execs[0].began).as_secs(), code), (21, Some(0)));
    assert!(!raised(&node, FAILED));
}

#[tokio::test(start_paused = true)]
async fn a_request_without_a_response_holds_nothing_up() {
    let (node, _, uid) = node_with(20, "httpGet: {port: 80, host: db.example}").await;
    node.net.on(|_| NetResponse::hangs());
    let times = removed(&node, &uid).await;
    assert_times("httpGet", times, (20.0, 22.0));
    assert!(!raised(&node, FAILED), "it did not fail");
}

#[tokio::test(start_paused = true)]
async fn a_hook_continues_when_the_first_stop_fails() {
    let (node, commands, uid) = node_with(20, "exec: {command: [say-bye]}").await;
    commands.set("say-bye", Exec::hangs());
    let fault = Fault::of("StopContainer").error(CriErrorKind::ResourceExhausted, "busy");
    node.sim.inject(fault.times(2));
    let asked = node.now();
    node.remove_manifest("web");
    node.until("the end", |node| node.is_gone(&uid)).await;
    let execs = node.sim.oracle().execs(&uid, "app");
    let ends: Vec<_> = execs.iter().map(|exec| exec.ended).collect();
    let killed = node.exit_times(&uid, "app")[0];
    assert_eq!(ends, [Some((killed, Some(137)))]);
    let reported = failures(&node, asked);
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert!(reported[0].0 > 22 && reported[0].1 == 1, "{reported:?}");
}

#[tokio::test(start_paused = true)]
async fn a_replaced_container_runs_its_original_hook() {
    let (node, commands, uid) = node_with(30, "exec: {command: [say-bye]}").await;
    commands.set("say-bye", Exec::exits(0).after(seconds(3)));
    let old = node.sim.running(&uid, "app").unwrap();
    node.apply("web", &app_with("preStop: {exec: {command: [other]}}"));
    node.until("another instance runs", |node| {
        node.sim.running(&uid, "app").is_some_and(|id| id != old)
    })
    .await;
    let execs = node.sim.oracle().execs(&uid, "app");
    assert_eq!(execs.len(), 1);
    assert_eq!((&execs[0].id, execs[0].command.as_str()), (&old, "say-bye"));
}

#[tokio::test(start_paused = true)]
async fn pod_removal_shortens_a_hook_of_an_earlier_stop() {
    let (node, commands, uid) = node_with(600, "exec: {command: [say-bye]}").await;
    commands.set("say-bye", Exec::hangs());
    let spec = |grace: u64| format!("terminationGracePeriodSeconds: {grace}, {}", app_with(""));
    // The container is replaced with a grace of 600 s; then the pod is removed with a grace of 10
    // s.
    node.apply("web", &spec(600));
    sleep(seconds(5)).await;
    node.apply("web", &spec(10));
    sleep(seconds(5)).await;
    assert_eq!(node.sim.oracle().execs(&uid, "app").len(), 1);
    assert!(node.term_times(&uid, "app").is_empty());
    let times = removed(&node, &uid).await;
    assert_times("removed", times, (10.0, 12.0));
}

#[tokio::test(start_paused = true)]
async fn a_container_that_exits_during_its_hook_gets_no_signal() {
    let (node, commands, uid) = node_with(60, "exec: {command: [say-bye]}").await;
    commands.set("say-bye", Exec::hangs());
    node.remove_manifest("web");
    sleep(seconds(7)).await;
    node.kill_container(&uid, "app", 0);
    let took = node.until("the end", |node| node.is_gone(&uid)).await;
    assert!(took <= seconds(1), "{took:?}");
    assert!(node.term_times(&uid, "app").is_empty());
}
