//! A single file instead of a directory, and paths that do not exist yet.

use rubelet_testbed::status::is_ready;
use rubelet_testbed::{Agent, TestRuntime, wait};

use crate::container_id;
use crate::outside::{PodText, TIMEOUT, pod_text, states, truth};

#[test]
fn a_manifest_path_can_be_created_later() {
    let runtime = TestRuntime::start().unwrap();
    let truth = runtime.truth().unwrap();

    let later = runtime.scratch().dir().join("later");
    let directory = later.join("manifests");
    let mut agent = agent_with(&runtime, &directory.display().to_string());
    agent.wait_ready(TIMEOUT).unwrap();
    let shown = states::wait_manifest(&agent, "later/manifests", "Bad");
    assert_eq!(shown["status"]["reason"], "Missing");
    let message = shown["status"]["message"].as_str().unwrap();
    assert!(message.contains("does not exist yet"), "{message}");
    agent
        .wait_for("what is waited for is the source", TIMEOUT, |agent| {
            let readyz = agent.get("/readyz")?;
            let is_told = readyz.text().contains("waiting for a manifest source");
            Ok((readyz.status == 500 && is_told).then_some(()))
        })
        .unwrap();
    std::fs::create_dir_all(&directory).unwrap();
    let pod = PodText::new("patient");
    std::fs::write(directory.join("patient.yaml"), pod.yaml()).unwrap();
    let id = container_id(&states::wait_ready(&agent, "patient"));

    // A removed directory may come back: its pods stay.
    std::fs::rename(&directory, later.join("elsewhere")).unwrap();
    states::wait_manifest(&agent, "later/manifests", "Bad");
    let now = agent.pod("patient").unwrap().unwrap();
    assert!(is_ready(&now));
    std::fs::rename(later.join("elsewhere"), &directory).unwrap();
    states::wait_manifest(&agent, "manifests/patient.yaml", "Ok");
    assert_eq!(container_id(&agent.pod("patient").unwrap().unwrap()), id);
    std::fs::remove_file(directory.join("patient.yaml")).unwrap();
    truth::wait_empty(&agent, &truth);
    agent.terminate().unwrap();
    drop(agent);

    let file = runtime.scratch().dir().join("single.yaml");
    let agent = agent_with(&runtime, &file.display().to_string());
    agent.wait_ready(TIMEOUT).unwrap();
    let [one, two] = ["one", "two"].map(PodText::new);
    let neighbour = file.with_file_name("neighbour.yaml");
    std::fs::write(&neighbour, PodText::new("neighbour").yaml()).unwrap();
    std::fs::write(&file, one.yaml()).unwrap();
    let id = container_id(&states::wait_ready(&agent, "one"));
    let both = pod_text::documents(&[one.clone(), two]);
    std::fs::write(file.with_extension("new"), both).unwrap();
    std::fs::rename(file.with_extension("new"), &file).unwrap();
    states::wait_ready(&agent, "two");
    states::wait_all_ready(&agent, 2);
    assert_eq!(container_id(&agent.pod("one").unwrap().unwrap()), id);
    std::fs::remove_file(&file).unwrap();
    truth::wait_empty(&agent, &truth);
}

/// An agent with another manifest path than the test bed's directory.
fn agent_with(runtime: &TestRuntime, place: &str) -> Agent {
    Agent::builder(runtime)
        .flag(format!("--pod-manifest-path={place}"))
        .config("fileCheckFrequency", "1s")
        .start()
        .unwrap()
}

#[test]
fn without_any_source_the_agent_runs_and_warns() {
    let runtime = TestRuntime::start().unwrap();
    let agent = Agent::builder(&runtime)
        .flag("--pod-manifest-path=")
        .start()
        .unwrap();
    agent.wait_ready(TIMEOUT).unwrap();
    wait::until("the agent is ready for work", TIMEOUT, || {
        Ok((agent.get("/readyz")?.status == 200).then_some(()))
    })
    .unwrap();
    let log = std::fs::read_to_string(agent.log_path()).unwrap();
    assert!(log.contains("No source of pods is configured"), "{log}");
}
