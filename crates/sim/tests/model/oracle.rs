//! Queries of the oracle.

use rubelet_cri::v1;
use rubelet_sim::{Behavior, Subject};

use crate::pod::{Pod, after, secs};

#[tokio::test(start_paused = true)]
async fn starts_and_exits_are_counted_per_pod_and_name() {
    let mut pod = Pod::new();
    let (sandbox, first) = pod.up("web").await;
    let second = pod.create(&sandbox, "web", 1).await.unwrap();
    pod.start(&second).await.unwrap();
    pod.stop(&first, 1).await.unwrap();
    pod.config.metadata.as_mut().unwrap().attempt = 1;
    pod.up("side").await;

    let oracle = pod.sim.oracle();
    let uid = &pod.uid;
    assert_eq!(oracle.starts(uid, "web"), 2);
    assert_eq!(oracle.max_simultaneous(uid, "web"), 2);
    assert_eq!(oracle.live_instances(uid, "web"), 1);
    assert_eq!(oracle.exits(uid, "web"), [(143, "Error")]);
    assert_eq!(oracle.starts(uid, "side"), 1);
    assert_eq!(oracle.starts("another", "web"), 0);
    assert_eq!(oracle.max_ready_sandboxes(uid), 2);
    assert_eq!(pod.sim.running(uid, "web"), Some(second));
}

#[tokio::test(start_paused = true)]
async fn calls_are_counted_per_rpc_subject_and_since_a_mark() {
    let pod = Pod::new();
    let (_, id) = pod.up("web").await;
    let mark = pod.sim.oracle().mark();
    pod.status(&id).await.unwrap();
    pod.runtime
        .version(v1::VersionRequest::default())
        .await
        .unwrap();

    let oracle = pod.sim.oracle();
    let names: Vec<_> = oracle.calls().iter().map(|call| call.call).collect();
    assert_eq!(
        names,
        [
            "RunPodSandbox",
            "CreateContainer",
            "StartContainer",
            "ContainerStatus",
            "Version"
        ]
    );
    let names: Vec<_> = oracle
        .calls_since(mark)
        .iter()
        .map(|call| call.call)
        .collect();
    assert_eq!(names, ["ContainerStatus", "Version"]);
    assert_eq!(oracle.counts()["StartContainer"], 1);
    assert_eq!(
        oracle.count("StartContainer", &Subject::container(&pod.uid, "web")),
        1
    );
    assert_eq!(
        oracle.count("StartContainer", &Subject::container(&pod.uid, "other")),
        0
    );
    assert_eq!(oracle.count("CreateContainer", &Subject::image("app")), 1);
}

#[tokio::test(start_paused = true)]
async fn entries_are_in_order_of_time_without_a_reader() {
    let pod = Pod::new();
    pod.sim.on_container("late", Behavior::exits(secs(20), 0));
    pod.sim.on_container("early", Behavior::exits(secs(10), 0));
    let sandbox = pod.run().await.unwrap();
    for name in ["late", "early"] {
        let id = pod.create(&sandbox, name, 0).await.unwrap();
        pod.start(&id).await.unwrap();
    }
    after(secs(100)).await;
    let oracle = pod.sim.oracle();
    assert!(
        oracle.entries().is_sorted_by_key(|entry| entry.at),
        "{oracle}"
    );
    let text = oracle.to_string();
    let ends: Vec<_> = text
        .lines()
        .filter(|line| line.contains("exited"))
        .collect();
    assert!(
        ends[0].contains("10.0") && ends[0].contains("container=early"),
        "{text}"
    );
    assert!(ends[1].contains("container=late"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn the_same_test_leaves_the_same_record() {
    async fn run() -> String {
        let pod = Pod::new();
        pod.sim.on_image("app", Behavior::exits(secs(3), 1));
        pod.sim.set_latency(secs(1));
        let (sandbox, id) = pod.up("web").await;
        let _ = tokio::join!(
            pod.stop(&id, 10),
            pod.status(&id),
            pod.stop_sandbox(&sandbox)
        );
        pod.remove_sandbox(&sandbox).await.unwrap();
        pod.sim.oracle().to_string()
    }
    let first = run().await;
    assert!(first.lines().count() > 15, "{first}");
    assert_eq!(first, run().await);
}
