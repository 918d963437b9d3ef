//! Invalid manifests.

use std::path::Path;

use rubelet_testbed::Node;
use serde_json::Value;

use crate::snapshot::Snapshot;

#[test]
fn manifests_that_are_refused() {
    let node = Node::shared().unwrap();
    let agent = node.agent();
    let broken = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/broken");
    let files = std::fs::read_dir(broken).unwrap().map(Result::unwrap);
    let mut names: Vec<String> = files
        .map(|file| file.file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".yaml"))
        .collect();
    names.sort();
    for name in &names {
        let text = std::fs::read(path(name)).unwrap();
        std::fs::write(agent.manifest_dir().join(name), text).unwrap();
    }
    let mut said = Snapshot::default();
    said.replace(agent.manifest_dir().display().to_string(), "DIR");
    for name in &names {
        let what = format!("{name} is refused");
        let message = agent.wait_for(&what, rubelet_testbed::node::TIMEOUT, |agent| {
            let list = agent.get_json("/apis/node.rubelet.dev/v1alpha1/manifests")?;
            let items = list["items"].as_array().cloned().unwrap_or_default();
            let end = format!("/{name}");
            let found = items.iter().find(|item| {
                let name = item["metadata"]["name"].as_str();
                name.is_some_and(|name| name.ends_with(&end))
            });
            let status = found.map_or(&Value::Null, |item| &item["status"]);
            let bad = status["state"] == "Bad";
            Ok(bad.then(|| status["message"].as_str().unwrap_or_default().to_owned()))
        });
        said.add(name, &message.unwrap());
    }
    said.compare("manifests");
}

fn path(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/broken/{name}"))
}
