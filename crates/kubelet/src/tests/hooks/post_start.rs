//! postStart: a container counts as started when its hook has succeeded.

use std::{fs, time::Duration};

use rubelet_api::status::ContainerState;
use rubelet_cri::Timeouts;
use rubelet_image_pull::images::PullParallelism;
use rubelet_pod_plan::intents::RestartIntent;
use rubelet_probes::ProbeOutcome;
use rubelet_sim::{Behavior, Exec};
use tokio::time::sleep;

use super::{Commands, app_with, raised};
use crate::tests::{
    net::{NetCall, NetResponse},
    node::{Node, seconds},
};

const FAILED: &str = "FailedPostStartHook PostStartHook failed";
const KILLING: &str = "Killing FailedPostStartHook";

#[tokio::test(start_paused = true)]
async fn a_command_runs_after_the_start_and_before_the_next_container() {
    let node = Node::new();
    let commands = Commands::of(&node);
    commands.set("warm-up", Exec::exits(0).after(seconds(7)));
    let uid = node.apply(
        "web",
        "containers: [\
            {name: app, image: 'app:1', lifecycle: {postStart: {exec: {command: [warm-up, all]}}}}, \
            {name: next, image: 'app:1'}]",
    );
    node.until_running().await;
    let execs = node.sim.oracle().execs(&uid, "app");
    assert_eq!(execs.len(), 1);
    assert_eq!(execs[0].command, "warm-up all");
    assert_eq!(execs[0].began, node.start_times(&uid, "app")[0]);
    let (ended, code) = execs[0].ended.unwrap();
    assert_eq!((ended - execs[0].began, code), (seconds(7), Some(0)));
    assert!(node.start_times(&uid, "next")[0] >= ended);
    assert!(!raised(&node, FAILED));
}

#[tokio::test(start_paused = true)]
async fn a_request_goes_to_the_pod_ip_or_to_the_named_host() {
    for (spec, host, port, path) in [
        ("port: 8080, path: /warm", "", 8080, "/warm"),
        ("port: web, path: /warm", "", 80, "/warm"),
        ("port: 1, path: /, host: db.example", "db.example", 1, "/"),
    ] {
        let node = Node::new();
        let app = format!(
            "containers: [{{name: app, image: 'app:1', ports: [{{name: web, containerPort: 80}}], \
             lifecycle: {{postStart: {{httpGet: {{{spec}}}}}}}}}]"
        );
        node.apply("web", &app);
        node.until_running().await;
        let attempts = node.net.attempts();
        assert_eq!(attempts.len(), 1);
        let ip = node.pod("web").unwrap().status.pod_ips[0].to_string();
        let host = if host.is_empty() { &ip } else { host };
        assert_eq!(attempts[0].host, host);
        let NetCall::Hook(get) = &attempts[0].what else {
            panic!("{attempts:?}");
        };
        let number = rubelet_api::probe::TargetPort::Number(port);
        assert_eq!((&get.port, &*get.path), (&number, path));
    }
}

#[tokio::test(start_paused = true)]
async fn a_plain_http_response_to_https_passes_and_is_reported() {
    let node = Node::new();
    let text =
        "request to HTTPS lifecycle hook 10.0.0.1:443 got HTTP response, retry with HTTP succeeded";
    node.net
        .on(move |_| NetResponse::of(ProbeOutcome::Warned, text));
    node.apply(
        "web",
        &app_with("postStart: {httpGet: {port: 443, scheme: HTTPS}}"),
    );
    node.until_running().await;
    assert!(raised(&node, &format!("LifecycleHTTPFallback {text}")));
}

#[tokio::test(start_paused = true)]
async fn a_sleep_delays_the_next_container() {
    let node = Node::new();
    let uid = node.apply(
        "web",
        "containers: [\
            {name: app, image: 'app:1', lifecycle: {postStart: {sleep: {seconds: 9}}}}, \
            {name: next, image: 'app:1'}]",
    );
    node.until_running().await;
    let (app, next) = (
        node.start_times(&uid, "app"),
        node.start_times(&uid, "next"),
    );
    assert_eq!((next[0] - app[0]).as_secs(), 9);
}

/// A hook that fails, and the message of the container's waiting state.
struct HookFailure {
    hook: &'static str,
    exec: Exec,
    message: &'static str,
}

