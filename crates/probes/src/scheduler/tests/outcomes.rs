//! What attempts amount to, who is notified, and what is forgotten.

use std::{slice::from_ref, sync::Arc, time::Duration};

use rubelet_pod_plan::{ProbeKind::*, ProbeResult::*};
use tokio::time::timeout;

use super::rig::*;

#[tokio::test(start_paused = true)]
async fn thresholds_decide_and_each_change_is_reported_to_that_pod_only() {
    let rig = Rig::running();
    pass(0.5).await;
    let readiness = "readinessProbe: {httpGet: {port: 80}, periodSeconds: 10, successThreshold: 2, failureThreshold: 3}";
    let (one, other) = (pod("one", readiness), pod("other", &live("")));
    rig.net.play([
        passes(),
        passes(),
        fails(),
        fails(),
        fails(),
        passes(),
        passes(),
    ]);
    let mut told = rig.handle.outcomes(&one.uid);
    let other_told = rig.handle.outcomes(&other.uid);
    rig.set(&one, &[rig.target(Readiness, "c1")]);
    rig.handle.set(&other, "", vec![rig.target(Liveness, "d1")]);
    let mut story = Vec::new();
    for _ in 0..8 {
        pass(1.0).await;
        story.push((
            rig.outcome(&one, "c1", Readiness),
            told.has_changed().unwrap(),
        ));
        told.mark_unchanged();
        pass(9.0).await;
    }
    assert_eq!(
        story,
        [
            (None, false),
            (Some(Success), true),
            (Some(Success), false),
            (Some(Success), false),
            (Some(Failure), true),
            (Some(Failure), false),
            (Some(Success), true),
            (Some(Success), false),
        ]
    );
    assert!(!other_told.has_changed().unwrap());
}

