//! From the start of a pod to its end.

use std::time::Duration;

use futures_util::StreamExt;
use rubelet_cri::{RuntimeService, v1};

use crate::fixture::{Fixture, PATIENCE, create, ended, remove_pod, run_pod, shell, start, status};

pub(crate) async fn a_pod_starts_writes_its_log_and_is_removed(fixture: &Fixture) {
    let runtime = fixture.runtime().await;
    let pod = fixture.host_network("simple");
    let sandbox = run_pod(&runtime, &pod).await;
    let container = create(
        &runtime,
        &sandbox,
        &pod,
        shell("main", "echo hello; exit 3"),
    )
    .await;
    assert_eq!(
        status(&runtime, &container).await.state(),
        v1::ContainerState::ContainerCreated
    );
    start(&runtime, &container).await;
    let end = ended(&runtime, &container).await;
    assert_eq!((end.exit_code, &*end.reason), (3, "Error"));
    let log = std::fs::read_to_string(&end.log_path).unwrap();
    assert!(log.trim_end().ends_with(" stdout F hello"), "{log}");
    remove_pod(&runtime, &sandbox).await;
}

pub(crate) async fn a_pod_has_an_address_on_the_bridge(fixture: &Fixture) {
    let runtime = fixture.runtime().await;
    let pod = fixture.pod("bridged");
    let sandbox = run_pod(&runtime, &pod).await;
    let request = v1::PodSandboxStatusRequest {
        pod_sandbox_id: sandbox.clone(),
        verbose: true,
    };
    let status = runtime.pod_sandbox_status(request).await.unwrap();
    let ip = status.status.unwrap().network.unwrap().ip;
    let subnet = fixture.settings.network.subnets[0].to_string();
    let network: Vec<&str> = subnet.splitn(3, '.').take(2).collect();
    assert!(ip.starts_with(&network.join(".")), "{ip} in {subnet}");
    let script = "ip addr show eth0; hostname; cat /etc/resolv.conf /etc/hosts >/dev/null";
    let container = create(&runtime, &sandbox, &pod, shell("main", script)).await;
    start(&runtime, &container).await;
    let end = ended(&runtime, &container).await;
    let log = std::fs::read_to_string(&end.log_path).unwrap();
    assert_eq!(end.exit_code, 0, "{log}");
    assert!(log.contains(&format!("inet {ip}/")), "{log}");
    remove_pod(&runtime, &sandbox).await;
}

pub(crate) async fn a_container_is_asked_to_end_and_killed_after_its_grace(fixture: &Fixture) {
    let runtime = fixture.runtime().await;
    let pod = fixture.host_network("stopping");
    let sandbox = run_pod(&runtime, &pod).await;
    let polite = shell("polite", "trap 'exit 7' TERM; while :; do sleep 0.01; done");
    let polite = create(&runtime, &sandbox, &pod, polite).await;
    start(&runtime, &polite).await;
    // Until the trap is set.
    tokio::time::sleep(Duration::from_millis(100)).await;
    let stop = |id: &str, timeout| v1::StopContainerRequest {
        container_id: id.to_owned(),
        timeout,
    };
    runtime.stop_container(stop(&polite, 10)).await.unwrap();
    assert_eq!(status(&runtime, &polite).await.exit_code, 7);

    let stubborn = shell("stubborn", "trap '' TERM; while :; do sleep 0.01; done");
    let stubborn = create(&runtime, &sandbox, &pod, stubborn).await;
    start(&runtime, &stubborn).await;
    runtime.stop_container(stop(&stubborn, 1)).await.unwrap();
    let end = status(&runtime, &stubborn).await;
    assert_eq!((end.exit_code, &*end.reason), (137, "Error"));
    // Once more is no error, and neither is one that was never there.
    runtime.stop_container(stop(&stubborn, 1)).await.unwrap();
    runtime.stop_container(stop("none", 1)).await.unwrap();

    let idle = create(&runtime, &sandbox, &pod, shell("idle", "exit 0")).await;
    runtime.stop_container(stop(&idle, 1)).await.unwrap();
    let end = status(&runtime, &idle).await;
    assert_eq!(end.state(), v1::ContainerState::ContainerExited);
    remove_pod(&runtime, &sandbox).await;
}