#[tokio::test(start_paused = true)]
async fn a_failure_stops_the_container_with_the_kubelets_message() {
    let of = "for Container \"app\" in Pod \"web-n_default(UID)\" failed - error";
    for HookFailure {
        hook,
        exec,
        message,
    } in [
        HookFailure {
            hook: "exec: {command: [warm-up, all]}",
            exec: Exec::exits(3).with_stderr("no \"db\"\n"),
            message: "Exec lifecycle hook ([warm-up all]) OF: command 'warm-up all' exited with 3: \
                      no \"db\"\n, message: \"no \\\"db\\\"\\n\"",
        },
        HookFailure {
            hook: "httpGet: {port: 80, path: /warm}",
            exec: Exec::default(),
            message: "HTTP lifecycle hook (/warm) OF: Get \"http://x\": connection refused",
        },
        HookFailure {
            hook: "tcpSocket: {port: 80}",
            exec: Exec::default(),
            message: "Cannot run handler: invalid handler: &LifecycleHandler{Exec:nil,HTTPGet:nil,\
                      TCPSocket:&TCPSocketAction{Port:{0 80 },Host:,},Sleep:nil,}",
        },
    ] {
        let node = Node::new();
        Commands::of(&node).set("warm-up", exec);
        node.net
            .on(|_| NetResponse::fails("Get \"http://x\": connection refused"));
        let uid = node.apply("web", &app_with(&format!("postStart: {{{hook}}}")));
        node.until("the hook fails", |node| {
            node.state("web", "app") == "Waiting PostStartHookError"
        })
        .await;
        let status = node.container("web", "app").unwrap();
        let ContainerState::Waiting { message: said, .. } = &status.state else {
            panic!("{status:?}");
        };
        let message = message.replace("OF", of).replace("UID", &uid);
        assert_eq!(**said, message);
        let events = node.events("web");
        assert!(
            raised(&node, FAILED) && raised(&node, KILLING),
            "{events:?}"
        );
        assert!(
            !events.iter().any(|event| event.contains("lifecycle hook")),
            "events contain the output of the hook: {events:?}"
        );
        assert_eq!(node.sim.oracle().exits(&uid, "app"), [(143, "Error")]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_container_whose_hook_failed_restarts_with_crash_back_off() {
    let node = Node::new();
    let commands = Commands::of(&node);
    commands.set("warm-up", Exec::exits(1));
    let uid = node.apply("web", &app_with("postStart: {exec: {command: [warm-up]}}"));
    node.until("three ends", |node| node.exit_times(&uid, "app").len() == 3)
        .await;
    commands.set("warm-up", Exec::exits(0));
    node.until_running().await;
    let (starts, ends) = (node.start_times(&uid, "app"), node.exit_times(&uid, "app"));
    let waits: Vec<_> = starts[1..]
        .iter()
        .zip(&ends)
        .map(|(start, end)| (*start - *end).as_secs())
        .collect();
    assert_eq!(waits[1..], [10, 20]);
    assert!(waits[0] <= 1, "{waits:?}");
    node.assert_never_twice(&uid);
    assert_eq!(node.state("web", "app"), "Running");
}

#[tokio::test(start_paused = true)]
async fn the_stop_after_a_failure_has_its_grace_and_pre_stop_hook() {
    let node = Node::new();
    node.sim.on_image("app:1", Behavior::runs().ignoring_term());
    let commands = Commands::of(&node);
    commands.set("warm-up", Exec::exits(1));
    commands.set("say-bye", Exec::exits(0).after(seconds(4)));
    let hooks = "postStart: {exec: {command: [warm-up]}}, preStop: {exec: {command: [say-bye]}}";
    let spec = format!("terminationGracePeriodSeconds: 15, {}", app_with(hooks));
    let uid = node.apply("web", &spec);
    node.until("the end", |node| !node.exit_times(&uid, "app").is_empty())
        .await;
    let execs = node.sim.oracle().execs(&uid, "app");
    let commands: Vec<_> = execs.iter().map(|exec| exec.command.as_str()).collect();
    assert_eq!(commands, ["warm-up", "say-bye"]);
    let began = execs[1].began;
    assert_eq!(node.term_times(&uid, "app")[0] - began, seconds(4));
    assert_eq!(node.exit_times(&uid, "app")[0] - began, seconds(15));
}

#[tokio::test(start_paused = true)]
async fn a_container_counts_as_not_started_while_its_hook_hangs() {
    let node = Node::new();
    Commands::of(&node).set("warm-up", Exec::hangs());
    let uid = node.apply("web", &app_with("postStart: {exec: {command: [warm-up]}}"));
    sleep(seconds(3600)).await;
    assert_eq!(node.sim.oracle().execs(&uid, "app").len(), 1);
    assert_eq!(node.state("web", "app"), "Waiting ContainerCreating");
    assert!(node.sim.running(&uid, "app").is_some());
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_hangs_ends_with_the_removal_of_the_pod() {
    for hook in ["exec: {command: [warm-up]}", "httpGet: {port: 80}"] {
        let node = Node::new();
        Commands::of(&node).set("warm-up", Exec::hangs());
        node.net.on(|_| NetResponse::hangs());
        let uid = node.apply("web", &app_with(&format!("postStart: {{{hook}}}")));
        sleep(seconds(30)).await;
        assert_eq!(node.sim.oracle().starts(&uid, "app"), 1);
        node.remove_manifest("web");
        let took = node.until("the end", |node| node.is_gone(&uid)).await;
        assert!(took <= seconds(1), "{hook}: {took:?}");
        assert!(!raised(&node, FAILED));
    }
}

#[tokio::test(start_paused = true)]
async fn an_edit_of_the_container_replaces_one_whose_hook_hangs() {
    let node = Node::new();
    Commands::of(&node).set("warm-up", Exec::hangs());
    let uid = node.apply("web", &app_with("postStart: {exec: {command: [warm-up]}}"));
    sleep(seconds(30)).await;
    node.apply("web", &app_with("postStart: {exec: {command: [better]}}"));
    let took = node.until_running().await;
    assert!(took <= seconds(3), "{took:?}");
    assert_eq!(node.sim.oracle().starts(&uid, "app"), 2);
    assert_eq!(node.container("web", "app").unwrap().restart_count, 1);
}

#[tokio::test(start_paused = true)]
async fn an_edit_of_something_else_does_not_run_a_hook_twice() {
    let node = Node::new();
    Commands::of(&node).set("warm-up", Exec::exits(0).after(seconds(60)));
    let spec = app_with("postStart: {exec: {command: [warm-up]}}");
    let uid = node.apply("web", &spec);
    sleep(seconds(10)).await;
    node.apply_with("web", "labels: {a: b}", &spec);
    node.until_running().await;
    sleep(seconds(60)).await;
    assert_eq!(node.sim.oracle().execs(&uid, "app").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_requested_restart_replaces_a_container_whose_hook_hangs() {
    let node = Node::new();
    let commands = Commands::of(&node);
    commands.set("warm-up", Exec::hangs());
    let uid = node.apply("web", &app_with("postStart: {exec: {command: [warm-up]}}"));
    sleep(seconds(30)).await;
    commands.set("warm-up", Exec::exits(0));
    let instance = node.sim.running(&uid, "app").map(|id| id.as_str().into());
    let at = node.now();
    node.ask("web", move |intents| {
        let intent = RestartIntent { instance, at };
        intents.restarts.insert("app".into(), intent);
    })
    .await;
    let took = node.until_running().await;
    assert!(took <= seconds(3), "{took:?}");
    assert_eq!(node.sim.oracle().starts(&uid, "app"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_restarted_agent_runs_an_interrupted_hook_again() {
    let mut node = Node::new();
    let commands = Commands::of(&node);
    commands.set("warm-up", Exec::hangs());
    let uid = node.apply("web", &app_with("postStart: {exec: {command: [warm-up]}}"));
    sleep(seconds(30)).await;
    node.kill().await;
    commands.set("warm-up", Exec::exits(0).after(seconds(5)));
    node.start();
    sleep(seconds(4)).await;
    assert!(!node.container("web", "app").unwrap().ready);
    node.until_running().await;
    let codes = |node: &Node| -> Vec<_> {
        let execs = node.sim.oracle().execs(&uid, "app").into_iter();
        execs.map(|exec| exec.ended.unwrap().1).collect()
    };
    assert_eq!(codes(&node), [None, Some(0)]);
    let record = node.record("web");
    node.until("the end of the hook is recorded", |_| {
        fs::read_to_string(&record).is_ok_and(|text| text.contains("\"post_start\":null"))
    })
    .await;
    for _ in 0..3 {
        node.restart().await;
        sleep(seconds(10)).await;
    }
    assert_eq!(codes(&node), [None, Some(0)], "it is no longer pending");
    assert_eq!(node.sim.oracle().starts(&uid, "app"), 1);
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_hook_that_then_fails_stops_the_container() {
    let mut node = Node::new();
    let commands = Commands::of(&node);
    commands.set("warm-up", Exec::hangs());
    let uid = node.apply("web", &app_with("postStart: {exec: {command: [warm-up]}}"));
    sleep(seconds(30)).await;
    node.kill().await;
    commands.set("warm-up", Exec::exits(1));
    node.start();
    node.until("the hook fails", |node| raised(node, FAILED))
        .await;
    node.until("the end", |node| !node.exit_times(&uid, "app").is_empty())
        .await;
}

#[tokio::test(start_paused = true)]
async fn killed_during_a_start_the_hook_completes_without_a_restart() {
    for step in 0..120 {
        let mut node = Node::stopped(PullParallelism::Unlimited, Timeouts::default());
        node.sim.set_latency(Duration::from_millis(8));
        let hooks = "postStart: {exec: {command: [warm-up]}}";
        node.start();
        let uid = node.apply("web", &app_with(hooks));
        let at = Duration::from_millis(3) * step;
        sleep(at).await;
        node.restart().await;
        node.until_running().await;
        sleep(seconds(30)).await;
        let oracle = node.sim.oracle();
        assert_eq!(oracle.starts(&uid, "app"), 1, "killed at {at:?}\n{oracle}");
        let execs = oracle.execs(&uid, "app");
        let ended = execs.iter().any(|exec| exec.ended.unwrap().1 == Some(0));
        assert!(ended && execs.len() <= 2, "killed at {at:?}\n{oracle}");
        assert!(node.is_running("web"), "killed at {at:?}");
    }
}
