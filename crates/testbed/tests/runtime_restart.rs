//! Restarts of the runtime: the agent reports them, waits, and does not touch running pods.

#![allow(
    clippy::unwrap_used,
    reason = "the location of a failure says which check failed"
)]

#[path = "outside/outside.rs"]
mod outside;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use outside::chance::Chance;
use outside::truth::{instances, running};
use outside::{PodText, TIMEOUT, pod_text, states};
use rubelet_testbed::cleanup::processes;
use rubelet_testbed::status::is_ready;
use rubelet_testbed::{Agent, Containerd, CriTruth, proc, wait};

/// Seed of the pauses between changes.
const SEED: u64 = 4;
/// Minimum number of restarts of the runtime while manifests change.
const RESTARTS: usize = 4;

#[test]
fn changes_during_runtime_restarts_converge() {
    let pods = ["stays", "edited", "removed", "twice", "comes-back"].map(|name| {
        let pod = PodText::new(name);
        pod.container("second")
    });
    let containerd = Containerd::start().unwrap();
    let agent = outside::agent_on(&containerd, &pods);
    let truth = containerd.truth().unwrap();
    let before = running(&truth);
    let changes_end = AtomicBool::new(false);
    let restarts = AtomicUsize::new(0);

    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !changes_end.load(Ordering::SeqCst) || restarts.load(Ordering::SeqCst) < RESTARTS
            {
                if restarts.load(Ordering::SeqCst).is_multiple_of(2) {
                    containerd.kill9().unwrap();
                } else {
                    containerd.halt().unwrap();
                }
                containerd.resume().unwrap();
                restarts.fetch_add(1, Ordering::SeqCst);
            }
        });
        change_ten_things(&agent, &pods);
        changes_end.store(true, Ordering::SeqCst);
    });

    assert!(restarts.load(Ordering::SeqCst) >= RESTARTS);
    agent
        .wait_for(
            "the runtime holds what the directory says",
            TIMEOUT,
            |agent| {
                let found: BTreeSet<String> =
                    truth.sandboxes()?.into_iter().map(|s| s.pod).collect();
                let good =
                    found == expected_pods(agent) && is_as_the_directory_says(agent, &truth)?;
                Ok(good.then_some(()))
            },
        )
        .unwrap();
    states::wait_all_ready(&agent, 8);
    let after = running(&truth);
    for (pod, name) in [("stays", "main"), ("stays", "second"), ("edited", "main")] {
        let key = (agent.full_name(pod), name.to_owned());
        assert_eq!(after[&key], before[&key], "{key:?} was left alone");
    }
}

