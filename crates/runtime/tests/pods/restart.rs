//! The agent ends and another one comes; shims die.

use rubelet_cri::{RuntimeService, v1};
use rubelet_runtime::{EmbeddedRuntime, StartError};

use crate::fixture::{
    Fixture, SECOND_BRIDGE, create, ended, kill, remove_pod, run_pod, shell, shim_pid, start,
    status,
};

pub(crate) async fn the_next_runtime_adopts_what_runs(fixture: &Fixture) {
    let first = fixture.runtime().await;
    let pod = fixture.pod("adopted");
    let sandbox = run_pod(&first, &pod).await;
    let lasting = create(&first, &sandbox, &pod, shell("lasting", "sleep 1000")).await;
    let fifo = "while [ ! -e /tmp/go ]; do sleep 0.01; done; exit 9";
    let ending = create(&first, &sandbox, &pod, shell("ending", fifo)).await;
    start(&first, &lasting).await;
    start(&first, &ending).await;
    let before = status(&first, &lasting).await;

    let second = EmbeddedRuntime::start(fixture.settings.clone()).await;
    assert!(matches!(second, Err(StartError::Locked(_))));
    // Neither directory may be shared: what is in the run directory would be a leftover to the other.
    let mut settings = fixture.settings.clone();
    settings.root = settings.root.join("../other-root");
    let second = EmbeddedRuntime::start(settings).await;
    assert!(matches!(second, Err(StartError::Locked(_))));
    first.shutdown().await;
    drop(first);

    let second = fixture.runtime().await;
    assert_eq!(status(&second, &lasting).await, before);
    let exec = v1::ExecSyncRequest {
        container_id: ending.clone(),
        cmd: vec!["touch".to_owned(), "/tmp/go".to_owned()],
        timeout: 5,
    };
    second.exec_sync(exec).await.unwrap();
    assert_eq!(ended(&second, &ending).await.exit_code, 9);
    remove_pod(&second, &sandbox).await;
}

pub(crate) async fn a_pod_whose_supervisor_is_killed_is_not_ready(fixture: &Fixture) {
    let runtime = fixture.runtime().await;
    let pod = fixture.pod("lost");
    let sandbox = run_pod(&runtime, &pod).await;
    let container = create(&runtime, &sandbox, &pod, shell("main", "sleep 1000")).await;
    start(&runtime, &container).await;
    let shim = shim_pid(&runtime, &sandbox).await;
    kill(shim);
    let end = ended(&runtime, &container).await;
    assert_eq!((end.exit_code, &*end.reason), (255, "Unknown"));
    let request = v1::PodSandboxStatusRequest {
        pod_sandbox_id: sandbox.clone(),
        verbose: false,
    };
    let found = runtime
        .pod_sandbox_status(request)
        .await
        .unwrap()
        .status
        .unwrap();
    assert_eq!(found.state(), v1::PodSandboxState::SandboxNotready);
    remove_pod(&runtime, &sandbox).await;
}

pub(crate) async fn what_died_while_nobody_looked_is_taken_down(fixture: &Fixture) {
    let first = fixture.runtime().await;
    let pod = fixture.pod("unseen");
    let sandbox = run_pod(&first, &pod).await;
    let container = create(&first, &sandbox, &pod, shell("main", "sleep 1000")).await;
    start(&first, &container).await;
    let shim = shim_pid(&first, &sandbox).await;
    drop(first);
    kill(shim);
    let second = fixture.runtime().await;
    let end = ended(&second, &container).await;
    assert_eq!((end.exit_code, &*end.reason), (255, "Unknown"));
    remove_pod(&second, &sandbox).await;
}

pub(crate) async fn another_runtime_on_the_machine_leaves_the_pods_alone(fixture: &Fixture) {
    let first = fixture.runtime().await;
    let pod = fixture.pod("beside");
    let sandbox = run_pod(&first, &pod).await;
    let container = create(&first, &sandbox, &pod, shell("main", "sleep 1000")).await;
    start(&first, &container).await;
    let before = status(&first, &container).await;

    // Directories of its own are not enough: both would make and remove the same bridge and rules.
    let mut settings = fixture.settings.clone();
    settings.root = settings.root.join("../beside/root");
    settings.run = settings.run.join("../beside/run");
    let refused = EmbeddedRuntime::start(settings.clone())
        .await
        .err()
        .unwrap();
    let words = format!(
        "another runtime (process {}) uses the bridge {}",
        std::process::id(),
        settings.network.bridge_name
    );
    assert!(refused.to_string().starts_with(&words), "{refused}");

    settings.network.bridge_name = SECOND_BRIDGE.to_owned();
    let second = EmbeddedRuntime::start(settings).await.unwrap();
    second.shutdown().await;

    assert_eq!(status(&first, &container).await, before);
    remove_pod(&first, &sandbox).await;
}
