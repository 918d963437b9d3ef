//! The containers of a pod.

use rubelet_server::table::NEXT_TRY_ANNOTATION;
use serde_json::Value;

use super::{
    env,
    json::{date, list, map, scalar, string},
    text::Text,
};

/// Describes the containers of one list of the specification.
pub(super) fn describe_all(text: &mut Text, title: &str, pod: &Value, field: &str) {
    let containers = pod["spec"][field].as_array().map_or(&[][..], Vec::as_slice);
    if containers.is_empty() {
        return;
    }
    let statuses = match field {
        "initContainers" => list(pod, "/status/initContainerStatuses"),
        "ephemeralContainers" => list(pod, "/status/ephemeralContainerStatuses"),
        _ => list(pod, "/status/containerStatuses"),
    };
    text.line(0, format!("{title}:"));
    for container in containers {
        let status = statuses
            .iter()
            .find(|status| status["name"] == container["name"]);
        describe(text, pod, container, status);
    }
}

fn describe(text: &mut Text, pod: &Value, container: &Value, status: Option<&Value>) {
    text.line(1, format!("{}:", string(container, "/name")));
    if let Some(status) = status {
        text.field(2, "Container ID", string(status, "/containerID"));
    }
    text.field(2, "Image", string(container, "/image"));
    if let Some(status) = status {
        text.field(2, "Image ID", string(status, "/imageID"));
    }
    ports(text, container, "Port", "containerPort");
    ports(text, container, "Host Port", "hostPort");
    let seccomp = &container["securityContext"]["seccompProfile"];
    if seccomp.is_object() {
        text.field(2, "SeccompProfile", string(seccomp, "/type"));
        if seccomp["localhostProfile"].is_string() {
            text.field(3, "LocalhostProfile", string(seccomp, "/localhostProfile"));
        }
    }
    // kubectl omits this field, which only ephemeral containers have.
    some_at(text, 2, "Target", string(container, "/targetContainerName"));
    some_at(
        text,
        2,
        "Restart Policy",
        string(container, "/restartPolicy"),
    );
    words(text, "Command", list(container, "/command"));
    words(text, "Args", list(container, "/args"));
    if let Some(status) = status {
        state(text, "State", &status["state"]);
        some(text, "Next Try", &next_try(pod, container));
        if status["lastState"]["terminated"].is_object() {
            state(text, "Last State", &status["lastState"]);
        }
        text.field(
            2,
            "Ready",
            if status["ready"] == true {
                "True"
            } else {
                "False"
            },
        );
        text.field(2, "Restart Count", scalar(&status["restartCount"]));
    }
    amounts(text, "Limits", &container["resources"]["limits"]);
    amounts(text, "Requests", &container["resources"]["requests"]);
    for (key, field) in [
        ("Liveness", "livenessProbe"),
        ("Readiness", "readinessProbe"),
        ("Startup", "startupProbe"),
    ] {
        if container[field].is_object() {
            text.field(2, key, probe(&container[field]));
        }
    }
    for (key, field) in [("Post Start", "postStart"), ("Pre Stop", "preStop")] {
        let hook = &container["lifecycle"][field];
        if hook.is_object() {
            text.field(2, key, action(hook));
        }
    }
    env::describe(text, pod, container);
    mounts(text, container);
}

fn ports(text: &mut Text, container: &Value, key: &str, field: &str) {
    let ports: Vec<String> = list(container, "/ports")
        .iter()
        .map(|port| {
            let number = port[field].as_u64().unwrap_or(0);
            let protocol = port["protocol"].as_str().unwrap_or("TCP");
            match port["name"].as_str() {
                Some(name) => format!("{number}/{protocol} ({name})"),
                None => format!("{number}/{protocol}"),
            }
        })
        .collect();
    match ports.as_slice() {
        [] => text.field(2, key, "<none>"),
        [only] => text.field(2, key, only),
        several => text.field(2, &format!("{key}s"), several.join(", ")),
    }
}

fn words(text: &mut Text, key: &str, words: &[Value]) {
    if words.is_empty() {
        return;
    }
    text.line(2, format!("{key}:"));
    for line in words
        .iter()
        .filter_map(Value::as_str)
        .flat_map(|word| word.split('\n'))
    {
        text.line(3, line.replace('\t', " "));
    }
}

