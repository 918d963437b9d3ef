//! Injected faults.

use std::time::Duration;

use rubelet_cri::{CriErrorKind, RuntimeService, v1};
use rubelet_sim::{CallOutcome, Fault, Sim, Subject};
use tokio::time::Instant;

use crate::pod::{Pod, secs};

#[tokio::test(start_paused = true)]
async fn a_failure_before_the_effect_has_none_and_one_after_it_has() {
    let pod = Pod::new();
    let limit = CriErrorKind::DeadlineExceeded(secs(120));
    pod.sim.fail_next("RunPodSandbox", limit, false);
    assert_eq!(pod.run().await.unwrap_err().kind, limit);
    assert!(pod.sim.sandboxes(&pod.uid).is_empty());

    pod.sim.fail_next("RunPodSandbox", limit, true);
    assert_eq!(pod.run().await.unwrap_err().kind, limit);
    assert_eq!(pod.sim.sandboxes(&pod.uid).len(), 1);
    let taken = pod.run().await.expect_err("the first one has the name");
    assert!(taken.message.contains("reserved"), "{taken}");
}

#[tokio::test(start_paused = true)]
async fn a_fault_applies_to_its_subject_and_count() {
    let sim = Sim::new();
    sim.add_image("app");
    let (a, b) = (Pod::named(&sim, "a"), Pod::named(&sim, "b"));
    sim.inject(
        Fault::of("RunPodSandbox")
            .on(Subject::pod("uid-a"))
            .times(2),
    );
    b.run().await.unwrap();
    a.run().await.unwrap_err();
    a.run().await.unwrap_err();
    let sandbox = a.run().await.unwrap();

    sim.inject(
        Fault::of("CreateContainer")
            .on(Subject::container("uid-a", "x"))
            .always(),
    );
    for _ in 0..10 {
        a.create(&sandbox, "x", 0).await.unwrap_err();
    }
    a.create(&sandbox, "y", 0).await.unwrap();
    sim.clear_faults();
    a.create(&sandbox, "x", 0).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_hung_call_continues_when_released_and_delays_no_other() {
    let pod = Pod::new();
    let (sandbox, id) = pod.up("web").await;
    let hang = pod.sim.hang("ContainerStatus", Subject::id(&id));
    let (status, ()) = tokio::join!(pod.status(&id), async {
        hang.reached().await;
        pod.sandbox_status(&sandbox).await.unwrap();
        tokio::time::sleep(secs(9)).await;
        assert_eq!(hang.held(), 1);
        hang.release();
    });
    status.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_hung_call_ends_at_its_deadline_with_or_without_its_effect() {
    let pod = Pod::new();
    let hang = pod.sim.hang("RunPodSandbox", Subject::pod(&pod.uid));
    let start = Instant::now();
    let error = pod.run().await.unwrap_err();
    assert_eq!(error.to_string(), "RunPodSandbox: no answer within 4m0s");
    assert_eq!(start.elapsed().as_secs(), 240);
    assert_eq!(hang.held(), 0);
    drop(hang);
    assert!(pod.sim.sandboxes(&pod.uid).is_empty());

    let _hang = pod.sim.hang_after_effect("RunPodSandbox", Subject::any());
    assert!(pod.run().await.unwrap_err().is_deadline_exceeded());
    assert_eq!(pod.sim.sandboxes(&pod.uid).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn while_the_runtime_is_down_calls_fail_but_containers_run() {
    let pod = Pod::new();
    pod.sim
        .on_image("app", rubelet_sim::Behavior::exits(secs(10), 0));
    let (_, id) = pod.up("job").await;
    pod.sim.set_down(true);
    let error = pod.status(&id).await.unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    tokio::time::sleep(secs(30)).await;
    pod.sim.set_down(false);
    let status = pod.status(&id).await.unwrap();
    assert_eq!(
        (status.finished_at - status.started_at + 500_000_000) / 1_000_000_000,
        10
    );
}

#[tokio::test(start_paused = true)]
async fn a_restart_fails_the_calls_in_progress() {
    let pod = Pod::new();
    let (_, id) = pod.up("web").await;
    let hang = pod.sim.hang("ContainerStatus", Subject::any());
    let (status, ()) = tokio::join!(pod.status(&id), async {
        hang.reached().await;
        pod.sim.restart();
    });
    assert!(status.unwrap_err().is_unavailable());
    drop(hang);
    pod.status(&id).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_effect_of_a_call_is_in_the_middle_of_its_latency() {
    let pod = Pod::new();
    pod.sim.set_latency(secs(1));
    pod.sim.set_latency_of("RunPodSandbox", secs(10));
    let start = Instant::now();
    let (sandbox, ()) = tokio::join!(pod.run(), async {
        tokio::time::sleep(Duration::from_millis(4900)).await;
        assert!(pod.sim.sandboxes(&pod.uid).is_empty());
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(pod.sim.sandboxes(&pod.uid).len(), 1);
    });
    assert_eq!(start.elapsed(), secs(10));
    pod.sandbox_status(&sandbox.unwrap()).await.unwrap();
    assert_eq!(start.elapsed(), secs(11));
}

#[tokio::test(start_paused = true)]
async fn the_runtime_reports_the_status_that_the_test_sets() {
    let sim = Sim::new();
    sim.set_ready(true, false);
    sim.set_cgroup_driver(v1::CgroupDriver::Systemd);
    let status = sim
        .status(v1::StatusRequest::default())
        .await
        .unwrap()
        .status
        .unwrap();
    let conditions = status.conditions.iter();
    let conditions: Vec<_> = conditions
        .map(|of| (of.r#type.as_str(), of.status))
        .collect();
    assert_eq!(
        conditions,
        [("RuntimeReady", true), ("NetworkReady", false)]
    );
    let config = sim
        .runtime_config(v1::RuntimeConfigRequest::default())
        .await
        .unwrap();
    assert_eq!(
        config.linux.unwrap().cgroup_driver(),
        v1::CgroupDriver::Systemd
    );
}

#[tokio::test(start_paused = true)]
async fn the_record_has_the_end_of_each_call_even_a_dropped_one() {
    let pod = Pod::new();
    let (_, id) = pod.up("web").await;
    let mark = pod.sim.oracle().mark();
    let hang = pod.sim.hang("ContainerStatus", Subject::any());
    tokio::time::timeout(secs(1), pod.status(&id))
        .await
        .unwrap_err();
    drop(hang);
    pod.status("nope").await.unwrap_err();
    pod.status(&id).await.unwrap();

    let calls = pod.sim.oracle().calls_since(mark);
    let outcomes: Vec<_> = calls
        .iter()
        .map(|call| &call.ended.as_ref().unwrap().1)
        .collect();
    assert!(
        matches!(
            outcomes[..],
            [
                CallOutcome::Dropped,
                CallOutcome::Failed(CriErrorKind::NotFound, _),
                CallOutcome::Done
            ]
        ),
        "{outcomes:?}"
    );
    assert_eq!(calls[0].ended.as_ref().unwrap().0 - calls[0].began, secs(1));
}

#[test]
#[should_panic(expected = "no RPC is called \"StopContainers\"")]
fn a_misspelled_rpc_panics() {
    let _ = Fault::of("StopContainers");
}
