//! postStart hooks.

use anyhow::Result;
use rubelet_testbed::Node;
use rubelet_testbed::manifest::{shell, waiting, with};
use rubelet_testbed::status::{container, ended_before, restarts, runs, waits_for};
use serde_json::{Value, json};

use crate::notes::{Notes, note, noting, noting_script, until};
use crate::outside::http_server::HttpServer;

fn hooked(container: Value, hook: &Value) -> Value {
    with(container, &json!({ "lifecycle": { "postStart": hook } }))
}

fn exec(script: &str) -> Value {
    json!({ "exec": { "command": ["sh", "-c", script] } })
}

#[test]
fn a_container_is_started_after_its_post_start_hook() -> Result<()> {
    let node = Node::shared()?;
    let notes = Notes::new(&node, "post-start")?;
    let script = format!(
        "{}; {}; {}",
        note("hook begins"),
        until("go"),
        note("hook ends")
    );
    let spec = json!({
        "containers": [hooked(noting("main"), &exec(&script)), noting("later")],
    });
    node.apply(&notes.pod("post-start", spec))?;
    notes.wait(&node, "hook begins")?;
    let seen = node.pod("post-start")?.unwrap();
    assert_eq!(seen["status"]["phase"], "Pending");
    assert_eq!(container(&seen, "main")["started"], false);
    assert_eq!(container(&seen, "main")["ready"], false);
    let made = node.containers("post-start")?;
    assert_eq!(made.len(), 1, "the next container waits for the hook");
    let why = node.cli(&["why", "pod/post-start-testnode"])?;
    assert!(why.contains("postStart hook has not ended yet"), "{why}");
    notes.touch("go")?;
    node.wait_ready("post-start")?;
    let lines = notes.wait(&node, "later begins")?;
    let order = |what: &str| lines.iter().position(|line| line == what).unwrap();
    assert!(order("hook ends") < order("later begins"), "{lines:#?}");
    Ok(())
}

#[test]
fn post_start_hooks_send_requests_and_sleep() -> Result<()> {
    let node = Node::shared()?;
    let notes = Notes::new(&node, "post-start-kinds")?;
    let server = HttpServer::start("welcome");
    let get = json!({ "httpGet": {
        "host": "127.0.0.1",
        "port": server.port(),
        "path": "/hook?a=b",
        "httpHeaders": [{ "name": "X-Hook", "value": "begin" }],
    }});
    let time = "$(cut -d ' ' -f 1 /proc/uptime)";
    let timed = |name: &str| {
        shell(
            name,
            &format!("{}; sleep 3600", note(&format!("{name} {time}"))),
        )
    };
    let spec = json!({ "containers": [
        hooked(timed("slept"), &json!({ "sleep": { "seconds": 1 } })),
        hooked(timed("asked"), &get),
        timed("last"),
    ]});
    node.apply(&notes.pod("post-start-kinds", spec))?;
    node.wait_ready("post-start-kinds")?;
    let (count, headers) = server.requests();
    assert_eq!(count, 1);
    assert_eq!(headers["x-hook"], "begin");
    assert!(
        headers["user-agent"].starts_with("kube-lifecycle/"),
        "{headers:?}"
    );
    super::wait(&node, "all have begun", || Ok(notes.lines().len() == 3))?;
    let times: Vec<f64> = notes
        .lines()
        .iter()
        .filter_map(|line| line.split(' ').nth(1)?.parse().ok())
        .collect();
    assert!(times[1] - times[0] >= 1.0, "one second of sleep: {times:?}");
    Ok(())
}

#[test]
fn a_failed_post_start_hook_kills_the_container() -> Result<()> {
    let node = Node::shared()?;
    let tcp = json!({ "tcpSocket": { "host": "127.0.0.1", "port": 1 } });
    let get = json!({ "httpGet": { "host": "127.0.0.1", "port": 1 } });
    let rows = [
        (
            "post-start-exec",
            exec("echo no luck >&2; exit 9"),
            "exited with 9",
        ),
        (
            "post-start-get",
            get,
            "HTTP lifecycle hook (/) for Container \"main\"",
        ),
        // The type allows it, but a kubelet fails such a hook.
        ("post-start-tcp", tcp, "invalid handler"),
    ];
    for (name, hook, _) in &rows {
        let notes = Notes::new(&node, name)?;
        let main = shell("main", &noting_script("main", ":", 0));
        let spec = json!({ "containers": [hooked(main, hook), waiting("other")] });
        node.apply(&notes.pod(name, spec))?;
    }
    for (name, _, what) in &rows {
        let waits = ["PostStartHookError", "CrashLoopBackOff"];
        let seen = node.wait(name, "waits after its failed hook", |pod| {
            waits.contains(&waits_for(pod, "main"))
        })?;
        assert!(ended_before(&seen, "main").is_object(), "{name}: it ran");
        let event = node.wait_event(name, "FailedPostStartHook", "")?;
        assert_eq!(event, "PostStartHook failed", "{name}");
        let seen = node.wait(name, "is tried again", |pod| restarts(pod, "main") > 0)?;
        assert!(runs(&seen, "other"), "{name}: the other container goes on");
        let why = node.cli(&["why", &format!("{name}-testnode")])?;
        assert!(why.contains("PostStartHookError"), "{name}: {why}");
        assert!(why.contains(what), "{name}: {why}");
    }
    Ok(())
}
