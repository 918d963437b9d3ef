//! Unary calls.

use std::time::Duration;

use rubelet_cri::{CriErrorKind, ImageService, RuntimeService, v1};
use tokio::time::Instant;

use crate::fixture::{Fixture, create, run_sandbox, soon, start, status, version};

#[tokio::test]
async fn without_rules_nothing_is_changed() {
    let fixture = Fixture::new(&[]).await;
    assert_eq!(
        version(&fixture.client).await,
        version(&fixture.direct).await
    );
    let (sandbox, container) = fixture.start_pod("web").await;
    assert_eq!(
        status(&fixture.client, &container).await,
        status(&fixture.direct, &container).await
    );
    let absent = status(&fixture.client, "absent").await.unwrap_err();
    assert_eq!(absent, status(&fixture.direct, "absent").await.unwrap_err());
    assert_eq!(absent.kind, CriErrorKind::NotFound);
    let images = v1::ListImagesRequest::default();
    assert_eq!(
        fixture.client.list_images(images.clone()).await,
        fixture.direct.list_images(images).await
    );
    let stop = v1::StopPodSandboxRequest {
        pod_sandbox_id: sandbox,
    };
    fixture.client.stop_pod_sandbox(stop).await.unwrap();
    assert_eq!(fixture.chaos.injected(), []);
}

#[tokio::test]
async fn the_deadline_of_the_client_reaches_the_runtime() {
    let fixture = Fixture::with_timeout(&[], Duration::from_millis(200)).await;
    let hang = fixture.sim.hang("Version", rubelet_sim::Subject::any());
    let error = soon(version(&fixture.client)).await.unwrap_err();
    assert!(
        matches!(error.kind, CriErrorKind::DeadlineExceeded(_)),
        "{error}"
    );
    drop(hang);
}

#[tokio::test]
async fn a_call_can_fail_before_it_is_made() {
    let fixture = Fixture::new(&["RunPodSandbox fail=RESOURCE_EXHAUSTED times=1"]).await;
    let error = run_sandbox(&fixture.client, "web").await.unwrap_err();
    assert_eq!(error.kind, CriErrorKind::ResourceExhausted);
    assert!(
        error.message.contains("chaos-cri: RunPodSandbox fail"),
        "{error}"
    );
    assert!(fixture.sim.sandboxes("web-uid").is_empty());
    run_sandbox(&fixture.client, "web").await.unwrap();
    assert_eq!(fixture.counts(), [1]);
}

#[tokio::test]
async fn a_call_can_fail_after_it_was_done() {
    let fixture = Fixture::new(&["* lost=UNAVAILABLE"]).await;
    let error = run_sandbox(&fixture.client, "web").await.unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    assert_eq!(fixture.sim.sandboxes("web-uid").len(), 1);
}

#[tokio::test]
async fn a_response_can_be_lost_without_an_error() {
    let fixture = Fixture::with_timeout(&["RunPodSandbox lost"], Duration::from_secs(1)).await;
    let error = soon(run_sandbox(&fixture.client, "web")).await.unwrap_err();
    assert!(
        matches!(error.kind, CriErrorKind::DeadlineExceeded(_)),
        "{error}"
    );
    let listed = async {
        while fixture.sim.sandboxes("web-uid").is_empty() {
            tokio::task::yield_now().await;
        }
    };
    soon(listed).await;
}

#[tokio::test]
async fn one_container_hangs_and_the_others_do_not() {
    let fixture = Fixture::with_timeout(&[], Duration::from_millis(500)).await;
    let (_, first) = fixture.start_pod("first").await;
    let (_, second) = fixture.start_pod("second").await;
    for rule in [
        format!("ContainerStatus id={first} hang"),
        "ContainerStatus pod=first hang".to_owned(),
        "ContainerStatus pod=default/fir* stall".to_owned(),
    ] {
        fixture.set_rules(&[&rule]);
        let hung = soon(status(&fixture.client, &first)).await.unwrap_err();
        assert!(
            matches!(hung.kind, CriErrorKind::DeadlineExceeded(_)),
            "{rule}: {hung}"
        );
        status(&fixture.patient, &second).await.unwrap();
    }
}

#[tokio::test]
async fn a_delay_has_its_duration() {
    let fixture = Fixture::new(&["Version delay=300ms"]).await;
    let begin = Instant::now();
    version(&fixture.client).await.unwrap();
    assert!(begin.elapsed() >= Duration::from_millis(300));
}

#[tokio::test]
async fn an_aborted_response_fails_only_its_call() {
    for rule in ["StartContainer eof times=1", "StartContainer reset times=1"] {
        let fixture = Fixture::new(&[rule]).await;
        let sandbox = run_sandbox(&fixture.client, "web").await.unwrap();
        let container = create(&fixture.client, "web", &sandbox).await.unwrap();
        soon(start(&fixture.client, &container)).await.unwrap_err();
        assert!(fixture.sim.running("web-uid", "main").is_some(), "{rule}");
        version(&fixture.client).await.unwrap();
        assert_eq!(fixture.chaos.connections(), 1);
    }
}

#[tokio::test]
async fn an_exited_container_stays_reported_as_running() {
    let fixture = Fixture::new(&[]).await;
    let (_, container) = fixture.start_pod("web").await;
    fixture.set_rules(&[&format!("*Container* id={container} running")]);
    fixture.sim.kill_container(&container, 137, "Error");
    let shown = status(&fixture.client, &container)
        .await
        .unwrap()
        .status
        .unwrap();
    assert_eq!(shown.state(), v1::ContainerState::ContainerRunning);
    assert_eq!((shown.finished_at, shown.exit_code), (0, 0));
    let truth = status(&fixture.direct, &container)
        .await
        .unwrap()
        .status
        .unwrap();
    assert_eq!(truth.state(), v1::ContainerState::ContainerExited);
    let request = v1::ListContainersRequest::default();
    let listed = fixture.client.list_containers(request).await.unwrap();
    let state = listed.containers[0].state();
    assert_eq!(state, v1::ContainerState::ContainerRunning);
    fixture.set_rules(&[]);
    assert_eq!(
        status(&fixture.client, &container).await,
        status(&fixture.direct, &container).await
    );
}

#[tokio::test]
async fn a_sandbox_status_can_be_missing_or_of_another_pod() {
    let fixture = Fixture::new(&[]).await;
    let (sandbox, _) = fixture.start_pod("web").await;
    let ask = || {
        let pod_sandbox_id = sandbox.clone();
        fixture
            .client
            .pod_sandbox_status(v1::PodSandboxStatusRequest {
                pod_sandbox_id,
                verbose: false,
            })
    };
    fixture.set_rules(&["PodSandboxStatus nil-sandbox"]);
    assert_eq!(ask().await.unwrap().status, None);
    fixture.set_rules(&["PodSandboxStatus wrong-uid=u7"]);
    let status = ask().await.unwrap().status.unwrap();
    assert_eq!(status.metadata.unwrap().uid, "u7");
}

#[tokio::test]
async fn injected_faults_are_logged_with_seed_and_rule() {
    let fixture = Fixture::new(&["Version fail", "Status fail times=2"]).await;
    for _ in 0..3 {
        version(&fixture.client).await.unwrap_err();
        let _ = fixture.client.status(v1::StatusRequest::default()).await;
    }
    assert_eq!(fixture.counts(), [2, 3]);
    let lines = fixture.chaos.recent();
    assert_eq!(lines.len(), 5);
    assert_eq!(lines[0], "#1 seed=1 rule=\"Version fail\": Version");
}
