//! Kills of the agent at any time: its pods continue, and the next start adopts them unchanged.

#![allow(
    clippy::unwrap_used,
    reason = "the location of a failure says which check failed"
)]

#[path = "outside/outside.rs"]
mod outside;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use outside::chance::Chance;
use outside::truth::{instances, never_ran, running};
use outside::{Instances, PodText, TIMEOUT, states};
use rubelet_testbed::agent::{AgentBuilder, Notification};
use rubelet_testbed::cleanup::{cgroups, processes};
use rubelet_testbed::cri_truth::Sandbox;
use rubelet_testbed::runtime::Kind;
use rubelet_testbed::status::{condition, is_ready};
use rubelet_testbed::{Agent, CriTruth, Served, TestRuntime, wait};
use serde_json::Value;

/// How often the agent is killed.
const ROUNDS: u32 = 100;
/// In every n-th round the agent starts completely before it is killed.
const FULL_EVERY: u32 = 10;
/// Seed of the moments of the kills.
const SEED: u64 = 20_261_121;

#[test]
fn a_hundred_kills_at_random_moments_restart_no_container() {
    let pods = ten_pods();
    let (runtime, mut agent) = outside::with_pods(&pods);
    let truth = runtime.truth().unwrap();
    let before = instances(&truth);
    assert_eq!(
        before.len(),
        16,
        "every container was made once: {before:#?}"
    );
    assert_made_once(&before);
    let sandboxes = settled_sandboxes(&truth, &agent, &pods);
    let mut shown = settled_pods(&agent);

    let mut chance = Chance::new(SEED);
    agent.kill9().unwrap();
    for round in 1..=ROUNDS {
        let full = round % FULL_EVERY == 0;
        let damaged = full.then(|| damage_a_record(&agent, &mut chance));
        agent.start().unwrap();
        let moment = if let Some(damaged) = damaged {
            watch_it_start(&agent, &shown, &damaged);
            wait_for_record(&agent, &damaged);
            // What was lost with the record was recreated, and must be kept from now on.
            shown = pods_of(&agent).unwrap();
            "a full start".to_owned()
        } else {
            wait_some(&agent, &mut chance)
        };
        agent.kill9().unwrap();
        // The embedded runtime would have to be started for each query.
        if full || runtime.kind() == Kind::Containerd {
            let left = runtime.without_agent(instances).unwrap();
            assert_eq!(left, before, "round {round} of seed {SEED}, after {moment}");
        }
    }
    let left = runtime.without_agent(self::sandboxes).unwrap();
    assert_eq!(left, sandboxes);
    agent.start().unwrap();
    watch_it_start(&agent, &shown, "");
    assert_eq!(instances(&truth), before);
}

/// Ten pods with sixteen containers: some with init containers, some with two containers, one that
/// has terminated.
fn ten_pods() -> Vec<PodText> {
    let mut pods: Vec<PodText> = (0..5).map(|i| PodText::new(&format!("one{i}"))).collect();
    pods.extend((0..2).map(|i| PodText::new(&format!("init{i}")).init("prepare")));
    pods.push(PodText::new("two").container("second"));
    pods.push(
        PodText::new("all")
            .init("first")
            .init("then")
            .container("second"),
    );
    let ended = PodText::new("ended").script("exit 0");
    pods.push(ended.spec("restartPolicy", "Never"));
    pods
}

fn sandboxes(truth: &CriTruth) -> Vec<Sandbox> {
    let mut sandboxes = truth.sandboxes().unwrap();
    sandboxes.sort_by(|a, b| a.id.cmp(&b.id));
    sandboxes
}

/// The sandboxes, once each pod has a ready one. The sandbox of a terminated pod is stopped after
/// its status is written.
fn settled_sandboxes(truth: &CriTruth, agent: &Agent, pods: &[PodText]) -> Vec<Sandbox> {
    let settled = wait::until("each running pod has one ready sandbox", TIMEOUT, || {
        let sandboxes = sandboxes(truth);
        let right = pods.iter().all(|pod| {
            let name = agent.full_name(pod.name());
            let ready = sandboxes
                .iter()
                .filter(|sandbox| sandbox.pod == name && sandbox.ready);
            ready.count() == usize::from(pod.name() != "ended")
        });
        Ok(right.then_some(sandboxes))
    });
    settled.unwrap_or_else(|error| panic!("{error}: {:#?}", sandboxes(truth)))
}

/// The pods, once the terminated one no longer has a sandbox: its condition follows its phase.
fn settled_pods(agent: &Agent) -> BTreeMap<String, Value> {
    let settled = agent.wait_for("terminated pods have no sandbox", TIMEOUT, |agent| {
        let pods = pods_of(agent)?;
        let settled = pods.values().all(|pod| {
            let status = condition(pod, "PodReadyToStartContainers")["status"].as_str();
            (pod["status"]["phase"] == "Succeeded") == (status == Some("False"))
        });
        Ok(settled.then_some(pods))
    });
    settled.unwrap()
}

