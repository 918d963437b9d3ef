//! Containers: scripted behavior, and reported state.

use rubelet_cri::v1;
use rubelet_sim::{Behavior, Exec};
use tokio::time::timeout;

use crate::pod::{Pod, after, secs};

#[tokio::test(start_paused = true)]
async fn a_container_goes_from_created_to_running_to_exited() {
    let pod = Pod::new();
    pod.sim.on_image("app", Behavior::exits(secs(5), 3));
    let sandbox = pod.run().await.unwrap();
    let id = pod.create(&sandbox, "job", 2).await.unwrap();

    let created = pod.status(&id).await.unwrap();
    assert_eq!(created.state(), v1::ContainerState::ContainerCreated);
    assert_eq!((created.started_at, created.finished_at), (0, 0));
    assert_eq!(created.metadata.unwrap().attempt, 2);
    assert_eq!(created.log_path, "/var/log/pods/p/job/2.log");
    assert_eq!(created.labels, pod.config.labels);

    pod.start(&id).await.unwrap();
    let running = pod.status(&id).await.unwrap();
    assert_eq!(running.state(), v1::ContainerState::ContainerRunning);
    assert!(running.started_at > created.created_at);
    assert_eq!(running.finished_at, 0);

    after(secs(60)).await;
    let exited = pod.status(&id).await.unwrap();
    assert_eq!(exited.state(), v1::ContainerState::ContainerExited);
    assert_eq!((exited.exit_code, exited.reason.as_str()), (3, "Error"));
    // It exited at its own time, not when it was inspected.
    assert_eq!(
        (exited.finished_at - exited.started_at + 500_000_000) / 1_000_000_000,
        5
    );
}

#[tokio::test(start_paused = true)]
async fn reasons_are_those_of_containerd() {
    let pod = Pod::new();
    let script = |start: &rubelet_sim::Start<'_>| match start.earlier {
        0 => Behavior::exits(secs(1), 0),
        1 => Behavior::exits(secs(1), 2),
        2 => Behavior::runs_out_of_memory(secs(1)),
        _ => Behavior::runs(),
    };
    pod.sim.on_container_with("app", script);
    let sandbox = pod.run().await.unwrap();
    let mut ends = Vec::new();
    for attempt in 0..3 {
        let id = pod.create(&sandbox, "app", attempt).await.unwrap();
        pod.start(&id).await.unwrap();
        after(secs(2)).await;
        ends.push(pod.exit(&id).await);
    }
    let expected = [(0, "Completed"), (2, "Error"), (137, "OOMKilled")];
    assert_eq!(
        ends,
        expected.map(|(code, reason)| (code, reason.to_owned()))
    );
    let last = pod.create(&sandbox, "app", 3).await.unwrap();
    pod.start(&last).await.unwrap();
    after(secs(3600)).await;
    assert_eq!(pod.sim.running(&pod.uid, "app"), Some(last));
}

#[tokio::test(start_paused = true)]
async fn a_container_is_started_once_only() {
    let pod = Pod::new();
    let (_, id) = pod.up("web").await;
    let error = pod.start(&id).await.unwrap_err();
    assert!(error.message.contains("CONTAINER_RUNNING"), "{error}");
    pod.stop(&id, 1).await.unwrap();
    let error = pod.start(&id).await.unwrap_err();
    assert!(error.message.contains("CONTAINER_EXITED"), "{error}");
    assert_eq!(pod.exit(&id).await.0, 143);
}

