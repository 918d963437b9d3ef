//! Lifecycle of pods: restart policies, init containers, deadlines, edits and removal.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use rubelet_testbed::cleanup::cgroups;
use rubelet_testbed::manifest::{WAIT, pod, shell, waiting, with};
use rubelet_testbed::node::TIMEOUT;
use rubelet_testbed::status::{condition, container, is_ready, restarts, waits_for};
use rubelet_testbed::{Node, clock, wait};
use serde_json::{Value, json};

fn ends_with(name: &str, policy: &str, code: i32) -> Value {
    let main = shell("main", &format!("exit {code}"));
    pod(
        name,
        &json!({ "restartPolicy": policy, "containers": [main] }),
    )
}

#[test]
fn an_exited_container_is_restarted_by_policy() -> Result<()> {
    let node = Node::shared()?;
    let pods = [
        ("never-0", "Never", 0, "Succeeded"),
        ("never-1", "Never", 1, "Failed"),
        ("on-failure-0", "OnFailure", 0, "Succeeded"),
        ("on-failure-1", "OnFailure", 1, "Running"),
        ("always-0", "Always", 0, "Running"),
        ("always-1", "Always", 1, "Running"),
    ];
    for (name, policy, code, _) in pods {
        node.apply(&ends_with(name, policy, code))?;
    }
    for (name, _, code, phase) in pods {
        let reason = if code == 0 { "Completed" } else { "Error" };
        if phase == "Running" {
            let seen = node.wait(name, "backs off", |pod| {
                waits_for(pod, "main") == "CrashLoopBackOff"
            })?;
            assert_eq!(seen["status"]["phase"], phase, "{name}");
            let main = container(&seen, "main");
            assert_eq!(
                main["restartCount"], 1,
                "{name}: the first restart is at once"
            );
            let last = &main["lastState"]["terminated"];
            assert_eq!(last["exitCode"], code, "{name}: how it ended");
            assert_eq!(last["reason"], reason, "{name}: how it ended");
            let uid = seen["metadata"]["uid"].as_str().unwrap_or_default();
            assert_eq!(
                main["state"]["waiting"]["message"],
                format!(
                    "back-off 10s restarting failed container=main pod={name}-testnode_default({uid})"
                )
            );
            assert_eq!(condition(&seen, "Ready")["reason"], "ContainersNotReady");
            let event = node.wait_event(name, "BackOff", "Back-off restarting failed container")?;
            assert!(event.contains(" main in pod "), "{event}");
        } else {
            let seen = node.wait_end(name)?;
            assert_eq!(seen["status"]["phase"], phase, "{name}");
            let end = &container(&seen, "main")["state"]["terminated"];
            assert_eq!(end["exitCode"], code, "{name}");
            assert_eq!(end["reason"], reason, "{name}");
            assert_eq!(restarts(&seen, "main"), 0, "{name} is not started again");
            let (ready, initialized) = match phase {
                "Succeeded" => ("PodCompleted", "PodCompleted"),
                _ => ("PodFailed", ""),
            };
            assert_eq!(condition(&seen, "Ready")["status"], "False", "{name}");
            assert_eq!(condition(&seen, "Ready")["reason"], ready, "{name}");
            let reason = condition(&seen, "Initialized")["reason"].as_str();
            assert_eq!(reason.unwrap_or_default(), initialized, "{name}");
            assert!(
                node.containers(name)?
                    .iter()
                    .all(|found| !found.is_running()),
                "the runtime agrees that {name} has ended"
            );
        }
    }
    the_second_restart_waits_for_ten_seconds(&node)
}

fn the_second_restart_waits_for_ten_seconds(node: &Node) -> Result<()> {
    let made = |attempt: u32| -> Result<Option<i64>> {
        let found = node.containers("always-1")?;
        Ok(found
            .iter()
            .find(|one| one.attempt == attempt)
            .map(|one| one.created_at))
    };
    let first = made(1)?.context("the container of the first restart is kept")?;
    let second = node
        .agent()
        .wait_for("the second restart", TIMEOUT, |_| made(2))?;
    let pause = Duration::from_nanos((second - first).unsigned_abs());
    assert!(
        pause.as_secs() >= 10,
        "the second restart comes after a back-off of 10 s, not {pause:?}"
    );
    let seen = node.wait("always-1", "backs off again", |pod| {
        restarts(pod, "main") == 2 && waits_for(pod, "main") == "CrashLoopBackOff"
    })?;
    let message = &container(&seen, "main")["state"]["waiting"]["message"];
    let doubled = message.as_str().unwrap_or_default();
    assert!(doubled.starts_with("back-off 20s "), "{doubled}");
    let kept = node.containers("always-1")?.len();
    assert!(
        kept <= 2,
        "the newest container of a name and the one before it are kept, not {kept}"
    );
    Ok(())
}

