//! `-w`: changes as they happen, also over a restart of the agent.

use rubelet_testbed::cleanup::processes;

use crate::outside::children::Lines;
use crate::outside::{self, PodText, TIMEOUT, states};

#[test]
fn lifecycle_events_show_cause_and_duration() {
    let (runtime, agent) = outside::with_pods(&[PodText::new("web")]);
    let truth = runtime.truth().unwrap();
    let mut events = Lines::start(agent.cli_command().args(["events", "pleg", "-w"]));
    events.wait("headings", TIMEOUT, |line| line.starts_with("TIME "));
    let shows = |events: &mut Lines, kind: &str| {
        let wanted = |line: &str| line.contains(" main ") && line.contains(kind);
        events.wait(kind, TIMEOUT, wanted)
    };
    shows(&mut events, "ContainerStarted");
    let main = truth.running("web-testnode", "main").unwrap().unwrap();
    processes::kill(truth.pid(&main.id).unwrap()).unwrap();
    let died = shows(&mut events, "ContainerDied");
    let cells: Vec<&str> = died
        .split("   ")
        .map(str::trim)
        .filter(|c| !c.is_empty())
        .collect();
    assert_eq!(
        cells[1..4],
        ["web-testnode", "main", "ContainerDied"],
        "{died}"
    );
    for latency in &cells[5..7] {
        assert!(latency.ends_with('s'), "{died}");
    }
    let listed = agent
        .cli(&["events", "pleg", "-o", "wide", "--for", "web"])
        .unwrap();
    assert_eq!((listed.code, &*listed.stderr), (0, ""));
    assert!(listed.stdout.contains(&main.id), "{}", listed.stdout);
}

#[test]
fn watches_continue_after_a_restart_of_the_agent() {
    let first = PodText::new("first");
    let (runtime, mut agent) = outside::with_pods(std::slice::from_ref(&first));
    let truth = runtime.truth().unwrap();
    let mut pods = Lines::start(agent.cli_command().args(["get", "pods", "-w"]));
    let mut names = Lines::start(
        agent
            .cli_command()
            .args(["get", "pods", "-w", "-o", "name"]),
    );
    let mut events = Lines::start(agent.cli_command().args(["events", "-w"]));
    let shows = |lines: &mut Lines, name: &str, status: &str| {
        let wanted = |line: &str| line.starts_with(name) && line.contains(status);
        lines.wait(&format!("{name} {status}"), TIMEOUT, wanted)
    };
    pods.wait("headings", TIMEOUT, |line| line.starts_with("NAME "));
    shows(&mut pods, "first-testnode", "Running");
    names.wait("the pod", TIMEOUT, |line| line == "pod/first-testnode");
    events.wait("an event", TIMEOUT, |line| {
        line.contains("pod/first-testnode")
    });

    let second = PodText::new("second");
    agent.write_manifest("second.yaml", &second.yaml()).unwrap();
    shows(&mut pods, "second-testnode", "0/1");
    shows(&mut pods, "second-testnode", "1/1");
    names.wait("the pod", TIMEOUT, |line| line == "pod/second-testnode");
    events.wait("its start", TIMEOUT, |line| {
        line.contains("Started") && line.contains("pod/second-testnode")
    });

    // What was published recently may not be on disk yet.
    let seen = agent.pods().unwrap();
    let seen = seen
        .iter()
        .find(|pod| pod["metadata"]["name"] == "second-testnode");
    let uid = seen.unwrap()["metadata"]["uid"].as_str().unwrap();
    let record = agent.root_dir().join(format!("rubelet/pods/{uid}.json"));
    let is_kept = |_: &rubelet_testbed::Agent| {
        let text = std::fs::read_to_string(&record).unwrap_or_default();
        Ok(text.contains("\"ready\":true").then_some(()))
    };
    agent
        .wait_for("the record of the second pod", TIMEOUT, is_kept)
        .unwrap();

    agent.kill9().unwrap();
    pods.wait("that it waits", TIMEOUT, |line| {
        line.contains("the agent does not respond; waiting for it")
    });
    agent.start().unwrap();
    states::wait_all_ready(&agent, 2);
    let first_main = truth.running("first-testnode", "main").unwrap().unwrap();
    processes::kill(truth.pid(&first_main.id).unwrap()).unwrap();
    let restarted = shows(&mut pods, "first-testnode", "1 (");
    assert!(restarted.contains("Running"), "{restarted}");
    agent.remove_manifest("second.yaml").unwrap();
    shows(&mut pods, "second-testnode", "Terminating");
    // After the restart nothing is printed again.
    let waits = pods
        .seen()
        .iter()
        .position(|line| line.contains("does not respond"));
    let after = &pods.seen()[waits.unwrap() + 1..];
    let unchanged = after.iter().find(|line| {
        line.starts_with("second-testnode") && line.contains("1/1") && line.contains("Running")
    });
    assert_eq!(unchanged, None, "{after:#?}");
}
