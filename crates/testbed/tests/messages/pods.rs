//! Pods that can't run, or fail.

use std::net::Ipv4Addr;

use rubelet_testbed::agent::free_port;
use rubelet_testbed::manifest::{pod, shell, waiting, with};
use rubelet_testbed::node::TIMEOUT;
use rubelet_testbed::registry::Access;
use rubelet_testbed::status::container;
use rubelet_testbed::{Node, Registry, images};
use serde_json::{Value, json};

use crate::own_words;
use crate::snapshot::Snapshot;

/// Where a pod's status has the message.
enum MessageSource {
    /// The reason and message for which its container waits.
    Waiting(&'static str),
    /// The reason and message with which its container ended.
    Terminated(&'static str),
    /// An event with this reason that contains this text.
    Event(&'static str, &'static str),
}
use MessageSource::{Event, Terminated, Waiting};

#[test]
fn pods_that_cannot_run() {
    if !own_words() {
        return;
    }
    let node = Node::start().unwrap();
    let mut said = Snapshot::default();
    said.replace(node.scratch().dir().display().to_string(), "DIR");
    for (name, (problem, spec, place)) in (1..).zip(pods()) {
        let name = format!("pod-{name}");
        node.apply(&pod(&name, &spec)).unwrap();
        said.replace(node.agent().full_name(&name), "POD");
        said.add(problem, &message(&node, &name, &place));
        node.remove(&name).unwrap();
    }
    for (problem, registry) in registries() {
        let name = problem.to_lowercase().replace(' ', "-");
        let image = json!({ "image": registry.image("team/app:1"), "imagePullPolicy": "Always" });
        let spec = json!({ "containers": [with(waiting("main"), &image)] });
        node.apply(&pod(&name, &spec)).unwrap();
        said.add(problem, &message(&node, &name, &Waiting("ErrImagePull")));
        node.remove(&name).unwrap();
    }
    said.compare("pods");
}

fn message(node: &Node, name: &str, place: &MessageSource) -> String {
    let state = |state: &str, reason: &str| {
        let what = format!("is {state} with {reason}");
        let mut last = Value::Null;
        let seen = node.agent().wait_for(&what, TIMEOUT, |_| {
            let Some(pod) = node.pod(name)? else {
                return Ok(None);
            };
            let main = container(&pod, "main");
            let states = [&main["state"][state], &main["lastState"][state]];
            let found = states.iter().any(|state| state["reason"] == reason);
            last = main.clone();
            Ok(found.then_some(pod))
        });
        let seen = seen.map_err(|error| format!("{name}: {error:#}: {last}"));
        let main = container(&seen.unwrap(), "main").clone();
        let found = [&main["state"][state], &main["lastState"][state]];
        let found = found.into_iter().find(|state| state["reason"] == reason);
        let code = &found.unwrap()["exitCode"];
        let message = found.unwrap()["message"].as_str().unwrap_or_default();
        match code {
            Value::Null => format!("{reason}: {message}"),
            code => format!("{reason} (exit code {code}): {message}"),
        }
    };
    match place {
        Waiting(reason) => state("waiting", reason),
        Terminated(reason) => state("terminated", reason),
        Event(reason, part) => {
            let message = node.wait_event(name, reason, part).unwrap();
            format!("{reason}: {message}")
        }
    }
}

/// A container with more fields.
fn main(more: &Value) -> Value {
    json!({ "containers": [with(waiting("main"), more)] })
}

fn pods() -> Vec<(&'static str, Value, MessageSource)> {
    let closed = free_port(Ipv4Addr::LOCALHOST.into()).unwrap();
    let unreachable = format!("{}:{closed}/app:1", Ipv4Addr::LOCALHOST);
    let mut found = images_and_commands(&unreachable);
    found.extend(host_and_limits());
    found
}

fn images_and_commands(unreachable: &str) -> Vec<(&'static str, Value, MessageSource)> {
    vec![
        (
            "An image that is absent and must not be pulled",
            main(&json!({ "image": "localhost/none:1", "imagePullPolicy": "Never" })),
            Waiting("ErrImageNeverPull"),
        ),
        (
            "A name that no image can have",
            main(&json!({ "image": "Bad//Name" })),
            Waiting("InvalidImageName"),
        ),
        (
            "A registry that is away",
            main(&json!({ "image": unreachable, "imagePullPolicy": "Always" })),
            Waiting("ErrImagePull"),
        ),
        (
            "A command that is not in the image",
            main(&json!({ "command": ["serve"] })),
            Terminated("StartError"),
        ),
        (
            "A path that is not in the image",
            main(&json!({ "command": ["/opt/serve"] })),
            Terminated("StartError"),
        ),
        (
            "A file that is not executable",
            main(&json!({ "command": ["/etc/passwd"] })),
            Terminated("StartError"),
        ),
        (
            "A working directory that is a file",
            main(&json!({ "workingDir": "/etc/passwd" })),
            Waiting("CreateContainerError"),
        ),
        (
            "An image whose user is root although the pod forbids it",
            main(&json!({ "securityContext": { "runAsNonRoot": true } })),
            Waiting("CreateContainerConfigError"),
        ),
        (
            "An image whose user has a name although the pod forbids root",
            main(&json!({
                "image": images::NAMED_USER, "imagePullPolicy": "IfNotPresent",
                "securityContext": { "runAsNonRoot": true },
            })),
            Waiting("CreateContainerConfigError"),
        ),
        (
            "A command that fails again and again",
            main(&json!({ "command": ["false"] })),
            Waiting("CrashLoopBackOff"),
        ),
    ]
}

fn host_and_limits() -> Vec<(&'static str, Value, MessageSource)> {
    let volume = |source: Value| {
        let mount = json!({ "volumeMounts": [{ "name": "v", "mountPath": "/v" }] });
        let volumes = json!({ "volumes": [with(json!({ "name": "v" }), &source)] });
        with(main(&mount), &volumes)
    };
    let probe = |kind: &str, handler: Value| {
        let probe = with(
            handler,
            &json!({ "periodSeconds": 1, "failureThreshold": 1 }),
        );
        main(&json!({ kind: probe }))
    };
    let eat = "x=a; while :; do x=$x$x; done";
    let limit = json!({ "resources": { "limits": { "memory": "16Mi" } } });
    vec![
        (
            "A host path that is not there",
            volume(json!({ "hostPath": { "path": "/no/such/dir", "type": "Directory" } })),
            Event("FailedMount", "/no/such/dir"),
        ),
        (
            "A host path that is a file",
            volume(json!({ "hostPath": { "path": "/etc/passwd", "type": "Directory" } })),
            Event("FailedMount", "/etc/passwd"),
        ),
        (
            "A volume on disk with a limit that nothing would hold",
            with(
                volume(json!({ "emptyDir": { "sizeLimit": "1Gi" } })),
                &json!({ "hostUsers": false }),
            ),
            Event("FailedMount", "sizeLimit"),
        ),
        (
            "A seccomp profile that is not there",
            main(&json!({ "securityContext": { "seccompProfile":
                { "type": "Localhost", "localhostProfile": "none.json" } } })),
            Waiting("CreateContainerError"),
        ),
        (
            "A container that needs more memory than its limit",
            json!({ "containers": [with(shell("main", eat), &limit)] }),
            Terminated("OOMKilled"),
        ),
        (
            "A readiness probe to a port that is closed",
            probe("readinessProbe", json!({ "tcpSocket": { "port": 81 } })),
            Event("Unhealthy", "Readiness"),
        ),
        (
            "A liveness probe over HTTP to a port that is closed",
            probe("livenessProbe", json!({ "httpGet": { "port": 81 } })),
            Event("Unhealthy", "Liveness"),
        ),
        (
            "A liveness probe whose command fails",
            probe(
                "livenessProbe",
                json!({ "exec": { "command": ["cat", "/none"] } }),
            ),
            Event("Unhealthy", "Liveness"),
        ),
        (
            "A liveness probe whose command is not there",
            probe("livenessProbe", json!({ "exec": { "command": ["check"] } })),
            Event("Unhealthy", "Liveness"),
        ),
        (
            "A postStart hook that fails",
            main(&json!({ "lifecycle": { "postStart": { "exec": { "command": ["false"] } } } })),
            Event("FailedPostStartHook", ""),
        ),
    ]
}

fn registries() -> [(&'static str, Registry); 3] {
    let start = |builder: rubelet_testbed::registry::RegistryBuilder| builder.start().unwrap();
    [
        (
            "An image that its registry does not have",
            start(Registry::builder().refused(404)),
        ),
        (
            "A registry that wants a password",
            start(Registry::builder().access(Access::Basic)),
        ),
        (
            "A registry that has an error",
            start(Registry::builder().refused(500)),
        ),
    ]
}