#[tokio::test(start_paused = true)]
async fn an_outcome_that_confirms_the_state_before_a_restart_is_reported_once() {
    let rig = Rig::running();
    let started = rig.clock.now();
    let pod = pod(
        "p",
        "readinessProbe: {httpGet: {port: 80}, periodSeconds: 10}",
    );
    let mut target = target(Readiness, "c1", started);
    target.initial = Success;
    let mut told = rig.handle.outcomes(&pod.uid);
    rig.set(&pod, &[target]);
    assert_eq!(rig.outcome(&pod, "c1", Readiness), None);
    pass(10.1).await;
    assert_eq!(rig.outcome(&pod, "c1", Readiness), Some(Success));
    assert!(told.has_changed().unwrap());
    told.mark_unchanged();
    pass(30.0).await;
    assert!(!told.has_changed().unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_failed_liveness_probe_is_not_tried_again_until_the_container_is_another_one() {
    let rig = Rig::running();
    pass(0.5).await;
    let pod = pod("p", &live("periodSeconds: 5, failureThreshold: 2"));
    rig.net.on(|_| fails());
    rig.set(&pod, &[rig.target(Liveness, "c1")]);
    pass(60.0).await;
    assert_eq!(
        rig.net.times(),
        [0.5, 5.5, 10.5],
        "the first one counts not"
    );
    assert_eq!(rig.outcome(&pod, "c1", Liveness), Some(Failure));
    let report = rig.report(&pod, "c1", Liveness).unwrap();
    assert_eq!(
        (report.outcome, report.length, report.next),
        (Failure, 2, None)
    );
    // A new plan names it again, with what it knows.
    let mut again = rig.target(Liveness, "c1");
    again.initial = Failure;
    rig.set(&pod, &[again]);
    pass(60.0).await;
    assert_eq!(rig.net.times().len(), 3);

    // While the container is stopped and the next one started, nothing is tried.
    rig.set(&pod, &[]);
    pass(5.0).await;
    assert_eq!(rig.outcome(&pod, "c1", Liveness), Some(Failure));
    rig.net.on(|_| passes());
    rig.set(&pod, &[rig.target(Liveness, "c2")]);
    pass(1.0).await;
    assert_eq!(rig.net.times().len(), 4);
    assert_eq!(rig.outcome(&pod, "c2", Liveness), Some(Success));
    // Nobody can ask for the old one any more.
    assert_eq!(rig.outcome(&pod, "c1", Liveness), None);
    assert_eq!(rig.report(&pod, "c1", Liveness), None);
}

#[tokio::test(start_paused = true)]
async fn a_startup_probe_that_failed_for_good_is_not_tried_again() {
    let rig = Rig::running();
    pass(0.5).await;
    let startup = "startupProbe: {httpGet: {port: 80}, periodSeconds: 1, failureThreshold: 3}";
    let pod = pod("p", startup);
    rig.net.on(|_| fails());
    rig.set(&pod, &[rig.target(Startup, "c1")]);
    pass(10.0).await;
    assert_eq!(rig.net.times(), [0.5, 1.5, 2.5, 3.5], "three whole periods");
    assert_eq!(rig.outcome(&pod, "c1", Startup), Some(Failure));
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_is_no_longer_wanted_ends_with_the_attempt_under_way() {
    let rig = Rig::running();
    pass(0.5).await;
    let pod = pod("p", &live("timeoutSeconds: 60, failureThreshold: 1"));
    rig.net.on(|_| hangs());
    rig.set(&pod, &[rig.target(Liveness, "c1")]);
    pass(5.0).await;
    assert_eq!(rig.net.under_way(), 1);
    rig.set(&pod, &[]);
    pass(0.1).await;
    assert_eq!(rig.net.under_way(), 0);
    pass(200.0).await;
    assert_eq!(rig.net.times().len(), 1);
    assert_eq!(rig.outcome(&pod, "c1", Liveness), None);
    assert!(rig.events().is_empty());
}

#[tokio::test(start_paused = true)]
async fn another_instance_begins_again_while_the_attempt_of_the_old_one_is_under_way() {
    let rig = Rig::running();
    pass(0.5).await;
    let pod = pod("p", &live("timeoutSeconds: 60, failureThreshold: 1"));
    rig.net.play([hangs(), passes()]);
    rig.set(&pod, &[rig.target(Liveness, "c1")]);
    pass(5.0).await;
    rig.set(&pod, &[rig.target(Liveness, "c2")]);
    pass(70.0).await;
    assert_eq!(rig.outcome(&pod, "c1", Liveness), None);
    assert_eq!(rig.outcome(&pod, "c2", Liveness), Some(Success));
    assert_eq!(rig.net.times()[..2], [0.5, 5.5]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_read_again_goes_on_as_before() {
    let rig = Rig::running();
    pass(0.5).await;
    let first = pod("p", &live("periodSeconds: 10"));
    let target = rig.target(Liveness, "c1");
    rig.net.play([passes(), fails(), fails()]);
    rig.set(&first, from_ref(&target));
    pass(25.0).await;
    let again = Arc::new(rubelet_api::pod::Pod::clone(&first));
    rig.net.play([fails()]);
    rig.set(&again, from_ref(&target));
    pass(10.0).await;
    assert_eq!(rig.net.times(), [0.5, 10.5, 20.5, 30.5]);
    assert_eq!(
        rig.outcome(&first, "c1", Liveness),
        Some(Failure),
        "three in a row"
    );

    // Another probe of the same instance is tried at once, and counts from the beginning.
    let other = pod("p", &live("periodSeconds: 20"));
    assert_eq!(other.uid, first.uid);
    rig.set(&other, &[target]);
    pass(40.0).await;
    assert_eq!(rig.net.times()[4..], [35.5, 55.5]);
    assert_eq!(rig.outcome(&first, "c1", Liveness), Some(Success));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_left_of_pods_that_are_forgotten() {
    let mut rig = Rig::new();
    let mut task = rig.task.take().unwrap();
    rig.net.on(|one| {
        if one.path == "/live" {
            hangs()
        } else {
            passes()
        }
    });
    let fields = format!(
        "{}, readinessProbe: {{httpGet: {{port: 80}}}}",
        live("timeoutSeconds: 30")
    );
    let pods: Vec<_> = (0..50)
        .map(|number| pod(&format!("p{number}"), &fields))
        .collect();
    for pod in &pods {
        let targets = [Liveness, Readiness].map(|kind| rig.target(kind, "c1"));
        rig.set(pod, &targets);
    }
    let _ = timeout(Duration::from_secs(15), task.work()).await;
    assert_eq!((task.pods.len(), task.probes.len()), (50, 100));
    assert_eq!(rig.net.under_way(), 50);
    for pod in &pods {
        rig.handle.forget(&pod.uid);
    }
    let _ = timeout(Duration::from_secs(60), task.work()).await;
    assert!(task.pods.is_empty() && task.probes.is_empty() && task.attempts.is_empty());
    assert_eq!(task.wheel.next(), None, "nothing wakes it any more");
    assert_eq!(rig.net.under_way(), 0);
    for pod in &pods {
        assert!(rig.handle.reports(&pod.uid).is_empty());
        assert_eq!(rig.outcome(pod, "c1", Readiness), None);
    }
}

#[tokio::test(start_paused = true)]
async fn reports_tell_the_last_attempt_and_the_next() {
    let rig = Rig::running();
    pass(0.5).await;
    let pod = pod("p", &live("periodSeconds: 10, timeoutSeconds: 5"));
    let target = rig.target(Liveness, "c1");
    let second = |of: f64| target.started_at + Duration::from_secs_f64(of);
    rig.net
        .play([passes().after(2.0), fails().after(1.0), fails()]);
    rig.set(&pod, from_ref(&target));
    pass(1.0).await;
    let report = rig.report(&pod, "c1", Liveness).unwrap();
    assert_eq!(
        (report.at, report.length, report.outcome),
        (None, 0, Success)
    );
    pass(2.0).await;
    let report = rig.report(&pod, "c1", Liveness).unwrap();
    assert_eq!((&*report.container, report.length), ("app", 1));
    assert!(report.at.unwrap() >= second(2.0));
    assert_eq!(report.latency.as_secs(), 2);
    assert_eq!(&*report.output, "ok");
    let next = report.next.unwrap();
    assert!(next >= second(10.0) && next <= second(10.02), "{next}");
    pass(20.0).await;
    let report = rig.report(&pod, "c1", Liveness).unwrap();
    assert_eq!(
        (report.length, report.outcome, report.late),
        (2, Success, 0)
    );
    assert_eq!(&*report.output, "HTTP probe failed with statuscode: 500");
}

#[tokio::test(start_paused = true)]
async fn attempts_are_counted_over_restarts_and_the_numbers_go_with_the_pod() {
    let rig = Rig::running();
    pass(0.5).await;
    let pod = pod(
        "p",
        "readinessProbe: {httpGet: {port: 80}, periodSeconds: 10}",
    );
    rig.net.play([passes(), fails(), passes()]);
    rig.set(&pod, &[rig.target(Readiness, "c1")]);
    pass(15.0).await;
    rig.set(&pod, &[rig.target(Readiness, "c2")]);
    pass(1.0).await;
    let totals = || -> Vec<String> {
        let page = rig.handle.metrics();
        let lines = page.lines();
        let ours = lines.filter(|line| line.starts_with("prober_probe_total{"));
        let parts = ours.map(|line| line.split("probe_type=").nth(1).unwrap().to_owned());
        parts.collect()
    };
    assert_eq!(
        totals(),
        [
            "\"Readiness\",result=\"failed\"} 1",
            "\"Readiness\",result=\"successful\"} 2",
        ]
    );
    let page = rig.handle.metrics();
    assert!(page.contains("process_start_time_seconds "), "{page}");
    assert!(page.contains(&format!("pod_uid=\"{}\"", pod.uid.as_str())));
    rig.handle.forget(&pod.uid);
    assert!(totals().is_empty());
}
