//! Resources that all pods share, exhausted by some of them: see the table in ARCHITECTURE.md. The
//! tests of its other rows are beside those of the component.

use std::sync::mpsc::{Sender, channel};

use tokio::{runtime::Builder, sync::mpsc::unbounded_channel, task::spawn_blocking};

use super::node::{Node, seconds};

const APP: &str = "containers: [{name: app, image: 'app:1'}]";

/// Occupies this number of blocking threads until the result is dropped.
async fn take_threads(count: usize) -> Vec<Sender<()>> {
    let (begun, mut begins) = unbounded_channel();
    let mut held = Vec::new();
    for _ in 0..count {
        let (release, released) = channel();
        let begun = begun.clone();
        spawn_blocking(move || {
            begun.send(()).expect("it is waited for");
            // Ends with an error when the other half is dropped.
            released.recv()
        });
        held.push(release);
    }
    for _ in 0..count {
        begins.recv().await.expect("a thread");
    }
    held
}

/// Time is not paused here: it would stand still while a blocking thread works.
#[test]
fn new_pods_are_admitted_although_dead_volumes_hold_all_threads() {
    const THREADS: usize = 4;
    let mut runtime = Builder::new_current_thread();
    let runtime = runtime.enable_all().max_blocking_threads(THREADS);
    runtime.build().expect("a runtime").block_on(async {
        let node = Node::new();
        node.apply("first", APP);
        node.until_running().await;
        let most = take_threads(THREADS - 1).await;
        node.apply("second", APP);
        let runs = |node: &Node| node.is_running("second");
        node.within(seconds(60), "a pod runs with the last thread", runs)
            .await;

        let last = take_threads(1).await;
        let waits = spawn_blocking(|| ());
        let uid = node.apply("third", APP);
        // Before its container starts, its record is written, which takes a thread.
        let taken_in = |node: &Node| !node.containers(&uid).is_empty();
        node.within(seconds(60), "the pod has a container", taken_in)
            .await;
        assert!(!waits.is_finished(), "a thread was free");
        drop((most, last));
        let runs = |node: &Node| node.is_running("third");
        node.within(seconds(60), "the pod runs", runs).await;
    });
}
