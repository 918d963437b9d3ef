//! Invalid manifests of all kinds that users have had.

use std::path::{Path, PathBuf};

use rubelet_testbed::{Node, wait};
use serde_json::Value;

use crate::outside::{PodText, TIMEOUT, states};

/// The line in the message about each file in `data/broken`, in the order of their numbers.
const LINES: [u64; 51] = [
    9, 6, 6, 8, 1, 1, 1, 1, 4, 6, //
    5, 2, 3, 2, 2, 6, 9, 7, 12, 11, //
    5, 4, 5, 6, 7, 8, 10, 12, 11, 12, //
    11, 12, 12, 12, 11, 11, 12, 11, 10, 10, //
    6, 6, 12, 10, 10, 11, 11, 12, 10, 10, //
    10,
];

/// An invalid manifest: its file name, its content, and the expected message.
struct Broken {
    name: String,
    path: PathBuf,
    expected: String,
}

#[test]
fn errors_of_fifty_one_invalid_manifests_are_explained() {
    let node = Node::shared().unwrap();
    let agent = node.agent();
    let cases = cases();
    assert_eq!(cases.len(), LINES.len());
    let first = PodText::new("good-before");
    let last = PodText::new("good-after");
    agent.write_manifest("00-good.yaml", &first.yaml()).unwrap();
    for case in &cases {
        // Written in place, as by an editor or `cp`.
        let target = agent.manifest_dir().join(&case.name);
        std::fs::copy(&case.path, target).unwrap();
    }
    agent.write_manifest("99-good.yaml", &last.yaml()).unwrap();

    for pod in [&first, &last] {
        states::wait_ready(agent, pod.name());
    }
    for (case, line) in cases.iter().zip(LINES) {
        let shown = states::wait_manifest(agent, &case.name, "Bad");
        let message = shown["status"]["message"].as_str().unwrap();
        assert!(
            message.contains(&case.expected),
            "{}: {message}\nexpected: {}",
            case.name,
            case.expected
        );
        assert!(
            message.starts_with(&format!("line {line}, ")),
            "{}: {message}",
            case.name
        );
        assert_eq!(
            shown["status"]["problems"][0]["line"], line,
            "{}",
            case.name
        );
        assert_eq!(shown["status"]["pods"], Value::Array(Vec::new()));
    }

    // The same on the command line, as table and as JSON.
    let listed = agent.cli(&["get", "manifests", "-o", "json"]).unwrap();
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    let items = listed["items"].as_array().unwrap();
    let table = agent.cli(&["get", "manifests"]).unwrap().stdout;
    for case in &cases {
        let ends = |item: &&Value| {
            let name = item["metadata"]["name"].as_str();
            name.is_some_and(|name| name.ends_with(&format!("/{}", case.name)))
        };
        let item = items.iter().find(ends).unwrap();
        assert_eq!(item["status"]["state"], "Bad", "{item:#}");
        let row = table.lines().find(|row| row.contains(&case.name)).unwrap();
        assert!(row.contains(" bad "), "{row}");
    }
    wait::until("each has raised an event", TIMEOUT, || {
        let events = states::events(agent, "FailedManifest")?;
        let told = |case: &Broken| {
            events.iter().any(|event| {
                let message = event["message"].as_str().unwrap_or_default();
                message.contains(&case.name)
                    && message.contains(&case.expected)
                    && event["type"] == "Warning"
            })
        };
        Ok(cases.iter().all(told).then_some(()))
    })
    .unwrap();

    for case in &cases {
        agent.remove_manifest(&case.name).unwrap();
    }
    wait::until("the broken manifests are forgotten", TIMEOUT, || {
        let left = states::manifest(agent, &cases[0].name)?;
        Ok(left.is_none().then_some(()))
    })
    .unwrap();
}

fn cases() -> Vec<Broken> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/broken");
    let entries = std::fs::read_dir(&directory).unwrap();
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "yaml"))
        .collect();
    paths.sort();
    paths
        .into_iter()
        .map(|path| Broken {
            name: path.file_name().unwrap().to_string_lossy().into_owned(),
            expected: expected(&path),
            path,
        })
        .collect()
}

/// The expected message: in the first line of the manifest, or in a separate file.
fn expected(path: &Path) -> String {
    if let Ok(text) = std::fs::read_to_string(path.with_extension("expect")) {
        return text.trim().to_owned();
    }
    let text = std::fs::read_to_string(path).unwrap();
    let first = text.lines().next().unwrap_or_default();
    first.strip_prefix("# expect: ").unwrap().to_owned()
}