fn assert_made_once(instances: &Instances) {
    for (container, found) in instances {
        assert!(
            found.len() == 1 && found[0].attempt == 0,
            "{container:?} was made more than once: {found:#?}"
        );
    }
}

/// All pods, by UID, without what changes with each start of the agent: the resource version and the
/// time at which the manifest was seen.
fn pods_of(agent: &Agent) -> anyhow::Result<BTreeMap<String, Value>> {
    let pods = agent.pods()?.into_iter();
    Ok(pods
        .map(|mut pod| {
            pod["metadata"]["resourceVersion"].take();
            pod["metadata"]["annotations"]["kubernetes.io/config.seen"].take();
            (uid(&pod).to_owned(), pod)
        })
        .collect())
}

fn uid(pod: &Value) -> &str {
    pod["metadata"]["uid"].as_str().unwrap()
}

/// Checks, until the started agent lists all pods, that each listed pod is unchanged, with the same
/// times, counts and conditions. Of the pod whose record was damaged, the times of the conditions
/// are lost.
fn watch_it_start(agent: &Agent, expected: &BTreeMap<String, Value>, damaged: &str) {
    agent
        .wait_for("all pods are there again", TIMEOUT, |agent| {
            if agent.notifications().is_empty() {
                // The socket of the killed agent may still exist.
                return Ok(None);
            }
            let pods = pods_of(agent)?;
            for (uid, pod) in &pods {
                let name = &pod["metadata"]["name"];
                let (mut shown, mut before) = (pod.clone(), expected[uid].clone());
                if uid == damaged {
                    let first = shown["status"]["containerStatuses"][0]["state"].to_string();
                    let started = shown["status"]["startTime"].as_str().unwrap_or("none");
                    assert!(*started <= *first_time(&first), "{name} began {started}");
                    forget_what_only_the_record_knew(&mut shown);
                    forget_what_only_the_record_knew(&mut before);
                }
                assert_eq!(shown, before, "{name} after a kill");
            }
            Ok((pods.len() == expected.len()).then_some(()))
        })
        .unwrap();
    agent.wait_ready(TIMEOUT).unwrap();
}

/// The first time in a container's state.
fn first_time(state: &str) -> String {
    let from = state.find("startedAt").expect("the container has started");
    state[from..]
        .split('"')
        .nth(2)
        .unwrap_or_default()
        .to_owned()
}

fn forget_what_only_the_record_knew(pod: &mut Value) {
    pod["metadata"]["creationTimestamp"].take();
    let status = &mut pod["status"];
    status["startTime"].take();
    if status["phase"] == "Succeeded" {
        // The runtime released the address with the sandbox.
        status["podIP"].take();
        status["podIPs"].take();
    }
    for condition in status["conditions"].as_array_mut().unwrap() {
        condition["lastTransitionTime"].take();
    }
}

/// Lets the agent run for a random time; returns what was awaited.
fn wait_some(agent: &Agent, chance: &mut Chance) -> String {
    let log = agent.log_path();
    let log_before = std::fs::metadata(&log).unwrap().len();
    match chance.below(6) {
        0..=2 => {
            let span = Duration::from_millis(chance.below(400));
            wait::pass(span);
            format!("{span:?}")
        }
        3 => {
            agent.wait_ready(TIMEOUT).unwrap();
            "it was ready".to_owned()
        }
        4 => {
            let number = 1 + usize::try_from(chance.below(10)).unwrap();
            let what = format!("{number} pods were taken up");
            let taken_up = |_: &Agent| {
                let text = std::fs::read(&log)?;
                let new = text.get(usize::try_from(log_before)?..).unwrap_or_default();
                let text = String::from_utf8_lossy(new);
                Ok((text.matches("Pod added").count() >= number).then_some(()))
            };
            agent.wait_for(&what, TIMEOUT, taken_up).unwrap();
            what
        }
        _ => {
            let number = chance.below(10);
            let what = format!("{number} pods were ready");
            let enough = |told: &Notification| {
                let ready = told.status().and_then(|text| text.split('/').next());
                ready.is_some_and(|ready| ready.parse().is_ok_and(|ready: u64| ready >= number))
            };
            agent.wait_notification(&what, TIMEOUT, enough).unwrap();
            what
        }
    }
}

fn records(agent: &Agent) -> Vec<PathBuf> {
    let directory = agent.root_dir().join("rubelet/pods");
    let entries = std::fs::read_dir(&directory).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut records: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .collect();
    records.sort();
    records
}