/// Twelve containers run, each once and with its last definition.
fn is_as_the_directory_says(agent: &Agent, truth: &CriTruth) -> anyhow::Result<bool> {
    let found = running(truth);
    if found.len() != 12 || found.values().any(|instances| instances.len() != 1) {
        return Ok(false);
    }
    for (pod, name, version) in [("edited", "second", "2\n"), ("twice", "main", "3\n")] {
        let id = &found[&(agent.full_name(pod), name.to_owned())][0].id;
        if truth.exec(id, &["sh", "-c", "echo $VERSION"])? != version {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Adds three files with five pods, edits three pods, removes three files and adds one of them
/// again.
fn change_ten_things(agent: &Agent, pods: &[PodText; 5]) {
    let mut chance = Chance::new(SEED);
    let mut change = |what: &dyn Fn()| {
        what();
        wait::pass(Duration::from_millis(chance.below(500)));
    };
    let [_, edited, removed, twice, comes_back] = pods;
    let write = |pod: &PodText| agent.write_manifest(&pod.file(), &pod.yaml()).unwrap();
    let several = ["m0", "m1", "m2"].map(PodText::new);
    change(&|| write(&PodText::new("added")));
    change(&|| write(&edited.clone().edited(1, "2")));
    change(&|| agent.remove_manifest(&comes_back.file()).unwrap());
    change(&|| {
        let text = pod_text::documents(&several);
        agent.write_manifest("several.yaml", &text).unwrap();
    });
    change(&|| write(&twice.clone().edited(0, "2")));
    change(&|| agent.remove_manifest(&removed.file()).unwrap());
    change(&|| write(&PodText::new("short-lived")));
    change(&|| write(comes_back));
    change(&|| write(&twice.clone().edited(0, "3")));
    change(&|| agent.remove_manifest("short-lived.yaml").unwrap());
}

fn expected_pods(agent: &Agent) -> BTreeSet<String> {
    [
        "stays",
        "edited",
        "twice",
        "comes-back",
        "added",
        "m0",
        "m1",
        "m2",
    ]
    .into_iter()
    .map(|name| agent.full_name(name))
    .collect()
}

#[test]
fn without_a_runtime_at_its_start_the_agent_waits() {
    let containerd = Containerd::start().unwrap();
    containerd.halt().unwrap();
    let pod = PodText::new("web");
    let agent = Agent::builder(&containerd)
        .manifest(pod.file(), pod.yaml())
        .start()
        .unwrap();

    agent
        .wait_status(TIMEOUT, |text| text.contains("container runtime is down"))
        .unwrap();
    agent.wait_ready(TIMEOUT).unwrap();
    assert_says_the_runtime_is_down(&agent);
    let log = std::fs::read_to_string(agent.log_path()).unwrap();
    assert!(log.contains("skipping pod synchronization"), "{log}");
    let shown = agent.cli(&["get", "manifests"]).unwrap();
    assert!(shown.stdout.contains("web.yaml"), "{shown:?}");

    containerd.resume().unwrap();
    states::wait_ready(&agent, "web");
    agent
        .wait_for("the agent is ready for work", TIMEOUT, |agent| {
            Ok((agent.get("/readyz")?.status == 200).then_some(()))
        })
        .unwrap();
    agent
        .wait_status(TIMEOUT, |text| text == "1/1 pods ready")
        .unwrap();
}

fn assert_says_the_runtime_is_down(agent: &Agent) {
    for get in [Agent::health, Agent::get] {
        let healthz = get(agent, "/healthz").unwrap();
        assert_eq!((healthz.status, healthz.text().as_str()), (200, "ok"));
        let syncloop = get(agent, "/healthz/syncloop").unwrap();
        assert_eq!(syncloop.status, 200, "{}", syncloop.text());
    }
    let readyz = agent.get("/readyz").unwrap();
    assert_eq!(readyz.status, 500, "{}", readyz.text());
    let text = readyz.text();
    assert!(text.contains("container runtime is down"), "{text}");
}

#[test]
fn pods_continue_without_the_runtime_and_restart_once() {
    let pods = [
        PodText::new("calm"),
        PodText::new("dies").container("second"),
    ];
    let containerd = Containerd::start().unwrap();
    let agent = outside::agent_on(&containerd, &pods);
    let truth = containerd.truth().unwrap();
    let before = instances(&truth);
    let key = |pod: &str, name: &str| (agent.full_name(pod), name.to_owned());
    let pid = |pod: &str, name: &str| truth.pid(&before[&key(pod, name)][0].id).unwrap();
    let calm = pid("calm", "main");
    let victim = pid("dies", "second");
    let shown = states::wait_ready(&agent, "calm");

    containerd.kill9().unwrap();
    agent
        .wait_for("the agent has noticed", TIMEOUT, |agent| {
            Ok((agent.get("/readyz")?.status == 500).then_some(()))
        })
        .unwrap();
    assert_says_the_runtime_is_down(&agent);
    agent
        .wait_status(TIMEOUT, |text| {
            text.starts_with("2/2 pods ready, container runtime is down")
        })
        .unwrap();
    let told = agent.notifications().pop().unwrap();
    let text = told.status().unwrap_or_default();
    assert!(
        text.starts_with("2/2 pods ready, container runtime is down"),
        "{text}"
    );
    assert_eq!(agent.pod("calm").unwrap().unwrap(), shown);
    assert!(proc::Stat::of(calm).is_some_and(|stat| stat.state != 'Z'));
    processes::kill(victim).unwrap();

    containerd.resume().unwrap();
    let dies = states::wait_pod(&agent, "dies", "is ready after one restart", |pod| {
        is_ready(pod) && states::restarts(pod).contains(&("second".to_owned(), 1))
    });
    assert!(states::restarts(&dies).contains(&("main".to_owned(), 0)));
    states::wait_all_ready(&agent, 2);
    let after = running(&truth);
    assert_eq!(after[&key("calm", "main")], before[&key("calm", "main")]);
    assert_eq!(after[&key("dies", "main")], before[&key("dies", "main")]);
    let second = &after[&key("dies", "second")];
    assert_eq!((second.len(), second[0].attempt), (1, 1));
    let sandbox = &before[&key("dies", "second")][0].sandbox;
    assert_eq!(second[0].sandbox, *sandbox, "in the same sandbox");
    assert_eq!(
        agent.pod("calm").unwrap().unwrap()["status"],
        shown["status"]
    );
}
