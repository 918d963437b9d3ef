//! Image volumes.

use anyhow::Result;
use rubelet_testbed::manifest::{pod, shell, with};
use rubelet_testbed::{Node, images};
use serde_json::{Value, json};

/// A pod that reads an image volume.
fn looks(name: &str, image: &Value, script: &str) -> Value {
    let mounts = json!({ "volumeMounts": [
        { "name": "tools", "mountPath": "/tools" },
        { "name": "tools", "mountPath": "/accounts", "subPath": "etc" },
    ]});
    let spec = json!({
        "restartPolicy": "Never",
        "containers": [with(shell("main", script), &mounts)],
        "volumes": [{ "name": "tools", "image": image }],
    });
    pod(name, &spec)
}

#[test]
fn a_container_reads_the_files_of_an_image_volume() -> Result<()> {
    let node = Node::start()?;
    let image = json!({ "reference": images::NAMED_USER, "pullPolicy": "Never" });
    // All to one stream: the order of lines of two streams may vary.
    let script = "exec 2>&1; ls /tools/bin/busybox; grep -c . /accounts/passwd; \
                  touch /tools/x 2>&1 | grep -c 'Read-only'";
    node.apply(&looks("mounted", &image, script))?;
    node.finished("mounted")?;
    let log = node.log("mounted", "main")?;
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!((lines[0], lines[2]), ("/tools/bin/busybox", "1"), "{log}");
    let missing = json!({ "reference": "127.0.0.1:9/not/there:1", "pullPolicy": "Never" });
    node.apply(&looks("missing", &missing, "true"))?;
    node.wait_event("missing", "ErrImageNeverPull", "127.0.0.1:9/not/there:1")?;
    Ok(())
}
