//! Calls with one answer.

use std::time::Duration;

use rubelet_cri::{CriErrorKind, ImageService, RuntimeService, v1};
use tokio::time::Instant;

use crate::place::{Place, create, run_sandbox, soon, start, status, version};

#[tokio::test]
async fn without_rules_nothing_is_changed() {
    let place = Place::new(&[]).await;
    assert_eq!(version(&place.client).await, version(&place.direct).await);
    let (sandbox, container) = place.start_pod("web").await;
    assert_eq!(
        status(&place.client, &container).await,
        status(&place.direct, &container).await
    );
    let absent = status(&place.client, "absent").await.unwrap_err();
    assert_eq!(absent, status(&place.direct, "absent").await.unwrap_err());
    assert_eq!(absent.kind, CriErrorKind::NotFound);
    let images = v1::ListImagesRequest::default();
    assert_eq!(
        place.client.list_images(images.clone()).await,
        place.direct.list_images(images).await
    );
    let stop = v1::StopPodSandboxRequest {
        pod_sandbox_id: sandbox,
    };
    place.client.stop_pod_sandbox(stop).await.unwrap();
    assert_eq!(place.chaos.injected(), []);
}

#[tokio::test]
async fn the_clients_deadline_reaches_the_runtime() {
    let place = Place::with_timeout(&[], Duration::from_millis(200)).await;
    let hang = place.sim.hang("Version", rubelet_sim::Subject::any());
    let error = soon(version(&place.client)).await.unwrap_err();
    assert!(
        matches!(error.kind, CriErrorKind::DeadlineExceeded(_)),
        "{error}"
    );
    drop(hang);
}

#[tokio::test]
async fn a_call_can_fail_before_it_is_made() {
    let place = Place::new(&["RunPodSandbox fail=RESOURCE_EXHAUSTED times=1"]).await;
    let error = run_sandbox(&place.client, "web").await.unwrap_err();
    assert_eq!(error.kind, CriErrorKind::ResourceExhausted);
    assert!(
        error.message.contains("chaos-cri: RunPodSandbox fail"),
        "{error}"
    );
    assert!(place.sim.sandboxes("web-uid").is_empty());
    run_sandbox(&place.client, "web").await.unwrap();
    assert_eq!(place.counts(), [1]);
}

#[tokio::test]
async fn a_call_can_fail_after_it_was_done() {
    let place = Place::new(&["* lost=UNAVAILABLE"]).await;
    let error = run_sandbox(&place.client, "web").await.unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    assert_eq!(place.sim.sandboxes("web-uid").len(), 1);
}

#[tokio::test]
async fn an_answer_can_be_lost_in_silence() {
    let place = Place::with_timeout(&["RunPodSandbox lost"], Duration::from_secs(1)).await;
    let error = soon(run_sandbox(&place.client, "web")).await.unwrap_err();
    assert!(
        matches!(error.kind, CriErrorKind::DeadlineExceeded(_)),
        "{error}"
    );
    let listed = async {
        while place.sim.sandboxes("web-uid").is_empty() {
            tokio::task::yield_now().await;
        }
    };
    soon(listed).await;
}

#[tokio::test]
async fn one_container_hangs_and_the_others_do_not() {
    let place = Place::with_timeout(&[], Duration::from_millis(500)).await;
    let (_, first) = place.start_pod("first").await;
    let (_, second) = place.start_pod("second").await;
    for rule in [
        format!("ContainerStatus id={first} hang"),
        "ContainerStatus pod=first hang".to_owned(),
        "ContainerStatus pod=default/fir* stall".to_owned(),
    ] {
        place.set_rules(&[&rule]);
        let hung = soon(status(&place.client, &first)).await.unwrap_err();
        assert!(
            matches!(hung.kind, CriErrorKind::DeadlineExceeded(_)),
            "{rule}: {hung}"
        );
        status(&place.patient, &second).await.unwrap();
    }
}

#[tokio::test]
async fn a_delay_is_as_long_as_it_says() {
    let place = Place::new(&["Version delay=300ms"]).await;
    let begin = Instant::now();
    version(&place.client).await.unwrap();
    assert!(begin.elapsed() >= Duration::from_millis(300));
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_a_failure_and_the_connection_goes_on() {
    for rule in ["StartContainer eof times=1", "StartContainer reset times=1"] {
        let place = Place::new(&[rule]).await;
        let sandbox = run_sandbox(&place.client, "web").await.unwrap();
        let container = create(&place.client, "web", &sandbox).await.unwrap();
        soon(start(&place.client, &container)).await.unwrap_err();
        assert!(place.sim.running("web-uid", "main").is_some(), "{rule}");
        version(&place.client).await.unwrap();
        assert_eq!(place.chaos.connections(), 1);
    }
}

#[tokio::test]
async fn a_container_that_has_ended_keeps_being_shown_as_running() {
    let place = Place::new(&[]).await;
    let (_, container) = place.start_pod("web").await;
    place.set_rules(&[&format!("*Container* id={container} running")]);
    place.sim.kill_container(&container, 137, "Error");
    let shown = status(&place.client, &container)
        .await
        .unwrap()
        .status
        .unwrap();
    assert_eq!(shown.state(), v1::ContainerState::ContainerRunning);
    assert_eq!((shown.finished_at, shown.exit_code), (0, 0));
    let truth = status(&place.direct, &container)
        .await
        .unwrap()
        .status
        .unwrap();
    assert_eq!(truth.state(), v1::ContainerState::ContainerExited);
    let request = v1::ListContainersRequest::default();
    let listed = place.client.list_containers(request).await.unwrap();
    let state = listed.containers[0].state();
    assert_eq!(state, v1::ContainerState::ContainerRunning);
    place.set_rules(&[]);
    assert_eq!(
        status(&place.client, &container).await,
        status(&place.direct, &container).await
    );
}

#[tokio::test]
async fn a_sandbox_status_can_be_missing_or_anothers() {
    let place = Place::new(&[]).await;
    let (sandbox, _) = place.start_pod("web").await;
    let ask = || {
        let pod_sandbox_id = sandbox.clone();
        place
            .client
            .pod_sandbox_status(v1::PodSandboxStatusRequest {
                pod_sandbox_id,
                verbose: false,
            })
    };
    place.set_rules(&["PodSandboxStatus nil-sandbox"]);
    assert_eq!(ask().await.unwrap().status, None);
    place.set_rules(&["PodSandboxStatus wrong-uid=u7"]);
    let status = ask().await.unwrap().status.unwrap();
    assert_eq!(status.metadata.unwrap().uid, "u7");
}

#[tokio::test]
async fn what_was_injected_is_told_with_seed_and_rule() {
    let place = Place::new(&["Version fail", "Status fail times=2"]).await;
    for _ in 0..3 {
        version(&place.client).await.unwrap_err();
        let _ = place.client.status(v1::StatusRequest::default()).await;
    }
    assert_eq!(place.counts(), [2, 3]);
    let lines = place.chaos.recent();
    assert_eq!(lines.len(), 5);
    assert_eq!(lines[0], "#1 seed=1 rule=\"Version fail\": Version");
}