/// Truncates one record of a pod to its half; returns the pod's UID.
fn damage_a_record(agent: &Agent, chance: &mut Chance) -> String {
    let records = records(agent);
    let number = chance.below(u64::try_from(records.len()).unwrap());
    let record = &records[usize::try_from(number).unwrap()];
    cut_in_half(record);
    record.file_stem().unwrap().to_string_lossy().into_owned()
}

/// Waits until the pod's record was written again, after the damaged one was moved aside.
fn wait_for_record(agent: &Agent, uid: &str) {
    let record = agent.root_dir().join(format!("rubelet/pods/{uid}.json"));
    let there = wait::until("the record is there again", TIMEOUT, || {
        Ok(record.exists().then_some(()))
    });
    there.unwrap();
}

fn cut_in_half(path: &PathBuf) {
    let bytes = std::fs::read(path).unwrap();
    std::fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
}

#[test]
fn kills_during_pod_starts_create_each_container_once() {
    let runtime = TestRuntime::start().unwrap();
    let truth = runtime.truth().unwrap();
    let pods = ten_pods();
    let mut builder = Agent::builder(&runtime);
    for pod in &pods {
        builder = builder.manifest(pod.file(), pod.yaml());
    }
    let mut agent = builder.prepare().unwrap();
    let mut chance = Chance::new(SEED);
    for number in 0..12 {
        agent.start().unwrap();
        // The number of pods grows.
        agent
            .wait_for("some containers were made", TIMEOUT, |_| {
                let made = truth.containers()?;
                let made: BTreeSet<_> = made.iter().map(|one| (&one.pod, &one.name)).collect();
                Ok((made.len() >= number).then_some(()))
            })
            .unwrap();
        wait::pass(Duration::from_millis(chance.below(100)));
        agent.kill9().unwrap();
    }
    agent.start().unwrap();
    states::wait_all_ready(&agent, pods.len());

    let mut found = instances(&truth);
    assert_eq!(found.len(), 16, "{found:#?}");
    let mut left_over = 0;
    for (container, instances) in &mut found {
        let (never, ran): (Vec<_>, Vec<_>) = instances
            .iter()
            .partition(|one| !one.running && never_ran(&truth, &one.id));
        assert_eq!(ran.len(), 1, "{container:?} of seed {SEED}: {instances:#?}");
        // containerd can't always remove a container whose start was interrupted.
        left_over += never.len();
        for one in never {
            assert_no_process(&runtime, &one.id);
        }
    }
    settled_sandboxes(&truth, &agent, &pods);
    let pods = agent.pods().unwrap();
    let restarts: u64 = pods
        .iter()
        .flat_map(states::restarts)
        .map(|(_, count)| count)
        .sum();
    // The embedded runtime undoes interrupted starts, and CRI-O does so after a while. Only their logs
    // are left, by which the attempts are counted.
    assert!(
        restarts <= left_over as u64 || matches!(runtime.kind(), Kind::Embedded | Kind::Crio),
        "{pods:#?}"
    );
}

/// Asserts that the container's cgroups are empty.
fn assert_no_process(runtime: &TestRuntime, id: &str) {
    let what = format!("no process of {id} is left");
    let name = runtime.kind().cgroup_name(id).unwrap();
    let none = wait::until(&what, TIMEOUT, || {
        let mut found = cgroups::of(runtime.scratch().tag())?;
        found.retain(|cgroup| cgroup.ends_with(&name));
        let empty = found.iter().all(|cgroup| {
            let processes = std::fs::read_to_string(cgroup.join("cgroup.procs"));
            processes.unwrap_or_default().is_empty()
        });
        Ok(empty.then_some(()))
    });
    none.unwrap();
}

