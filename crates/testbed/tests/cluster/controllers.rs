//! The node with the controllers of a real control plane; the model has none, so with it these
//! tests are skipped.

mod accounts;
mod batch;
mod deletion;
mod nodes;
mod services;
mod workloads;

use std::time::Duration;

use rubelet_testbed::{api_server, wait};
use serde_json::{Value, json};

use crate::joined::{IMAGE, Joined, WAITS};

/// Timeout of a controller: some check only once a minute, and a node is unreachable after 50 s.
const TIMEOUT: Duration = Duration::from_secs(240);
/// Time between two polls with kubectl.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Whether there are controllers.
fn applies() -> bool {
    let real = api_server::real_programs().unwrap();
    rubelet_needs::applies(real.is_some(), "the model API server has no controllers")
}

/// The pod template of a controller: one container with this script.
fn template(app: &str, script: &str) -> Value {
    json!({
        "metadata": { "labels": { "app": app } },
        "spec": {
            "terminationGracePeriodSeconds": 2,
            "containers": [{
                "name": "main",
                "image": IMAGE,
                "imagePullPolicy": "IfNotPresent",
                "command": ["sh", "-c", script],
            }],
        },
    })
}

/// A controller of `apps/v1` whose pods wait.
fn workload(kind: &str, app: &str, more: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": { "name": app },
        "spec": {
            "selector": { "matchLabels": { "app": app } },
            "template": template(app, WAITS),
        },
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        object["spec"][key] = value.clone();
    }
    object
}

/// `kubectl apply`.
fn apply(joined: &Joined, object: &Value) {
    let file = joined.cluster.path("applied.json");
    std::fs::write(&file, object.to_string()).unwrap();
    joined
        .kubectl
        .stdout(&["apply", "-f", &file.display().to_string()]);
}

/// The pods of an app.
fn pods(joined: &Joined, app: &str) -> Vec<Value> {
    let selector = format!("app={app}");
    let text = joined
        .kubectl
        .stdout(&["get", "pods", "-l", &selector, "-o", "json"]);
    let list: Value = serde_json::from_str(&text).unwrap();
    list["items"].as_array().cloned().unwrap_or_default()
}

/// Waits until the pods of an app meet a condition; returns them.
fn wait_pods(
    joined: &Joined,
    app: &str,
    what: &str,
    wanted: impl Fn(&[Value]) -> bool,
) -> Vec<Value> {
    let mut last = Vec::new();
    let waited = wait::until_every(POLL_INTERVAL, what, TIMEOUT, || {
        last = pods(joined, app);
        Ok(wanted(&last).then_some(()))
    });
    if let Err(error) = waited {
        panic!("{error}; last state: {}", Value::from(last));
    }
    last
}

/// Waits until an object, `KIND/NAME`, meets a condition, longer than the node alone would need.
fn wait_long(joined: &Joined, object: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let mut last = String::new();
    let waited = wait::until_every(POLL_INTERVAL, object, TIMEOUT, || {
        let output = joined.kubectl.run(&["get", object, "-o", "json"]);
        last = format!("{}{}", output.stdout, output.stderr);
        let seen = serde_json::from_str::<Value>(&output.stdout).ok();
        Ok(seen.filter(&wanted))
    });
    waited.unwrap_or_else(|error| panic!("{error} meets the condition; last state: {last}"))
}

/// Whether there are exactly so many pods, all ready and none terminating.
fn all_ready(pods: &[Value], count: usize) -> bool {
    let is_ready = |pod: &Value| {
        pod["metadata"]["deletionTimestamp"].is_null()
            && crate::joined::condition(pod, "Ready") == "True"
    };
    pods.len() == count && pods.iter().all(is_ready)
}

/// The `reason` of a condition; empty if there is none.
fn reason(object: &Value, kind: &str) -> String {
    let conditions = object["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    let found = conditions.find(|condition| condition["type"] == kind);
    let reason = found.and_then(|condition| condition["reason"].as_str());
    reason.unwrap_or_default().to_owned()
}
