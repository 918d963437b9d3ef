//! When probes are tried.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use rubelet_pod_plan::{ProbeKind::*, ProbeResult};

use super::rig::*;

#[tokio::test(start_paused = true)]
async fn attempts_begin_after_the_initial_delay_and_keep_to_their_period() {
    for (fields, times) in [
        ("periodSeconds: 10", vec![0.01, 10.01, 20.01, 30.01]),
        (
            "periodSeconds: 10, initialDelaySeconds: 15",
            vec![15.01, 25.01],
        ),
        (
            "periodSeconds: 7, initialDelaySeconds: 1",
            vec![1.01, 8.01, 15.01, 22.01, 29.01],
        ),
        ("periodSeconds: 3600, initialDelaySeconds: 40", vec![]),
    ] {
        let rig = Rig::running();
        // Targets are told some time after the start of the agent and that of the container.
        pass(0.004).await;
        let pod = pod("p", &live(fields));
        let target = rig.target(Liveness, "c1");
        rig.set(&pod, &[target]);
        pass(34.0).await;
        assert_eq!(rig.net.times(), times, "{fields}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_initial_delay_counts_from_the_start_and_not_from_when_it_was_seen() {
    let rig = Rig::running();
    pass(3.0).await;
    let target = rig.target(Liveness, "c1");
    let pod = pod("p", &live("periodSeconds: 10, initialDelaySeconds: 8"));
    pass(5.0).await;
    rig.set(&pod, &[target]);
    pass(4.0).await;
    assert_eq!(rig.net.times(), [11.0]);
}

#[tokio::test(start_paused = true)]
async fn a_slow_attempt_leaves_points_of_the_grid_out_and_never_overlaps_the_next() {
    let rig = Rig::running();
    pass(0.5).await;
    let pod = pod(
        "p",
        &live("periodSeconds: 10, timeoutSeconds: 60, failureThreshold: 9"),
    );
    rig.net.play([
        passes().after(25.0),
        hangs(),
        passes(),
        passes().after(9.99),
        passes().after(10.0),
    ]);
    rig.set(&pod, &[rig.target(Liveness, "c1")]);
    for _ in 0..1300 {
        pass(0.1).await;
        assert!(rig.net.under_way() <= 1);
    }
    assert_eq!(rig.net.times(), [0.5, 30.5, 100.5, 110.5, 120.5]);
}

#[tokio::test(start_paused = true)]
async fn what_waited_for_the_startup_probe_is_tried_at_once_when_it_succeeds() {
    for found_running in [false, true] {
        let rig = Rig::running();
        let mut startup = rig.target(Startup, "c1");
        if found_running {
            startup.started_at = rig.clock.now() - SignedDuration::from_secs(5);
        } else {
            pass(0.5).await;
            startup.started_at = rig.clock.now();
        }
        let pod = pod(
            "p",
            "startupProbe: {httpGet: {port: 80, path: /start}, periodSeconds: 2, failureThreshold: 30},
             livenessProbe: {httpGet: {port: 80, path: /live}},
             readinessProbe: {httpGet: {port: 80, path: /ready}, initialDelaySeconds: 60}",
        );
        let begins = startup.started_at;
        rig.net.on(|one| match one.path.as_str() {
            "/start" if one.at < 7.0 => fails(),
            _ => passes(),
        });
        rig.set(&pod, &[startup]);
        let mut outcomes = rig.handle.outcomes(&pod.uid);
        outcomes.changed().await.unwrap();
        assert_eq!(rig.outcome(&pod, "c1", Startup), Some(ProbeResult::Success));
        let tries = rig.net.times();
        let succeeded = *tries.last().unwrap();
        assert!(tries.len() >= 3, "{tries:?}");

        let then = [Liveness, Readiness].map(|kind| target(kind, "c1", begins));
        rig.set(&pod, &then);
        pass(1.0).await;
        let times = rig.net.times_by_path();
        assert!(times["/live"][0] <= succeeded + 0.03, "{times:?}");
        assert!(!times.contains_key("/ready"));
        pass(60.0).await;
        let times = rig.net.times_by_path();
        assert_eq!(times["/start"].len(), tries.len(), "it has decided");
        let ready = times["/ready"][0];
        let delay = if found_running { 55.0 } else { 60.5 };
        assert!((delay..delay + 0.03).contains(&ready), "{ready}");
        // The plan still needs to know that the container has started.
        assert_eq!(rig.outcome(&pod, "c1", Startup), Some(ProbeResult::Success));
    }
}

#[tokio::test(start_paused = true)]
async fn probes_of_containers_that_an_agent_finds_running_spread_over_their_period() {
    let rig = Rig::running();
    let earlier = rig.clock.now() - SignedDuration::from_hours(1);
    pass(1.0).await;
    for number in 0..1000 {
        let fields = format!(
            "readinessProbe: {{httpGet: {{port: 80, path: /{number}}}, periodSeconds: 10}}"
        );
        let pod = pod(&format!("p{number}"), &fields);
        let mut target = target(Readiness, &format!("c{number}"), earlier);
        target.initial = ProbeResult::Success;
        rig.set(&pod, &[target]);
        let reports = rig.handle.reports(&pod.uid);
        assert!(reports.is_empty(), "the prober has not looked yet");
    }
    pass(10.005).await;
    let mut slots = BTreeMap::<u64, usize>::new();
    for at in rig.net.times() {
        *slots.entry((at * 10.0) as u64).or_default() += 1;
    }
    assert_eq!(slots.values().sum::<usize>(), 1000);
    let most = slots.values().max().unwrap();
    assert!(*most <= 30 && slots.len() >= 98, "{slots:?}");
    // From then on each keeps to its place.
    pass(10.0).await;
    let times = rig.net.times_by_path();
    assert!(times.values().all(|times| {
        let [first, second] = times[..] else {
            return false;
        };
        (second - first - 10.0).abs() < 0.011
    }));
}

#[tokio::test(start_paused = true)]
async fn an_initial_delay_that_is_not_over_holds_also_after_a_restart_of_the_agent() {
    let rig = Rig::running();
    let started = rig.clock.now() - SignedDuration::from_secs(10);
    let pod = pod("p", &live("periodSeconds: 1, initialDelaySeconds: 30"));
    rig.set(&pod, &[target(Liveness, "c1", started)]);
    pass(20.5).await;
    assert_eq!(rig.net.times(), [20.0]);
}

#[tokio::test(start_paused = true)]
async fn pods_that_do_not_answer_delay_no_others() {
    let rig = Rig::running();
    pass(0.5).await;
    rig.net.on(|one| match one.path.as_str() {
        "/live" => hangs(),
        _ => passes(),
    });
    for number in 0..300 {
        let pod = pod(
            &format!("hung{number}"),
            &live("timeoutSeconds: 30, periodSeconds: 30, failureThreshold: 99"),
        );
        rig.set(&pod, &[rig.target(Liveness, "c1")]);
    }
    let quick = pod(
        "quick",
        "readinessProbe: {httpGet: {port: 80, path: /quick}, periodSeconds: 1}",
    );
    rig.set(&quick, &[rig.target(Readiness, "q1")]);
    pass(60.0).await;
    let times = &rig.net.times_by_path()["/quick"];
    assert_eq!(times.len(), 60);
    for (number, at) in times.iter().enumerate() {
        let late = at - (number as f64 + 0.5);
        assert!((0.0..0.6).contains(&late), "{number}: {late}");
    }
}

#[tokio::test(start_paused = true)]
async fn probes_that_need_an_address_wait_for_it() {
    let rig = Rig::running();
    pass(0.5).await;
    let own_host = "readinessProbe: {httpGet: {port: 80, path: /own, host: 192.0.2.1}}";
    let pod = pod("p", &format!("{}, {own_host}", live("periodSeconds: 10")));
    let targets = [Liveness, Readiness].map(|kind| rig.target(kind, "c1"));
    rig.handle.set(&pod, "", targets.to_vec());
    pass(3.0).await;
    assert_eq!(rig.net.times_by_path().keys().collect::<Vec<_>>(), ["/own"]);
    assert_eq!(rig.report(&pod, "c1", Liveness).unwrap().next, None);
    rig.set(&pod, &targets);
    pass(5.0).await;
    let tries = rig.net.tries();
    assert_eq!(tries.len(), 2);
    assert_eq!((tries[1].at, &*tries[1].host), (3.5, "10.0.0.1"));
    // Another address counts from the next attempt on.
    rig.handle.set(&pod, "10.0.0.2", targets.to_vec());
    pass(9.0).await;
    let hosts: Vec<_> = rig.net.tries().into_iter().map(|one| one.host).collect();
    assert_eq!(hosts, ["", "10.0.0.1", "10.0.0.2", "10.0.0.2"]);
}