#[test]
fn changes_while_the_agent_is_dead_are_applied_at_its_start() {
    let pods = [
        PodText::new("same").container("second"),
        PodText::new("edited").container("second"),
        PodText::new("removed"),
        PodText::new("killed").container("second"),
    ];
    let (runtime, mut agent) = outside::with_pods(&pods);
    agent.kill9().unwrap();
    let truth = runtime.truth().unwrap();
    let before = runtime.without_agent(instances).unwrap();
    let key = |agent: &Agent, pod: &str, name: &str| (agent.full_name(pod), name.to_owned());

    let edited = PodText::new("edited").container("second").edited(1, "2");
    agent.write_manifest("edited.yaml", &edited.yaml()).unwrap();
    agent.remove_manifest("removed.yaml").unwrap();
    agent
        .write_manifest("added.yaml", &PodText::new("added").yaml())
        .unwrap();
    let victim = &before[&key(&agent, "killed", "main")][0].id;
    let kill = |truth: &CriTruth| {
        processes::kill(truth.pid(victim).unwrap()).unwrap();
        wait::until("the runtime has noticed the kill", TIMEOUT, || {
            let found = running(truth);
            Ok((!found.contains_key(&key(&agent, "killed", "main"))).then_some(()))
        })
    };
    runtime.without_agent(kill).unwrap().unwrap();
    for record in records(&agent) {
        cut_in_half(&record);
    }

    agent.start().unwrap();
    states::wait_pod(&agent, "killed", "is ready again", |pod| {
        is_ready(pod) && states::restarts(pod).contains(&("main".to_owned(), 1))
    });
    states::wait_ready(&agent, "added");
    states::wait_pod(&agent, "edited", "is ready again", |pod| {
        is_ready(pod) && states::restarts(pod).contains(&("second".to_owned(), 1))
    });
    states::wait_gone(&agent, "removed");
    agent
        .wait_for(
            "the removed pod is gone from the runtime",
            TIMEOUT,
            |agent| {
                let sandboxes = truth.sandboxes()?;
                let name = agent.full_name("removed");
                Ok(sandboxes.iter().all(|s| s.pod != name).then_some(()))
            },
        )
        .unwrap();

    let after = running(&truth);
    for pod in ["same", "edited", "killed"] {
        for name in ["main", "second"] {
            let key = key(&agent, pod, name);
            let (old, new) = (&before[&key][0], &after[&key]);
            assert_eq!(new.len(), 1, "{key:?} runs once");
            let restarted = matches!((pod, name), ("edited", "second") | ("killed", "main"));
            let attempt = u32::from(restarted);
            assert_eq!(new[0].attempt, attempt, "{key:?}");
            assert_eq!(new[0].id != old.id, restarted, "{key:?}");
            assert_eq!(new[0].sandbox, old.sandbox, "{key:?}");
        }
    }
    assert_eq!(after.len(), 7, "{after:#?}");
}

/// Starts an agent that must fail with this message.
fn refused(agent: AgentBuilder, words: &[&str]) {
    let mut agent = agent.start().unwrap();
    let status = wait::until("the start is refused", TIMEOUT, || agent.exit_status()).unwrap();
    assert_eq!(status.code(), Some(1));
    let log = std::fs::read_to_string(agent.log_path()).unwrap();
    for words in words {
        assert!(log.contains(words), "{words}: {log}");
    }
}

#[test]
fn another_runtime_than_that_of_running_pods_is_refused() {
    let pods = ["one", "two"].map(PodText::new);
    let (runtime, mut agent) = outside::with_pods(&pods);
    let truth = runtime.truth().unwrap();
    let before = instances(&truth);
    assert!(agent.terminate().unwrap().success());
    let nowhere = "unix:///run/rubelet-t-nowhere.sock";
    let (endpoint, words, keep) = match &runtime {
        TestRuntime::Containerd(containerd) => {
            // Its pods continue without it, and it can't be queried.
            containerd.kill9().unwrap();
            let keep = format!("write containerRuntimeEndpoint: {};", containerd.endpoint());
            ("embedded", "pods run in containerd on this machine", keep)
        }
        TestRuntime::Crio(crio) => {
            crio.kill9().unwrap();
            // The processes that supervise its pods do not have its socket's path, so it is the usual one.
            let keep = "write containerRuntimeEndpoint: unix:///run/crio/crio.sock;".to_owned();
            ("embedded", "pods run in CRI-O on this machine", keep)
        }
        TestRuntime::Embedded(_) => (
            nowhere,
            "2 pods of the embedded runtime run on this machine",
            "write containerRuntimeEndpoint: embedded;".to_owned(),
        ),
    };
    let mut other = Agent::builder(&runtime).endpoint(endpoint);
    match &runtime {
        TestRuntime::Containerd(_) | TestRuntime::Crio(_) => {
            // Never the machine's own.
            let dir = runtime.scratch().subdir("inside").unwrap();
            for name in ["--runtime-root-dir", "--runtime-run-dir"] {
                other = other.flag(name).flag(dir.join(&name[2..]));
            }
        }
        TestRuntime::Embedded(embedded) => {
            for flag in embedded.flags() {
                other = other.flag(flag);
            }
        }
    }
    refused(other, &[words, &keep]);

    if let TestRuntime::Containerd(containerd) = &runtime {
        // A third runtime, which responds and knows none of them.
        let served = Served::start().unwrap();
        let socket = served.environment().endpoint();
        let other = Agent::builder(&runtime).endpoint(socket.as_str());
        refused(
            other,
            &[
                words,
                &format!("with the container runtime at {socket}"),
                &keep,
            ],
        );
        served.remove().unwrap();
        containerd.resume().unwrap();
    }
    if let TestRuntime::Crio(crio) = &runtime {
        crio.resume().unwrap();
    }
    agent.start().unwrap();
    states::wait_all_ready(&agent, pods.len());
    assert_eq!(instances(&truth), before);
}
