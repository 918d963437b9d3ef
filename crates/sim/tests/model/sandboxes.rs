//! Sandboxes: names, states, lists, removal.

use rubelet_cri::{Code, CriErrorKind, RuntimeService, v1};
use rubelet_sim::Sim;

use crate::pod::{Pod, secs};

#[tokio::test(start_paused = true)]
async fn a_name_is_taken_until_its_sandbox_is_removed() {
    let mut pod = Pod::new();
    let first = pod.run().await.unwrap();
    let taken = pod.run().await.unwrap_err();
    assert_eq!(taken.kind, CriErrorKind::Other(Code::Unknown));
    assert!(
        taken.message.contains(&format!(
            "name \"p_default_uid-p_0\" is reserved for {first:?}"
        )),
        "{taken}"
    );

    pod.config.metadata.as_mut().unwrap().attempt = 1;
    pod.run().await.expect("another attempt is another name");

    pod.config.metadata.as_mut().unwrap().attempt = 0;
    pod.stop_sandbox(&first).await.unwrap();
    pod.run()
        .await
        .expect_err("a stopped sandbox keeps its name");
    pod.remove_sandbox(&first).await.unwrap();
    pod.run().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn stopping_a_sandbox_kills_its_containers() {
    let pod = Pod::new();
    let (sandbox, container) = pod.up("web").await;
    let before = pod.sandbox_status(&sandbox).await.unwrap();
    assert_eq!(before.state(), v1::PodSandboxState::SandboxReady);
    assert!(!before.network.unwrap().ip.is_empty());

    pod.stop_sandbox(&sandbox).await.unwrap();
    let stopped = pod.sandbox_status(&sandbox).await.unwrap();
    assert_eq!(stopped.state(), v1::PodSandboxState::SandboxNotready);
    assert_eq!(stopped.network.unwrap().ip, "");
    assert_eq!(pod.exit(&container).await, (137, "Error".to_owned()));
    pod.create(&sandbox, "web", 1)
        .await
        .expect_err("it is not ready");
}

#[tokio::test(start_paused = true)]
async fn stop_and_remove_succeed_for_removed_objects_and_status_does_not() {
    let pod = Pod::new();
    let (sandbox, container) = pod.up("web").await;
    pod.remove_sandbox(&sandbox).await.unwrap();

    pod.stop_sandbox(&sandbox).await.unwrap();
    pod.remove_sandbox(&sandbox).await.unwrap();
    pod.stop(&container, 30).await.unwrap();
    pod.remove(&container).await.unwrap();
    assert!(
        pod.sandbox_status(&sandbox)
            .await
            .unwrap_err()
            .is_not_found()
    );
    assert!(pod.status(&container).await.unwrap_err().is_not_found());
    assert!(pod.start(&container).await.unwrap_err().is_not_found());
    assert!(
        pod.create(&sandbox, "web", 1)
            .await
            .unwrap_err()
            .is_not_found()
    );
    assert_eq!(pod.sim.oracle().exits("uid-p", "web"), [(137, "Error")]);
}

#[tokio::test(start_paused = true)]
async fn a_dead_pause_process_leaves_the_containers_running() {
    let pod = Pod::new();
    let (sandbox, container) = pod.up("web").await;
    pod.sim.kill_sandbox(&sandbox);
    assert_eq!(
        pod.sandbox_status(&sandbox).await.unwrap().state(),
        v1::PodSandboxState::SandboxNotready
    );
    assert_eq!(
        pod.status(&container).await.unwrap().state(),
        v1::ContainerState::ContainerRunning
    );
}

#[tokio::test(start_paused = true)]
async fn removing_a_sandbox_externally_removes_its_containers() {
    let pod = Pod::new();
    let (sandbox, container) = pod.up("web").await;
    pod.sim.remove_sandbox_externally(&sandbox);
    assert!(pod.status(&container).await.unwrap_err().is_not_found());
    assert!(
        pod.sandbox_status(&sandbox)
            .await
            .unwrap_err()
            .is_not_found()
    );
    pod.run().await.expect("its name is free again");
}

#[tokio::test(start_paused = true)]
async fn host_network_sandboxes_have_no_ip() {
    let mut pod = Pod::new();
    let mut options = v1::NamespaceOption::default();
    options.set_network(v1::NamespaceMode::Node);
    pod.config.linux = Some(v1::LinuxPodSandboxConfig {
        security_context: Some(v1::LinuxSandboxSecurityContext {
            namespace_options: Some(options),
            ..Default::default()
        }),
        ..Default::default()
    });
    let id = pod.run().await.unwrap();
    assert_eq!(
        pod.sandbox_status(&id).await.unwrap().network.unwrap().ip,
        ""
    );
}

#[tokio::test(start_paused = true)]
async fn lists_are_filtered() {
    let sim = Sim::new();
    sim.add_image("app");
    let (a, b) = (Pod::named(&sim, "a"), Pod::named(&sim, "b"));
    let (sandbox_a, container_a) = a.up("web").await;
    let (sandbox_b, container_b) = b.up("web").await;
    a.stop_sandbox(&sandbox_a).await.unwrap();

    let sandboxes = async |filter: Option<v1::PodSandboxFilter>| -> Vec<String> {
        let request = v1::ListPodSandboxRequest { filter };
        let items = sim.list_pod_sandbox(request).await.unwrap().items;
        items.into_iter().map(|item| item.id).collect()
    };
    let containers = async |filter: Option<v1::ContainerFilter>| -> Vec<String> {
        let request = v1::ListContainersRequest { filter };
        let items = sim.list_containers(request).await.unwrap().containers;
        items.into_iter().map(|item| item.id).collect()
    };
    assert_eq!(
        sandboxes(None).await,
        [sandbox_a.clone(), sandbox_b.clone()]
    );
    assert_eq!(
        containers(None).await,
        [container_a.clone(), container_b.clone()]
    );

    let label_selector = b.config.labels.clone();
    let of_b = v1::PodSandboxFilter {
        label_selector: label_selector.clone(),
        ..Default::default()
    };
    assert_eq!(sandboxes(Some(of_b)).await, [sandbox_b.as_str()]);
    let of_b = v1::ContainerFilter {
        label_selector,
        ..Default::default()
    };
    assert_eq!(containers(Some(of_b)).await, [container_b.as_str()]);

    let state = v1::PodSandboxState::SandboxNotready.into();
    let not_ready = v1::PodSandboxFilter {
        state: Some(v1::PodSandboxStateValue { state }),
        ..Default::default()
    };
    assert_eq!(sandboxes(Some(not_ready)).await, [sandbox_a]);
    let in_b = v1::ContainerFilter {
        pod_sandbox_id: sandbox_b,
        ..Default::default()
    };
    assert_eq!(containers(Some(in_b)).await, [container_b]);
}

#[tokio::test(start_paused = true)]
async fn creation_times_follow_the_wall_clock_and_are_unique() {
    let mut pod = Pod::new();
    let first = pod.run().await.unwrap();
    pod.config.metadata.as_mut().unwrap().attempt = 1;
    let second = pod.run().await.unwrap();
    tokio::time::advance(secs(10)).await;
    pod.config.metadata.as_mut().unwrap().attempt = 2;
    let third = pod.run().await.unwrap();

    let mut times = Vec::new();
    for id in [first, second, third] {
        times.push(pod.sandbox_status(&id).await.unwrap().created_at);
    }
    assert!(times[0] < times[1]);
    assert_eq!(times[2], pod.sim.wall_now());
    assert_eq!((times[2] - times[0]) / 1_000_000_000, 9);
}
