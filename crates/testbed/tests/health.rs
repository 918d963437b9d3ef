//! Health reports of the agent, and its shutdown.

#![allow(
    clippy::unwrap_used,
    reason = "the location of a failure says which check failed"
)]

#[path = "outside/outside.rs"]
mod outside;

use std::collections::BTreeSet;
use std::time::Duration;

use outside::truth::instances;
use outside::{PodText, TIMEOUT, states};
use rubelet_testbed::agent::Notification;
use rubelet_testbed::cleanup::processes;
use rubelet_testbed::{Agent, Containerd, http, proc};
use rustix::process::{Pid, Signal, kill_process};

#[test]
fn the_health_port_serves_health_and_metrics_only() {
    let (containerd, agent) = outside::with_pods(&[]);
    for path in [
        "/healthz",
        "/healthz/",
        "/healthz/syncloop",
        "/healthz/ping",
        "/healthz/log",
    ] {
        let answer = agent.health(path).unwrap();
        assert_eq!((answer.status, &*answer.text()), (200, "ok"), "{path}");
    }
    let verbose = agent.health("/healthz?verbose").unwrap().text();
    let expected = "[+]ping ok\n[+]log ok\n[+]syncloop ok\nhealthz check passed\n";
    assert_eq!(verbose, expected);
    for path in ["/", "/pods", "/configz", "/healthz/nothing", "/api/v1/pods"] {
        assert_eq!(agent.health(path).unwrap().status, 404, "{path}");
    }
    assert_eq!(agent.health("/metrics").unwrap().status, 200);
    let port = agent.healthz_port();
    let local = http::get_tcp(&format!("127.0.0.2:{port}"), "/healthz");
    assert!(local.is_err(), "it is for 127.0.0.1 only");
    drop(agent);

    let agent = Agent::builder(&containerd)
        .config("healthzPort", 0)
        .start()
        .unwrap();
    agent.wait_ready(TIMEOUT).unwrap();
    assert_eq!(agent.get("/healthz").unwrap().status, 200);
    assert!(agent.health("/healthz").is_err(), "port 0 switches it off");
}

/// The value of a line such as `name{label="value"}`.
fn metric(text: &str, line: &str) -> Option<f64> {
    let value = text.lines().find_map(|found| found.strip_prefix(line))?;
    value.strip_prefix(' ')?.parse().ok()
}

#[test]
fn metrics_have_the_kubelets_names_and_values() {
    let pods = ["one", "two"].map(PodText::new);
    let (containerd, agent) = outside::with_pods(&pods);
    let truth = containerd.truth().unwrap();
    let running = truth.running("one-testnode", "main").unwrap().unwrap();
    processes::kill(truth.pid(&running.id).unwrap()).unwrap();
    let created = "kubelet_runtime_operations_total{operation_type=\"create_container\"}";
    let scrape = |agent: &Agent| agent.health("/metrics").map(|answer| answer.text());
    let text = agent
        .wait_for("the restart is counted", TIMEOUT, |agent| {
            let text = scrape(agent)?;
            let all_run = metric(
                &text,
                "kubelet_running_containers{container_state=\"running\"}",
            );
            Ok((metric(&text, created) == Some(3.0) && all_run == Some(2.0)).then_some(text))
        })
        .unwrap();
    for (line, expected) in [
        ("kubelet_pleg_discard_events", 0.0),
        ("kubelet_running_pods", 2.0),
        (
            "kubelet_running_containers{container_state=\"unknown\"}",
            0.0,
        ),
        ("kubelet_pod_start_duration_seconds_count", 2.0),
        (
            "kubelet_pod_worker_duration_seconds_count{operation_type=\"create\"}",
            2.0,
        ),
        ("rubelet_pleg_quarantined_pods", 0.0),
    ] {
        assert_eq!(metric(&text, line), Some(expected), "{line}: {text}");
    }
    for line in [
        "kubelet_pleg_relist_duration_seconds_count",
        "kubelet_pleg_last_seen_seconds",
        "kubelet_runtime_operations_duration_seconds_count{operation_type=\"podsandbox_status\"}",
        "rubelet_pleg_exit_to_delivery_seconds_count",
    ] {
        assert!(metric(&text, line) >= Some(1.0), "{line}: {text}");
    }
    for name in [
        "kubelet_pleg_relist_interval_seconds histogram",
        "kubelet_evented_pleg_connection_error_count counter",
        "kubelet_evented_pleg_connection_success_count counter",
        "kubelet_evented_pleg_connection_latency_seconds histogram",
        "rubelet_pleg_relist_in_progress_seconds gauge",
    ] {
        let known = text.contains(&format!("# TYPE {name}\n"));
        assert!(known, "{name}: {text}");
    }
    let names = |text: &str| -> BTreeSet<String> {
        let types = text.lines().filter(|line| line.starts_with("# TYPE "));
        types.map(str::to_owned).collect()
    };
    let local = agent.get("/metrics").unwrap();
    assert_eq!(local.status, 200);
    assert!(names(&local.text()).is_superset(&names(&text)));
}

