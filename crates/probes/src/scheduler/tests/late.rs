//! Attempts that the agent ran late.

use std::time::Duration;

use rubelet_cri::{CriError, CriErrorKind};
use rubelet_pod_plan::{ProbeKind::*, ProbeResult::*};
use tokio::time::advance;

use super::rig::*;

/// One failure ends the container.
const STRICT: &str = "periodSeconds: 10, failureThreshold: 1";

#[tokio::test(start_paused = true)]
async fn a_failure_while_this_process_stood_still_does_not_count_and_is_tried_again_at_once() {
    for stalled in [hangs().stalled(30.0), fails().stalled(5.0)] {
        let rig = Rig::running();
        pass(0.5).await;
        let pod = pod("p", &live(STRICT));
        rig.net.play([stalled, passes()]);
        rig.set(&pod, &[rig.target(Liveness, "c1")]);
        pass(35.0).await;
        let times = rig.net.times();
        assert!(times.len() >= 2 && times[1] < 32.0, "{times:?}");
        assert_eq!(rig.outcome(&pod, "c1", Liveness), Some(Success));
        assert_eq!(rig.report(&pod, "c1", Liveness).unwrap().late, 1);
        assert!(rig.events().is_empty(), "{:?}", rig.events());
    }
}

#[tokio::test(start_paused = true)]
async fn the_attempt_that_follows_a_late_one_decides() {
    let rig = Rig::running();
    pass(0.5).await;
    let pod = pod("p", &live(STRICT));
    rig.net.play([passes(), hangs().stalled(30.0), hangs()]);
    rig.set(&pod, &[rig.target(Liveness, "c1")]);
    pass(50.0).await;
    assert_eq!(rig.outcome(&pod, "c1", Liveness), Some(Failure));
    assert_eq!(rig.events().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_success_counts_however_late_it_is() {
    let rig = Rig::running();
    pass(0.5).await;
    let pod = pod("p", "readinessProbe: {httpGet: {port: 80}}");
    rig.net.play([passes().stalled(30.0)]);
    rig.set(&pod, &[rig.target(Readiness, "c1")]);
    pass(31.0).await;
    assert_eq!(rig.outcome(&pod, "c1", Readiness), Some(Success));
    assert_eq!(rig.report(&pod, "c1", Readiness).unwrap().late, 0);
}

#[tokio::test(start_paused = true)]
async fn after_three_late_attempts_the_next_is_made_when_it_is_due() {
    let rig = Rig::running();
    pass(0.5).await;
    let pod = pod("p", &live(STRICT));
    rig.net.play([(); 3].map(|()| hangs().stalled(0.5)));
    rig.set(&pod, &[rig.target(Liveness, "c1")]);
    pass(11.0).await;
    assert_eq!(rig.net.times(), [0.5, 2.0, 3.5, 10.5]);
    assert_eq!(rig.outcome(&pod, "c1", Liveness), Some(Success));
    assert_eq!(rig.report(&pod, "c1", Liveness).unwrap().late, 3);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_whose_timer_fired_late_is_made_again_before_it_counts() {
    let rig = Rig::running();
    pass(0.5).await;
    let pod = pod("p", &live(STRICT));
    rig.set(&pod, &[rig.target(Liveness, "c1")]);
    pass(5.0).await;
    rig.net.play([hangs(), passes()]);
    // The process stands still past the next attempt.
    advance(Duration::from_secs(25)).await;
    pass(3.0).await;
    assert_eq!(rig.net.times(), [0.5, 30.5, 31.5]);
    assert_eq!(rig.outcome(&pod, "c1", Liveness), Some(Success));
    // The missed points of the grid are not made up for.
    pass(8.0).await;
    assert_eq!(rig.net.times()[3..], [40.5]);

    // An answer is an answer, however late it was asked for.
    rig.net.play([fails()]);
    advance(Duration::from_secs(25)).await;
    pass(1.0).await;
    assert_eq!(rig.outcome(&pod, "c1", Liveness), Some(Failure));
}

#[tokio::test(start_paused = true)]
async fn hung_pods_that_wait_for_their_turn_are_found_out_all_the_same() {
    let rig = Rig::running();
    pass(0.5).await;
    rig.net.on(|_| hangs());
    let fields = live("timeoutSeconds: 2, periodSeconds: 30, failureThreshold: 1");
    let pods: Vec<_> = (0..1000)
        .map(|number| pod(&format!("p{number}"), &fields))
        .collect();
    for pod in &pods {
        rig.set(pod, &[rig.target(Liveness, "c1")]);
    }
    pass(59.0).await;
    let failed = |pod: &_| rig.outcome(pod, "c1", Liveness) == Some(Failure);
    assert!(pods.iter().all(|pod| failed(pod)));
    let late = pods
        .iter()
        .map(|pod| rig.report(pod, "c1", Liveness).unwrap().late);
    let late: u64 = late.sum();
    assert!(late > 0 && late < 2000, "{late}");
}

#[tokio::test(start_paused = true)]
async fn a_command_that_the_runtime_ended_late_counts_unless_this_process_stood_still() {
    let rig = Rig::running();
    pass(0.5).await;
    let pod = pod(
        "p",
        "livenessProbe: {exec: {command: [check]}, failureThreshold: 1}",
    );
    let no_answer = CriErrorKind::DeadlineExceeded(Duration::ZERO);
    rig.runtime.on(move |_| {
        let error = CriError::new("ExecSync", no_answer, "timeout 1s exceeded");
        (Duration::from_secs(20), Err(error))
    });
    rig.set(&pod, &[rig.target(Liveness, "c1")]);
    pass(51.0).await;
    assert_eq!(rig.outcome(&pod, "c1", Liveness), Some(Failure));
    assert_eq!(rig.report(&pod, "c1", Liveness).unwrap().late, 0);

    let calls = rig.runtime.calls().len();
    rig.set(&pod, &[rig.target(Liveness, "c2")]);
    pass(0.1).await;
    assert_eq!(rig.runtime.calls().len(), calls + 1);
    // This process stands still for a minute while the command runs.
    advance(Duration::from_secs(60)).await;
    pass(1.0).await;
    assert_eq!(rig.outcome(&pod, "c2", Liveness), None);
    assert_eq!(rig.runtime.calls().len(), calls + 2, "tried again at once");
}