/// Adds the container's name and the time since boot to a file of the volume.
fn note(name: &str, what: &str) -> String {
    format!("echo {name} {what} $(cut -d ' ' -f 1 /proc/uptime) >> /data/notes")
}

fn with_data(container: Value) -> Value {
    with(
        container,
        &json!({ "volumeMounts": [{ "name": "data", "mountPath": "/data" }] }),
    )
}

fn with_volume(spec: Value) -> Value {
    with(
        spec,
        &json!({ "volumes": [{ "name": "data", "emptyDir": {} }] }),
    )
}

#[test]
fn init_containers_run_in_order_before_all_others() -> Result<()> {
    let node = Node::shared()?;
    let init = |name: &str| {
        let script = format!(
            "{}; sleep 0.3; {}",
            note(name, "begins"),
            note(name, "ends")
        );
        with_data(shell(name, &script))
    };
    let main = shell(
        "main",
        &format!("{}; cat /data/notes; {WAIT}", note("main", "begins")),
    );
    let spec = json!({
        "initContainers": [init("one"), init("two"), init("three")],
        "containers": [with_data(main), waiting("other")],
    });
    node.apply(&pod("init-order", &with_volume(spec)))?;
    let seen = node.wait("init-order", "is initialising", |pod| {
        !container(pod, "one")["state"]["running"].is_null()
    })?;
    assert_eq!(
        seen["status"]["phase"], "Pending",
        "while init containers run"
    );
    assert_eq!(waits_for(&seen, "main"), "PodInitializing");
    let initialized = condition(&seen, "Initialized");
    assert_eq!(initialized["reason"], "ContainersNotInitialized");
    assert_eq!(
        initialized["message"],
        "containers with incomplete status: [one two three]"
    );

    let seen = node.wait_ready("init-order")?;
    assert_eq!(condition(&seen, "Initialized")["status"], "True");
    for name in ["one", "two", "three"] {
        let status = container(&seen, name);
        assert_eq!(
            status["state"]["terminated"]["reason"], "Completed",
            "{name}"
        );
        assert_eq!(status["ready"], true, "{name}");
    }
    // It is ready before it has written anything.
    let notes = node.wait_log("init-order", "main", "main begins")?;
    let steps: Vec<(String, f64)> = notes.lines().filter_map(step).collect();
    let names: Vec<&str> = steps.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "one begins",
            "one ends",
            "two begins",
            "two ends",
            "three begins",
            "three ends",
            "main begins"
        ],
        "{notes}"
    );
    assert!(
        steps.is_sorted_by(|(_, earlier), (_, later)| earlier <= later),
        "{notes}"
    );
    Ok(())
}

fn step(line: &str) -> Option<(String, f64)> {
    let (name, time) = line.rsplit_once(' ')?;
    Some((name.to_owned(), time.parse().ok()?))
}

#[test]
fn a_failing_init_container_is_restarted_by_policy() -> Result<()> {
    let node = Node::shared()?;
    let spec = json!({
        "restartPolicy": "Never",
        "initContainers": [shell("good", "true"), shell("bad", "exit 7"), shell("late", "true")],
        "containers": [waiting("main")],
    });
    node.apply(&pod("init-never", &spec))?;
    let flaky = shell(
        "flaky",
        "test -e /data/tried || { touch /data/tried; exit 5; }",
    );
    let spec = json!({
        "restartPolicy": "Always",
        "initContainers": [with_data(flaky), shell("once", "true")],
        "containers": [waiting("main")],
    });
    node.apply(&pod("init-always", &with_volume(spec)))?;

    let seen = node.wait_end("init-never")?;
    assert_eq!(seen["status"]["phase"], "Failed");
    let bad = &container(&seen, "bad")["state"]["terminated"];
    assert_eq!(bad["exitCode"], 7, "the init container's own exit code");
    for never_ran in ["late", "main"] {
        assert_eq!(
            waits_for(&seen, never_ran),
            "PodInitializing",
            "{never_ran}"
        );
    }
    let made: Vec<String> = node
        .containers("init-never")?
        .into_iter()
        .map(|found| found.name)
        .collect();
    assert_eq!(made, ["bad", "good"], "nothing is made after the failure");

    let seen = node.wait_ready("init-always")?;
    assert_eq!(restarts(&seen, "flaky"), 1, "it was started once more");
    assert_eq!(restarts(&seen, "once"), 0);
    assert_eq!(
        container(&seen, "flaky")["lastState"]["terminated"]["exitCode"],
        5
    );
    Ok(())
}