#[tokio::test(start_paused = true)]
async fn a_failed_start_leaves_the_container_exited_with_start_error() {
    let pod = Pod::new();
    pod.sim.on_image(
        "app",
        Behavior::does_not_start("exec: \"/nope\": no such file"),
    );
    let sandbox = pod.run().await.unwrap();
    let id = pod.create(&sandbox, "web", 0).await.unwrap();
    let error = pod.start(&id).await.unwrap_err();
    assert!(error.message.contains("/nope"), "{error}");
    let status = pod.status(&id).await.unwrap();
    assert_eq!(
        (status.exit_code, status.reason.as_str()),
        (128, "StartError")
    );
    assert_eq!((status.started_at, status.message), (0, error.message));
    assert_eq!(pod.sim.oracle().starts(&pod.uid, "web"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_start_in_a_dead_sandbox_fails_and_leaves_the_container_exited() {
    let pod = Pod::new();
    let sandbox = pod.run().await.unwrap();
    let id = pod.create(&sandbox, "web", 0).await.unwrap();
    pod.sim.kill_sandbox(&sandbox);
    pod.start(&id).await.expect_err("the sandbox is not ready");
    assert_eq!(pod.exit(&id).await, (128, "StartError".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_container_name_and_attempt_are_taken_until_removal() {
    let pod = Pod::new();
    let (sandbox, first) = pod.up("web").await;
    let taken = pod.create(&sandbox, "web", 0).await.unwrap_err();
    assert!(
        taken
            .message
            .contains(&format!("is reserved for {first:?}")),
        "{taken}"
    );
    pod.create(&sandbox, "web", 1).await.unwrap();
    pod.remove(&first).await.unwrap();
    pod.create(&sandbox, "web", 0).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_container_without_its_image_is_not_created() {
    let pod = Pod::new();
    let sandbox = pod.run().await.unwrap();
    let spec = v1::ImageSpec {
        image: "app".to_owned(),
        ..Default::default()
    };
    let remove = v1::RemoveImageRequest { image: Some(spec) };
    rubelet_cri::ImageService::remove_image(&pod.sim, remove)
        .await
        .unwrap();
    let missing = pod.create(&sandbox, "web", 0).await.unwrap_err();
    assert!(missing.is_not_found(), "{missing}");
    pod.sim.add_image("app");
    pod.create(&sandbox, "web", 0).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_killed_container_reports_exit_code_and_reason() {
    let pod = Pod::new();
    let (_, id) = pod.up("web").await;
    pod.sim.kill_container(&id, 139, "");
    pod.sim.kill_container(&id, 0, "");
    assert_eq!(pod.exit(&id).await, (139, "Error".to_owned()));
}

fn exec(container: &str, timeout: i64) -> v1::ExecSyncRequest {
    v1::ExecSyncRequest {
        container_id: container.to_owned(),
        cmd: vec!["check".to_owned()],
        timeout,
    }
}

#[tokio::test(start_paused = true)]
async fn a_command_behaves_as_scripted_within_its_timeout() {
    let pod = Pod::new();
    let (_, id) = pod.up("web").await;
    pod.sim.on_exec(|instance, command| Exec {
        takes: secs(3),
        exit_code: 1,
        stdout: format!("{} {}", instance.name, command.join(" ")),
        stderr: String::new(),
    });
    let answer = pod.runtime.exec_sync(exec(&id, 0)).await.unwrap();
    assert_eq!(
        (answer.exit_code, answer.stdout),
        (1, b"web check".to_vec())
    );
    assert!(
        pod.runtime
            .exec_sync(exec(&id, 1))
            .await
            .unwrap_err()
            .is_deadline_exceeded()
    );

    let (killed, ()) = tokio::join!(pod.runtime.exec_sync(exec(&id, 0)), async {
        tokio::time::sleep(secs(1)).await;
        pod.sim.kill_container(&id, 1, "");
    });
    assert_eq!(killed.unwrap().exit_code, 137);
    pod.runtime
        .exec_sync(exec(&id, 0))
        .await
        .expect_err("the container has ended");
}

#[tokio::test(start_paused = true)]
async fn the_record_has_the_result_of_each_command() {
    let pod = Pod::new();
    pod.sim.on_image(
        "app",
        Behavior::exits(secs(20), 0).printing(&["one", "two"]),
    );
    let (_, id) = pod.up("web").await;
    assert_eq!(pod.sim.log(&pod.uid, "web", 0), ["one", "two"]);
    pod.sim
        .on_exec(|_, _| Exec::exits(3).after(secs(2)).with_stderr("no"));
    let answer = pod.runtime.exec_sync(exec(&id, 0)).await.unwrap();
    assert_eq!((answer.exit_code, answer.stderr), (3, b"no".to_vec()));
    pod.sim.on_exec(|_, _| Exec::hangs());
    let given_up = timeout(secs(5), pod.runtime.exec_sync(exec(&id, 0))).await;
    given_up.expect_err("it hangs");
    let killed = pod.runtime.exec_sync(exec(&id, 0)).await.unwrap();
    assert_eq!(killed.exit_code, 137);
    let ends: Vec<_> = pod
        .sim
        .oracle()
        .execs(&pod.uid, "web")
        .into_iter()
        .map(|exec| exec.ended.expect("it has ended"))
        .map(|(at, code)| (at.as_secs(), code))
        .collect();
    assert_eq!(ends, [(2, Some(3)), (7, None), (20, Some(137))]);
}

#[tokio::test(start_paused = true)]
async fn resources_and_statistics_are_those_last_set() {
    let pod = Pod::new();
    let (_, id) = pod.up("web").await;
    let linux = v1::LinuxContainerResources {
        cpu_shares: 512,
        ..Default::default()
    };
    let update = v1::UpdateContainerResourcesRequest {
        container_id: id.clone(),
        linux: Some(linux.clone()),
        ..Default::default()
    };
    pod.runtime
        .update_container_resources(update)
        .await
        .unwrap();
    let resources = pod.status(&id).await.unwrap().resources.unwrap();
    assert_eq!(resources.linux, Some(linux));

    pod.sim.set_memory(&id, 7 << 20);
    let request = v1::ListContainerStatsRequest::default();
    let stats = pod
        .runtime
        .list_container_stats(request)
        .await
        .unwrap()
        .stats;
    let memory = stats[0].memory.as_ref().unwrap();
    assert_eq!(memory.working_set_bytes.unwrap().value, 7 << 20);
    pod.stop(&id, 0).await.unwrap();
    let request = v1::ListContainerStatsRequest::default();
    assert!(
        pod.runtime
            .list_container_stats(request)
            .await
            .unwrap()
            .stats
            .is_empty()
    );
}
