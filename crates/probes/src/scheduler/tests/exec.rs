//! Commands as probes.

use std::time::Duration;

use rubelet_cri::{CriError, CriErrorKind};
use rubelet_pod_plan::{ProbeKind::*, ProbeResult::*};

use super::rig::*;

const CHECK: &str = "readinessProbe: {exec: {command: [sh, -c, 'test \"$(MODE)\" = $(WHERE)$(NONE)']}, timeoutSeconds: 3}, \
     env: [{name: MODE, value: first}, {name: MODE, value: fast}, {name: WHERE, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]";

#[tokio::test(start_paused = true)]
async fn the_command_runs_in_the_container_with_the_values_of_the_specification() {
    let rig = Rig::running();
    pass(0.5).await;
    let pod = pod("p", CHECK);
    // A command needs no address.
    rig.handle.set(&pod, "", vec![rig.target(Readiness, "c1")]);
    pass(1.0).await;
    let calls = rig.runtime.calls();
    let (at, request) = &calls[0];
    assert_eq!(
        (*at, &*request.container_id, request.timeout),
        (0.5, "c1", 3)
    );
    assert_eq!(request.cmd, ["sh", "-c", "test \"fast\" = $(NONE)"]);
    assert_eq!(rig.outcome(&pod, "c1", Readiness), Some(Success));
    assert!(rig.events().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_a_failed_command_wrote_is_in_the_event() {
    let rig = Rig::running();
    pass(0.5).await;
    let pod = pod("p", CHECK);
    rig.runtime.on(|_| exit(1, "out\n", "err\n"));
    rig.set(&pod, &[rig.target(Readiness, "c1")]);
    pass(1.0).await;
    assert_eq!(
        rig.events(),
        ["spec.containers{app} Warning Unhealthy Readiness probe failed: out\nerr\n x1"]
    );

    let long = "é".repeat(8000);
    rig.runtime.on(move |_| exit(1, &long, &long));
    pass(10.0).await;
    let event = rig.events().pop().unwrap();
    assert_eq!(event.matches('é').count(), 5 * 1024);
    let kept = rig.report(&pod, "c1", Readiness).unwrap().output;
    assert_eq!(kept.len(), 1024);
}

#[tokio::test(start_paused = true)]
async fn a_command_that_takes_too_long_fails_in_the_kubelets_words() {
    let rig = Rig::running();
    pass(0.5).await;
    let pod = pod("p", CHECK);
    rig.runtime.on(|_| {
        let kind = CriErrorKind::DeadlineExceeded(Duration::ZERO);
        let error = CriError::new("ExecSync", kind, "timeout 3s exceeded");
        (Duration::from_millis(3020), Err(error))
    });
    rig.set(&pod, &[rig.target(Readiness, "c1")]);
    pass(4.0).await;
    assert_eq!(
        rig.events(),
        [
            "spec.containers{app} Warning Unhealthy Readiness probe failed: command timed out: \
             \"sh -c test \\\"fast\\\" = $(NONE)\" timed out after 3s x1"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_runtime_is_tried_three_times_and_says_nothing_of_the_container() {
    let rig = Rig::running();
    pass(0.5).await;
    let pod = pod(
        "p",
        "livenessProbe: {exec: {command: [check]}, failureThreshold: 1}",
    );
    rig.runtime.on(|_| {
        let error = CriError::new("ExecSync", CriErrorKind::Unavailable, "no connection");
        (Duration::ZERO, Err(error))
    });
    rig.set(&pod, &[rig.target(Liveness, "c1")]);
    pass(15.0).await;
    let times: Vec<f64> = rig.runtime.calls().into_iter().map(|(at, _)| at).collect();
    assert_eq!(times, [0.5, 0.5, 0.5, 10.5, 10.5, 10.5]);
    assert_eq!(rig.outcome(&pod, "c1", Liveness), None);
    assert_eq!(
        rig.events(),
        [
            "spec.containers{app} Warning Unhealthy Liveness probe errored and resulted in unknown \
             state: ExecSync: runtime unavailable: no connection x2"
        ]
    );
    let report = rig.report(&pod, "c1", Liveness).unwrap();
    assert_eq!((report.length, report.outcome), (0, Success));
}

#[tokio::test(start_paused = true)]
async fn only_a_few_commands_run_at_once_and_hung_ones_do_not_count_for_long() {
    let rig = Rig::running();
    pass(0.5).await;
    rig.runtime.on(|request| {
        let (_, answer) = exit(0, "", "");
        let quick = request.container_id.starts_with('q');
        (Duration::from_millis(if quick { 100 } else { 900 }), answer)
    });
    let fields = "livenessProbe: {exec: {command: [check]}, periodSeconds: 600}";
    for number in 0..32 {
        let pod = pod(&format!("p{number}"), fields);
        let id = format!("{}{number}", if number < 16 { 'q' } else { 's' });
        rig.set(&pod, &[rig.target(Liveness, &id)]);
    }
    pass(5.0).await;
    let calls = rig.runtime.calls();
    assert_eq!(calls.len(), 32);
    let at_once = calls.iter().filter(|(at, _)| *at <= 0.55).count();
    assert_eq!(at_once, 8);
    let last = calls.last().unwrap().0;
    assert!(last <= 1.8, "{last}");
}
