//! What operators read.

use rubelet_pod_plan::ProbeKind::*;

use super::rig::*;
use crate::ProbeOutcome;

#[tokio::test(start_paused = true)]
async fn events_say_what_the_kubelet_would_say() {
    for (kind, answer, event) in [
        (
            Liveness,
            fails(),
            "Unhealthy Liveness probe failed: HTTP probe failed with statuscode: 500",
        ),
        (
            Startup,
            hangs(),
            "Unhealthy Startup probe failed: context deadline exceeded",
        ),
        (
            Readiness,
            answers(
                ProbeOutcome::Warned,
                "Probe terminated redirects, Response body: ",
            ),
            "ProbeWarning Readiness probe warning: Probe terminated redirects, Response body: ",
        ),
        (
            Readiness,
            answers(
                ProbeOutcome::Errored,
                "strconv.Atoi: parsing \"web\": invalid syntax",
            ),
            "Unhealthy Readiness probe errored and resulted in unknown state: strconv.Atoi: parsing \"web\": invalid syntax",
        ),
    ] {
        let rig = Rig::running();
        pass(0.5).await;
        let probe = "{httpGet: {port: 80}, periodSeconds: 100}";
        let pod = pod(
            "p",
            &format!("startupProbe: {probe}, livenessProbe: {probe}, readinessProbe: {probe}"),
        );
        rig.net.on(move |_| answer.clone());
        rig.set(&pod, &[rig.target(kind, "c1")]);
        // In its first period a container is not blamed for what it does not do yet.
        pass(if kind == Readiness { 5.0 } else { 105.0 }).await;
        assert_eq!(
            rig.events(),
            [format!("spec.containers{{app}} Warning {event} x1")]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn each_failure_is_reported_also_below_the_threshold_and_successes_are_not() {
    let rig = Rig::running();
    pass(0.5).await;
    let pod = pod("p", &live("periodSeconds: 10, failureThreshold: 5"));
    rig.net
        .play([passes(), fails(), passes(), fails(), fails()]);
    rig.set(&pod, &[rig.target(Liveness, "c1")]);
    pass(60.0).await;
    let failed = "Liveness probe failed: HTTP probe failed with statuscode: 500";
    assert_eq!(
        rig.events(),
        [format!(
            "spec.containers{{app}} Warning Unhealthy {failed} x3"
        )]
    );
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_panics_is_not_the_end_of_the_probe() {
    let rig = Rig::running();
    pass(0.5).await;
    let pod = pod("p", &live("periodSeconds: 10"));
    rig.net.on(|one| {
        assert!(one.at > 5.0, "the first attempt panics, as the test wants");
        passes()
    });
    rig.set(&pod, &[rig.target(Liveness, "c1")]);
    pass(5.0).await;
    pass(16.0).await;
    assert_eq!(rig.net.times(), [0.5, 10.5, 20.5]);
}