pub(crate) async fn a_command_runs_in_a_container(fixture: &Fixture) {
    let runtime = fixture.runtime().await;
    let pod = fixture.host_network("exec");
    let sandbox = run_pod(&runtime, &pod).await;
    let container = create(&runtime, &sandbox, &pod, shell("main", "sleep 1000")).await;
    let exec = |script: &str, timeout| v1::ExecSyncRequest {
        container_id: container.clone(),
        cmd: vec!["/bin/sh".to_owned(), "-c".to_owned(), script.to_owned()],
        timeout,
    };
    assert!(
        runtime.exec_sync(exec("true", 1)).await.is_err(),
        "it does not run yet"
    );
    start(&runtime, &container).await;
    let script = "echo out; echo err >&2; exit 5";
    let answer = runtime.exec_sync(exec(script, 5)).await.unwrap();
    assert_eq!(answer.exit_code, 5);
    assert_eq!(
        (&*answer.stdout, &*answer.stderr),
        (&b"out\n"[..], &b"err\n"[..])
    );
    let error = runtime.exec_sync(exec("sleep 100", 1)).await.unwrap_err();
    assert!(error.is_deadline_exceeded(), "{error}");
    let answer = runtime
        .exec_sync(exec("ps | grep -c 'sleep 100$'", 5))
        .await
        .unwrap();
    assert_eq!(answer.stdout, b"0\n", "the command was killed");
    // What stays behind holds the output open.
    let answer = runtime
        .exec_sync(exec("sleep 50 & echo there", 20))
        .await
        .unwrap();
    assert_eq!(answer.stdout, b"there\n");
    remove_pod(&runtime, &sandbox).await;
}

pub(crate) async fn each_step_is_an_event(fixture: &Fixture) {
    use v1::ContainerEventType as Kind;
    let runtime = fixture.runtime().await;
    let mut events = runtime.container_events();
    let reader = tokio::spawn(async move {
        let mut told = Vec::new();
        while told.len() < 8 {
            let event = events.next().await.unwrap().unwrap();
            assert_eq!(event.pod_uid.as_deref(), Some("uid-events"));
            told.push((event.is_sandbox(), event.kind));
        }
        told
    });
    let pod = fixture.host_network("events");
    let sandbox = run_pod(&runtime, &pod).await;
    let container = create(&runtime, &sandbox, &pod, shell("main", "true")).await;
    start(&runtime, &container).await;
    ended(&runtime, &container).await;
    remove_pod(&runtime, &sandbox).await;
    let created = Kind::ContainerCreatedEvent;
    let started = Kind::ContainerStartedEvent;
    let stopped = Kind::ContainerStoppedEvent;
    let deleted = Kind::ContainerDeletedEvent;
    let told = tokio::time::timeout(PATIENCE, reader).await;
    assert_eq!(
        told.unwrap().unwrap(),
        [
            (true, created),
            (true, started),
            (false, created),
            (false, started),
            (false, stopped),
            (true, stopped),
            (false, deleted),
            (true, deleted),
        ]
    );
}

pub(crate) async fn a_program_that_is_missing_is_a_start_error(fixture: &Fixture) {
    let runtime = fixture.runtime().await;
    let pod = fixture.host_network("missing");
    let sandbox = run_pod(&runtime, &pod).await;
    let mut config = shell("main", "");
    config.command = vec!["/no/such/program".to_owned()];
    let container = create(&runtime, &sandbox, &pod, config).await;
    let request = v1::StartContainerRequest {
        container_id: container.clone(),
    };
    let error = runtime.start_container(request).await.unwrap_err();
    assert!(error.message.contains("/no/such/program"), "{error}");
    let end = status(&runtime, &container).await;
    assert_eq!((end.exit_code, &*end.reason), (128, "StartError"));
    assert!(end.message.contains("/no/such/program"), "{}", end.message);
    remove_pod(&runtime, &sandbox).await;
}
