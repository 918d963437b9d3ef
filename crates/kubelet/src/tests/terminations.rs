//! The termination records of exited instances.

use rubelet_pod_plan::history::{TERMINATIONS_KEPT, Termination};
use rubelet_sim::{Behavior, Exec};
use tokio::time::sleep;

use super::{
    net::NetResponse,
    node::{Node, seconds},
};

const APP: &str = "containers: [{name: app, image: 'app:1'}]";

fn ends(node: &Node) -> Vec<Termination> {
    let entry = node.pod("web");
    let history = entry.as_ref().map(|entry| &entry.history.containers);
    let history = history.and_then(|containers| containers.get("app"));
    history
        .map(|history| history.ends.clone())
        .unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn a_termination_is_recorded_once_with_its_last_log_lines() {
    let node = Node::new();
    node.sim
        .on_container_with("app", |start| match start.earlier {
            0 => Behavior::exits(seconds(9), 3).printing(&[
                "1",
                "2",
                "3",
                "4",
                "5",
                "6",
                "no config",
            ]),
            _ => Behavior::runs(),
        });
    let uid = node.apply("web", APP);
    node.until("it ran again", |node| {
        node.sim.oracle().starts(&uid, "app") == 2
    })
    .await;
    node.until_running().await;
    sleep(seconds(100)).await;
    let ends = ends(&node);
    assert_eq!(ends.len(), 1);
    let end = &ends[0];
    assert_eq!(
        (
            end.restart_count,
            end.exit_code,
            &*end.reason,
            &*end.stopped_because
        ),
        (0, 3, "Error", "")
    );
    assert_eq!(end.log, ["3", "4", "5", "6", "no config"].map(Box::from));
    let ran = end
        .finished_at
        .duration_since(end.started_at.expect("it ran"));
    assert_eq!(ran.as_secs_f64().round(), 9.0);
    assert_eq!(node.host.tails_read(&uid, "app", 0), 1);
}

#[tokio::test(start_paused = true)]
async fn only_the_latest_terminations_are_kept_newest_first() {
    let mut node = Node::new();
    node.sim.on_image_with("app:1", |start| {
        let line = format!("run {}", start.earlier);
        Behavior::exits(seconds(1), 1).printing(&[line.as_str()])
    });
    let uid = node.apply("web", APP);
    sleep(seconds(4 * 3600)).await;
    for restart in [false, true] {
        if restart {
            node.restart().await;
            sleep(seconds(600)).await;
        }
        let ends = ends(&node);
        assert_eq!(ends.len(), TERMINATIONS_KEPT);
        let newest = ends[0].restart_count;
        assert!(newest >= 40, "{newest}");
        for (index, end) in ends.iter().enumerate() {
            let count = newest - u32::try_from(index).unwrap();
            assert_eq!(end.restart_count, count);
            assert_eq!(end.log, [format!("run {count}").into()]);
            assert_eq!(node.host.tails_read(&uid, "app", count), 1);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stopped_instance_is_recorded_with_the_cause() {
    let node = Node::new();
    node.apply("web", APP);
    node.until_running().await;
    node.apply("web", &APP.replace("app:1", "app:2"));
    node.until("an end", |node| !ends(node).is_empty()).await;
    assert_eq!(&*ends(&node)[0].stopped_because, "its definition changed");

    let node = Node::new();
    node.sim.on_exec(|_, _| Exec::exits(1).with_stderr("no db"));
    node.apply(
        "web",
        "containers: [{name: app, image: 'app:1', lifecycle: {postStart: {exec: {command: [x]}}}}]",
    );
    node.until("an end", |node| !ends(node).is_empty()).await;
    let why = ends(&node)[0].stopped_because.clone();
    let begins = "its postStart hook failed: Exec lifecycle hook ([x])";
    assert!(why.starts_with(begins) && why.contains("no db"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn a_late_exit_reason_is_recorded_as_well() {
    let node = Node::new();
    node.sim
        .on_container_with("app", |start| match start.earlier {
            0 => Behavior::exits(seconds(5), 137),
            _ => Behavior::runs(),
        });
    let uid = node.apply("web", APP);
    node.until_running().await;
    let id = node.sim.running(&uid, "app").unwrap();
    node.until("an end", |node| !ends(node).is_empty()).await;
    assert_eq!(&*ends(&node)[0].reason, "Error");
    node.wire.change_reason(&id, "OOMKilled");
    sleep(seconds(20)).await;
    let ends = ends(&node);
    assert_eq!((ends.len(), &*ends[0].reason), (1, "OOMKilled"));
    assert_eq!(node.host.tails_read(&uid, "app", 0), 1);
}

#[tokio::test(start_paused = true)]
async fn an_unhealthy_instance_is_recorded_with_its_probe_output() {
    let node = Node::new();
    node.net
        .on(|_| NetResponse::fails("HTTP probe failed with statuscode: 500"));
    node.apply(
        "web",
        "containers: [{name: app, image: 'app:1', \
         livenessProbe: {httpGet: {port: 80}, periodSeconds: 1}}]",
    );
    node.until("an end", |node| !ends(node).is_empty()).await;
    assert_eq!(
        &*ends(&node)[0].stopped_because,
        "it failed its liveness probe: HTTP probe failed with statuscode: 500"
    );
}