#[test]
fn systemd_is_notified_of_readiness_state_and_progress() {
    let containerd = Containerd::start().unwrap();
    let good = PodText::new("good");
    let bad = PodText::new("bad").script("exit 1");
    let period = Duration::from_secs(2);
    let mut agent = Agent::builder(&containerd)
        .manifest(good.file(), good.yaml())
        .manifest(bad.file(), bad.yaml())
        .watchdog(period)
        .start()
        .unwrap();
    agent.wait_ready(TIMEOUT).unwrap();
    agent
        .wait_status(TIMEOUT, |text| text == "1/2 pods ready")
        .unwrap();
    agent
        .wait_for("the watchdog was fed five times", TIMEOUT, |agent| {
            Ok((fed(agent).len() >= 5).then_some(()))
        })
        .unwrap();
    let longest = fed(&agent)
        .windows(2)
        .map(|pair| pair[1].at - pair[0].at)
        .max();
    assert!(
        longest < Some(period),
        "the watchdog was left hungry for {longest:?}"
    );

    agent.remove_manifest(&bad.file()).unwrap();
    agent
        .wait_status(TIMEOUT, |text| text == "1/1 pods ready")
        .unwrap();
    assert!(agent.terminate().unwrap().success());
    let told = agent.notifications();
    let count = |what: &str| {
        told.iter()
            .filter(|n| n.text.lines().any(|l| l == what))
            .count()
    };
    assert_eq!(count("READY=1"), 1, "{told:#?}");
    assert_eq!(count("STOPPING=1"), 1, "{told:#?}");
    let statuses: Vec<&str> = told.iter().filter_map(Notification::status).collect();
    let repeated = statuses.windows(2).any(|pair| pair[0] == pair[1]);
    assert!(!repeated, "only changes are told: {statuses:#?}");
}

fn fed(agent: &Agent) -> Vec<Notification> {
    let mut told = agent.notifications();
    told.retain(Notification::is_watchdog);
    told
}

#[test]
fn a_hung_runtime_does_not_stop_watchdog_messages() {
    let containerd = Containerd::start().unwrap();
    let truth = containerd.truth().unwrap();
    let pod = PodText::new("web");
    let agent = Agent::builder(&containerd)
        .manifest(pod.file(), pod.yaml())
        .config("runtimeRequestTimeout", "1s")
        .start()
        .unwrap();
    let shown = states::wait_ready(&agent, "web");
    let before = instances(&truth);
    let runtime = Pid::from_raw(i32::try_from(containerd.pid().unwrap()).unwrap()).unwrap();

    kill_process(runtime, Signal::STOP).unwrap();
    agent
        .wait_status(TIMEOUT, |text| {
            text.starts_with("1/1 pods ready, container runtime is down")
        })
        .unwrap();
    for path in ["/healthz", "/healthz/syncloop"] {
        assert_eq!(agent.health(path).unwrap().status, 200, "{path}");
    }
    assert_eq!(agent.get("/readyz").unwrap().status, 500);
    assert_eq!(agent.pod("web").unwrap().unwrap(), shown);

    kill_process(runtime, Signal::CONT).unwrap();
    agent
        .wait_for("the agent is ready for work", TIMEOUT, |agent| {
            Ok((agent.get("/readyz")?.status == 200).then_some(()))
        })
        .unwrap();
    assert_eq!(instances(&truth), before);
    assert!(fed(&agent).is_empty());
}

#[test]
fn sigterm_stops_the_agent_and_pods_continue() {
    let pods = ["one", "two", "three"].map(PodText::new);
    let (containerd, mut agent) = outside::with_pods(&pods);
    let truth = containerd.truth().unwrap();
    let before = instances(&truth);
    let pids: BTreeSet<u32> = before
        .values()
        .map(|found| truth.pid(&found[0].id).unwrap())
        .collect();
    for _ in 0..3 {
        assert!(agent.terminate().unwrap().success());
        assert_eq!(instances(&truth), before);
        let runs = |pid: &u32| proc::Stat::of(*pid).is_some_and(|stat| stat.state != 'Z');
        assert!(pids.iter().all(runs));
        agent.start().unwrap();
        states::wait_all_ready(&agent, 3);
    }
}

#[test]
fn sigterm_during_pod_starts_interrupts_none() {
    let pods: Vec<PodText> = (0..8)
        .map(|number| {
            PodText::new(&format!("p{number}"))
                .init("prepare")
                .container("second")
        })
        .collect();
    let containerd = Containerd::start().unwrap();
    let truth = containerd.truth().unwrap();
    let mut builder = Agent::builder(&containerd);
    for pod in &pods {
        builder = builder.manifest(pod.file(), pod.yaml());
    }
    let mut agent = builder.start().unwrap();
    for number in 1..10 {
        agent.wait_ready(TIMEOUT).unwrap();
        agent
            .wait_for("more containers were made", TIMEOUT, |_| {
                Ok((truth.containers()?.len() >= 2 * number).then_some(()))
            })
            .unwrap();
        assert!(agent.terminate().unwrap().success());
        agent.start().unwrap();
    }
    states::wait_all_ready(&agent, pods.len());
    let found = instances(&truth);
    assert_eq!(found.len(), 3 * pods.len());
    let once = found
        .values()
        .all(|all| all.len() == 1 && all[0].attempt == 0);
    assert!(once, "{found:#?}");
    assert_eq!(truth.sandboxes().unwrap().len(), pods.len());
}