#[test]
fn a_pod_is_stopped_after_its_active_deadline() -> Result<()> {
    let node = Node::shared()?;
    // It must have started by then.
    let seconds = wait::patiently(Duration::from_secs(4)).as_secs();
    let spec = json!({ "activeDeadlineSeconds": seconds, "containers": [waiting("main")] });
    node.apply(&pod("deadline", &spec))?;
    let seen = node.wait("deadline", "was stopped", |pod| {
        !container(pod, "main")["state"]["terminated"].is_null()
    })?;
    let status = &seen["status"];
    assert_eq!(status["phase"], "Failed");
    assert_eq!(status["reason"], "DeadlineExceeded");
    assert_eq!(
        status["message"],
        "Pod was active on the node longer than the specified deadline"
    );
    assert_eq!(restarts(&seen, "main"), 0, "it is not started again");
    node.wait_event(
        "deadline",
        "DeadlineExceeded",
        "longer than the specified deadline",
    )?;
    node.agent()
        .wait_for("the sandbox is stopped", TIMEOUT, |_| {
            Ok(sandboxes(&node, "deadline")?
                .iter()
                .all(|(_, ready, _)| !ready)
                .then_some(()))
        })
}

/// Id, readiness and attempt of all sandboxes of a pod, the newest first.
fn sandboxes(node: &Node, name: &str) -> Result<Vec<(String, bool, u32)>> {
    let full = node.agent().full_name(name);
    let mut found = node.truth().sandboxes()?;
    found.retain(|sandbox| sandbox.pod == full);
    found.sort_by_key(|sandbox| std::cmp::Reverse(sandbox.attempt));
    Ok(found
        .into_iter()
        .map(|found| (found.id, found.ready, found.attempt))
        .collect())
}

#[test]
fn an_edit_restarts_only_what_it_changes() -> Result<()> {
    let node = Node::shared()?;
    let two = |value: &str| {
        let edited = with(
            waiting("edited"),
            &json!({ "env": [{ "name": "VALUE", "value": value }] }),
        );
        pod("edit", &json!({ "containers": [waiting("kept"), edited] }))
    };
    node.apply(&two("old"))?;
    node.wait_ready("edit")?;
    let id = |name: &str| node.running("edit", name).map(|found| found.id);
    let (kept, edited) = (id("kept")?, id("edited")?);
    let sandbox = sandboxes(&node, "edit")?;

    node.apply(&two("new"))?;
    let seen = node.wait("edit", "has its new container", |pod| {
        is_ready(pod) && restarts(pod, "edited") == 1
    })?;
    assert_ne!(
        id("edited")?,
        edited,
        "a changed variable replaces the container"
    );
    assert_eq!(
        node.exec("edit", "edited", &["sh", "-c", "echo $VALUE"])?,
        "new\n"
    );
    assert_eq!(id("kept")?, kept, "the other container runs on");
    assert_eq!(restarts(&seen, "kept"), 0);
    assert_eq!(sandboxes(&node, "edit")?, sandbox, "the sandbox stays");
    node.wait_event(
        "edit",
        "Killing",
        "Container edited definition changed, will be restarted",
    )?;

    let edited = id("edited")?;
    let labels = json!({ "metadata": { "labels": { "tier": "front" } } });
    node.apply(&with(two("new"), &labels))?;
    node.wait("edit", "shows its label", |pod| {
        pod["metadata"]["labels"]["tier"] == "front"
    })?;

    // The next edit is handled by the same task, so the label's edit has been processed by then.
    let host = json!({ "spec": { "hostNetwork": true } });
    let before = (id("kept")?, id("edited")?, sandboxes(&node, "edit")?);
    assert_eq!(
        before,
        (kept, edited, sandbox.clone()),
        "a label restarts nothing"
    );
    node.apply(&with(with(two("new"), &labels), &host))?;
    node.wait("edit", "is on the host's network", |pod| {
        is_ready(pod) && restarts(pod, "kept") == 1 && restarts(pod, "edited") == 2
    })?;
    let now = sandboxes(&node, "edit")?;
    let [newest, ..] = now.as_slice() else {
        panic!("the pod has no sandbox");
    };
    assert_ne!(newest.0, sandbox[0].0, "the sandbox is replaced");
    assert_eq!((newest.1, newest.2), (true, 1), "by a second attempt");
    assert_ne!(id("kept")?, before.0);
    let inside = node.exec("edit", "kept", &["readlink", "/proc/self/ns/net"])?;
    let host = std::fs::read_link("/proc/self/ns/net")?;
    assert_eq!(
        inside.trim(),
        host.display().to_string(),
        "the host's network"
    );
    Ok(())
}