fn state(text: &mut Text, key: &str, state: &Value) {
    let (running, terminated) = (&state["running"], &state["terminated"]);
    if running.is_object() {
        text.field(2, key, "Running");
        text.field(3, "Started", date(string(running, "/startedAt")));
    } else if terminated.is_object() {
        text.field(2, key, "Terminated");
        some(text, "Reason", string(terminated, "/reason"));
        some(text, "Message", string(terminated, "/message"));
        text.field(3, "Exit Code", scalar(&terminated["exitCode"]));
        if let Some(signal) = terminated["signal"].as_i64().filter(|signal| *signal > 0) {
            text.field(3, "Signal", signal.to_string());
        }
        text.field(3, "Started", date(string(terminated, "/startedAt")));
        text.field(3, "Finished", date(string(terminated, "/finishedAt")));
    } else {
        text.field(2, key, "Waiting");
        some(text, "Reason", string(state, "/waiting/reason"));
        // kubectl omits the message, which shows the back-off.
        some(text, "Message", string(state, "/waiting/message"));
    }
}

fn some(text: &mut Text, key: &str, value: &str) {
    some_at(text, 3, key, value);
}

fn some_at(text: &mut Text, level: usize, key: &str, value: &str) {
    if !value.is_empty() {
        text.field(level, key, value);
    }
}

/// When a container is retried; empty if it is not.
fn next_try(pod: &Value, container: &Value) -> String {
    let annotation = &pod["metadata"]["annotations"][NEXT_TRY_ANNOTATION];
    let times = annotation.as_str().unwrap_or_default();
    let times: Value = serde_json::from_str(times).unwrap_or_default();
    date(string(&times[string(container, "/name")], ""))
}

fn amounts(text: &mut Text, key: &str, amounts: &Value) {
    let amounts = map(amounts);
    if amounts.is_empty() {
        return;
    }
    text.line(2, format!("{key}:"));
    for (name, amount) in amounts {
        text.field(3, name, amount);
    }
}

fn probe(probe: &Value) -> String {
    let number = |field: &str, default: u64| probe[field].as_u64().unwrap_or(default);
    let times = format!(
        "delay={}s timeout={}s period={}s #success={} #failure={}",
        number("initialDelaySeconds", 0),
        number("timeoutSeconds", 1),
        number("periodSeconds", 10),
        number("successThreshold", 1),
        number("failureThreshold", 3),
    );
    format!("{} {times}", action(probe))
}

/// The action of a probe or a hook.
fn action(of: &Value) -> String {
    let (exec, http) = (&of["exec"], &of["httpGet"]);
    let (tcp, grpc) = (&of["tcpSocket"], &of["grpc"]);
    if exec.is_object() {
        let command: Vec<&str> = list(exec, "/command")
            .iter()
            .filter_map(Value::as_str)
            .collect();
        format!("exec [{}]", command.join(" "))
    } else if http.is_object() {
        let scheme = http["scheme"].as_str().unwrap_or("HTTP").to_lowercase();
        let (host, port) = (string(http, "/host"), scalar(&http["port"]));
        format!("http-get {scheme}://{host}:{port}{}", string(http, "/path"))
    } else if tcp.is_object() {
        format!(
            "tcp-socket {}:{}",
            string(tcp, "/host"),
            scalar(&tcp["port"])
        )
    } else if grpc.is_object() {
        format!(
            "grpc <pod>:{} {}",
            scalar(&grpc["port"]),
            string(grpc, "/service")
        )
    } else if let Some(seconds) = of["sleep"]["seconds"].as_i64() {
        format!("sleep {seconds}s")
    } else {
        "unknown".to_owned()
    }
}

fn mounts(text: &mut Text, container: &Value) {
    let mut mounts: Vec<&Value> = list(container, "/volumeMounts").iter().collect();
    if mounts.is_empty() {
        text.line(2, "Mounts:\t<none>");
        return;
    }
    mounts.sort_by_key(|mount| string(mount, "/mountPath"));
    text.line(2, "Mounts:");
    for mount in mounts {
        let mut flags = if mount["readOnly"] == true {
            "ro"
        } else {
            "rw"
        }
        .to_owned();
        for field in ["subPath", "subPathExpr"] {
            if let Some(path) = mount[field].as_str().filter(|path| !path.is_empty()) {
                flags.push_str(&format!(",path={path:?}"));
            }
        }
        let (path, name) = (string(mount, "/mountPath"), string(mount, "/name"));
        text.line(3, format!("{path} from {name} ({flags})"));
    }
}
