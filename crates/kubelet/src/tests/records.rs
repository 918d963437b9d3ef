//! Records of pods on disk.

use std::fs;

use rubelet_sim::Behavior;
use tokio::time::sleep;

use super::node::{Node, seconds};

const APP: &str = "containers: [{name: app, image: 'app:1'}]";

#[tokio::test(start_paused = true)]
async fn a_damaged_record_is_set_aside_and_rebuilt_from_the_runtime() {
    for damage in ["", "{", "not a record", "{\"kind\":\"pod\",\"version\":1}"] {
        let mut node = Node::new();
        let uid = node.apply("web", APP);
        node.until_running().await;
        for _ in 0..2 {
            node.kill_container(&uid, "app", 1);
            sleep(seconds(12)).await;
        }
        node.until_running().await;
        sleep(seconds(2)).await;
        let before = node.container("web", "app").unwrap();
        node.kill().await;
        // Until then the previous record would be used.
        rubelet_store::wait_for_flush();
        fs::write(node.record("web"), damage).unwrap();
        node.start();
        node.until_running().await;
        sleep(seconds(5)).await;
        let after = node.container("web", "app").unwrap();
        assert_eq!(after, before, "{damage:?}");
        assert_eq!(after.restart_count, 2);
        assert_eq!(node.sim.oracle().starts(&uid, "app"), 3, "{damage:?}");
        let names: Vec<_> = fs::read_dir(node.records())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        assert!(
            names.iter().any(|name| name.ends_with(".corrupt-1")),
            "{names:?}"
        );
        assert!(node.record("web").exists());
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_record_loses_only_the_back_off() {
    let mut node = Node::new();
    node.sim
        .on_container_with("app", |start| match start.earlier {
            0..=2 => Behavior::exits(seconds(1), 4),
            _ => Behavior::runs(),
        });
    let uid = node.apply("web", APP);
    node.until("three crashes", |node| {
        node.exit_times(&uid, "app").len() == 3
    })
    .await;
    sleep(seconds(2)).await;
    node.kill().await;
    fs::remove_file(node.record("web")).unwrap();
    node.start();
    node.until_running().await;
    let status = node.container("web", "app").unwrap();
    assert_eq!(status.restart_count, 3);
    assert_eq!(status.last_state.unwrap().exit_code, 4);
    node.assert_never_twice(&uid);
}

#[tokio::test(start_paused = true)]
async fn after_a_record_is_lost_nothing_is_published_until_it_is_saved() {
    let mut node = Node::new();
    node.apply("web", APP);
    node.until_running().await;
    sleep(seconds(2)).await;
    node.kill().await;
    fs::remove_file(node.record("web")).unwrap();
    node.start();
    let mut versions = node.agent().pods.versions();
    while !node.is_running("web") {
        versions.changed().await.unwrap();
    }
    assert!(node.record("web").exists());
}

#[tokio::test(start_paused = true)]
async fn an_unwritable_record_directory_stops_no_pod() {
    let node = Node::new();
    fs::remove_dir(node.records()).unwrap();
    let uid = node.apply("web", APP);
    node.until_running().await;
    node.kill_container(&uid, "app", 1);
    node.until("a restart", |node| {
        node.sim.oracle().starts(&uid, "app") == 2
    })
    .await;
    fs::create_dir(node.records()).unwrap();
}
