//! Pulls and imports of images on a full disk.

use rubelet_testbed::disk::SmallDisk;
use rubelet_testbed::manifest::{pod, waiting, with};
use rubelet_testbed::{Embedded, Node, Registry, agent, images};
use serde_json::json;

use crate::own_words;
use crate::snapshot::Snapshot;

#[test]
fn images_on_a_full_disk() {
    if !own_words() {
        return;
    }
    let embedded = Embedded::without_images(&agent::binary().unwrap()).unwrap();
    let root = embedded.root_dir();
    // Unpacking requires some free space.
    let disk = SmallDisk::mount(&root, 400 * 1024).unwrap();
    let archive = embedded.scratch().dir().join("images.tar");
    images::write_archive(&archive).unwrap();
    let file = archive.display().to_string();
    let node = Node::start_on(embedded, |builder| builder).unwrap();
    let registry = Registry::builder().start().unwrap();
    let image = registry.image("team/app:1");
    disk.fill(64 * 1024).unwrap();

    let mut said = Snapshot::default();
    said.replace(node.scratch().dir().display().to_string(), "DIR");
    let container = with(
        waiting("main"),
        &json!({ "image": image, "imagePullPolicy": "Always" }),
    );
    node.apply(&pod("web", &json!({ "containers": [container] })))
        .unwrap();
    let event = node.wait_event("web", "Failed", "pull").unwrap();
    said.add("A pod's image is pulled", &event);
    for (problem, words) in [
        ("An image is pulled", ["image", "pull", &image]),
        ("An image is loaded", ["image", "load", &file]),
    ] {
        let output = node.agent().cli(&words).unwrap();
        assert_ne!(output.code, 0, "rubelet {words:?}: {}", output.stdout);
        said.add(
            problem,
            &format!("{}exit code {}", output.stderr, output.code),
        );
    }
    drop(node);
    drop(disk);
    said.compare("full_disk");
}
