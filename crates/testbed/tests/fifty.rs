//! Fifty pods from one directory, then many pods from one file, and nothing left at the end.

#![allow(
    clippy::unwrap_used,
    reason = "the location of a failure says which check failed"
)]

#[path = "outside/outside.rs"]
mod outside;

use std::path::Path;
use std::time::Duration;

use outside::chance::Chance;
use outside::{PodText, TIMEOUT, pod_text, states, truth};
use rubelet_testbed::cleanup::{cgroups, mounts};
use rubelet_testbed::{Agent, TestRuntime, wait};

/// Seed of the moments of removal.
const SEED: u64 = 50;

#[test]
fn fifty_pods_run_and_are_removed_completely() {
    let runtime = TestRuntime::start().unwrap();
    let truth = runtime.truth().unwrap();
    // CRI-O's store of images is one.
    let mounts_of_runtime = mounts::below(runtime.scratch().dir()).unwrap();
    let pods: Vec<PodText> = (0..50).map(|i| PodText::new(&format!("p{i}"))).collect();
    let mut builder = Agent::builder(&runtime);
    for pod in &pods {
        builder = builder.manifest(pod.file(), pod.yaml());
    }
    let mut agent = builder.start().unwrap();

    states::wait_all_ready(&agent, 50);
    assert!(
        agent
            .pods()
            .unwrap()
            .iter()
            .all(|pod| pod["status"]["phase"] == "Running")
    );
    let running = truth::running(&truth);
    assert_eq!(running.len(), 50, "one container of each pod runs");
    let once = |found: &Vec<truth::Instance>| found.len() == 1 && found[0].attempt == 0;
    assert!(running.values().all(once), "{running:#?}");
    assert_eq!(
        truth::instances(&truth),
        running,
        "and nothing else is there"
    );
    assert_eq!(truth.sandboxes().unwrap().len(), 50);
    let text = agent.wait_status(TIMEOUT, |text| text == "50/50 pods ready");
    text.unwrap();

    for pod in &pods {
        agent.remove_manifest(&pod.file()).unwrap();
    }
    let documents: Vec<PodText> = ["d0", "d1", "d2"].map(PodText::new).into();
    let list: Vec<PodText> = ["l0", "l1", "l2"].map(PodText::new).into();
    agent
        .write_manifest("documents.yaml", &pod_text::documents(&documents))
        .unwrap();
    agent
        .write_manifest("list.json", &pod_text::list(&list))
        .unwrap();
    states::wait_all_ready(&agent, 6);
    agent
        .wait_for("only the new pods are in the runtime", TIMEOUT, |_| {
            let pods = truth.sandboxes()?.len();
            Ok((pods == 6 && truth.containers()?.len() == 6).then_some(()))
        })
        .unwrap();

    // Removing one pod from the file removes only this pod.
    let before = truth::running(&truth);
    agent
        .write_manifest("documents.yaml", &pod_text::documents(&documents[..2]))
        .unwrap();
    states::wait_gone(&agent, "d2");
    let mut expected = before;
    expected.retain(|(pod, _), _| *pod != agent.full_name("d2"));
    assert_eq!(truth::instances(&truth), expected);

    agent.remove_manifest("documents.yaml").unwrap();
    agent.remove_manifest("list.json").unwrap();
    truth::wait_empty(&agent, &truth);
    states::wait_all_ready(&agent, 0);
    agent
        .wait_for(
            "no directory, log or mount of a pod is left",
            TIMEOUT,
            |agent| {
                let no_mount = mounts::below(runtime.scratch().dir())? == mounts_of_runtime;
                let no_file =
                    is_empty(&agent.root_dir().join("pods")) && is_empty(&agent.pod_logs_dir());
                Ok((no_mount && no_file).then_some(()))
            },
        )
        .unwrap();
    assert!(agent.terminate().unwrap().success());
}

#[test]
fn pods_removed_during_their_start_leave_nothing_behind() {
    let (runtime, agent) = outside::with_pods(&[]);
    let truth = runtime.truth().unwrap();
    let mut chance = Chance::new(SEED);
    for round in 0..12 {
        let pods = ["a", "b", "c"].map(|name| {
            let pod = PodText::new(&format!("{name}{round}"));
            pod.init("prepare").container("second")
        });
        for pod in &pods {
            agent.write_manifest(&pod.file(), &pod.yaml()).unwrap();
        }
        wait::pass(Duration::from_millis(chance.below(1200)));
        for pod in &pods {
            agent.remove_manifest(&pod.file()).unwrap();
        }
    }
    truth::wait_empty(&agent, &truth);
    states::wait_all_ready(&agent, 0);
    // A runtime whose call was cancelled cleans up on its own.
    agent
        .wait_for("no process of a pod is left", TIMEOUT, |_| {
            Ok((processes_of_pods(&runtime) == 0).then_some(()))
        })
        .unwrap();
}

/// Processes in the cgroups of pods.
fn processes_of_pods(runtime: &TestRuntime) -> usize {
    cgroups::members(runtime.scratch().tag()).len()
}

fn is_empty(directory: &Path) -> bool {
    std::fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_none())
}