#[test]
fn a_removed_pod_gets_sigterm_then_sigkill() -> Result<()> {
    let node = Node::shared()?;
    let out = node.host_dir("removal")?;
    let on_term = |name: &str, action: &str| {
        let script = format!(
            "trap 'echo terminated > /out/{name}; {action}' TERM; touch /out/{name}-ready; \
             while :; do sleep 0.1; done"
        );
        with(
            shell(name, &script),
            &json!({ "volumeMounts": [
                { "name": "out", "mountPath": "/out" },
                { "name": "memory", "mountPath": "/memory", "subPath": "part" },
            ]}),
        )
    };
    let spec = |grace: u32, containers: Value| {
        json!({
            "terminationGracePeriodSeconds": grace,
            "containers": containers,
            "volumes": [
                { "name": "out", "hostPath": { "path": out } },
                { "name": "memory", "emptyDir": { "medium": "Memory" } },
            ],
        })
    };
    let both = json!([on_term("obeys", "exit 0"), on_term("stubborn", "")]);
    node.apply(&pod("removal", &spec(3, both)))?;
    let patient = json!([on_term("patient", "")]);
    node.apply(&pod("patience", &spec(3600, patient)))?;
    let seen = node.wait_ready("removal")?;
    for name in ["obeys", "stubborn", "patient"] {
        let ready = out.join(format!("{name}-ready"));
        node.agent()
            .wait_for("the signal handler is set", TIMEOUT, |_| {
                Ok(ready.exists().then_some(()))
            })?;
    }
    let traces = traces(&node, &seen)?;
    for trace in &traces {
        assert!(
            trace.exists(),
            "{} is there while the pod runs",
            trace.display()
        );
    }

    node.remove("patience")?;
    let start = clock::now();
    node.remove("removal")?;
    let ending = node.wait("removal", "ends", |pod| {
        pod["metadata"]["deletionTimestamp"].is_string()
    })?;
    assert_eq!(ending["metadata"]["deletionGracePeriodSeconds"], 3);
    node.agent()
        .wait_for("the container that obeys has ended", TIMEOUT, |_| {
            let runs = node
                .truth()
                .running(&node.agent().full_name("removal"), "obeys")?;
            Ok(runs.is_none().then_some(()))
        })?;
    assert!(
        node.running("removal", "stubborn").is_ok(),
        "the stubborn one has until SIGKILL"
    );
    node.wait_gone("removal")?;
    let took = start.elapsed();
    assert!(
        took.as_secs() >= 3,
        "SIGKILL came after the grace of 3 s, not after {took:?}"
    );
    assert!(
        node.running("patience", "patient").is_ok(),
        "each pod has its own grace"
    );
    for name in ["obeys", "stubborn"] {
        let said = std::fs::read_to_string(out.join(name));
        let said = said.with_context(|| format!("{name} got no SIGTERM"))?;
        assert_eq!(said, "terminated\n");
        node.wait_event("removal", "Killing", &format!("Stopping container {name}"))?;
    }
    assert_eq!(node.containers("removal")?, [], "no container is left");
    assert_eq!(sandboxes(&node, "removal")?, [], "no sandbox is left");
    for trace in &traces {
        assert!(
            std::fs::symlink_metadata(trace).is_err(),
            "{} is left",
            trace.display()
        );
    }
    Ok(())
}

/// Traces of the pod on the host: its directory, its log directory, links to its logs, its cgroups,
/// and the agent's records.
fn traces(node: &Node, pod: &Value) -> Result<Vec<PathBuf>> {
    let agent = node.agent();
    let name = pod["metadata"]["name"].as_str().context("a name")?;
    let uid = pod["metadata"]["uid"].as_str().context("a UID")?;
    let mut found = vec![
        agent.root_dir().join("pods").join(uid),
        agent.root_dir().join(format!("rubelet/pods/{uid}.json")),
        agent.pod_logs_dir().join(format!("default_{name}_{uid}")),
    ];
    let tag = node.scratch().tag();
    let cgroups = cgroups::at(tag, &format!("kubepods/besteffort/pod{uid}"))?;
    assert!(!cgroups.is_empty(), "the pod has cgroups");
    found.extend(cgroups);
    for of in ["obeys", "stubborn"] {
        let id = node.running("removal", of)?.id;
        let link = format!("{name}_default_{of}-{id}.log");
        found.push(Path::new("/var/log/containers").join(link));
    }
    Ok(found)
}
