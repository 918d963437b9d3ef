//! `describe`, `events` and `logs`.

use rubelet_testbed::wait;

use crate::Shown;
use crate::outside::TIMEOUT;

#[test]
fn a_pod_is_described_with_its_containers_conditions_and_events() {
    let shown = Shown::shared();
    let text = shown.stdout(&["describe", "pod", "db"]);
    let lines: Vec<String> = text
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    for part in [
        "Name: db-testnode",
        "Namespace: default",
        "Labels: tier=back",
        "Status: Running",
        "Init Containers:",
        "prepare:",
        "Containers:",
        "sidecar:",
        "State: Running",
        "Restart Count: 0",
        "Conditions:",
        "Ready True",
        "QoS Class: BestEffort",
        "Events:",
    ] {
        assert!(lines.iter().any(|line| line == part), "{part} in {text}");
    }
    assert!(text.contains("Started"), "{text}");
    // The ages of events continue.
    let object = |text: &str| text.split("\nEvents:").next().map(str::to_owned);
    let again = shown.stdout(&["describe", "pod/db-testnode"]);
    assert_eq!(object(&again), object(&text));
    let complaint = shown.complaint(1, &["describe", "pod", "nothing"]);
    assert!(complaint.contains("\"nothing\" not found"), "{complaint}");
}

#[test]
fn events_are_reported_oldest_first_and_for_one_pod() {
    let shown = Shown::shared();
    let text = wait::until("all events are there", TIMEOUT, || {
        let text = shown.stdout(&["events", "--for", "db"]);
        Ok((text.matches(" Started ").count() == 3).then_some(text))
    })
    .unwrap();
    let head = text.lines().next().unwrap();
    for heading in ["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"] {
        assert!(head.contains(heading), "{text}");
    }
    assert!(
        text.lines()
            .skip(1)
            .all(|row| row.contains("pod/db-testnode")),
        "{text}"
    );
    let place = |word: &str| text.find(word).unwrap_or_else(|| panic!("{text}"));
    assert!(place(" Created ") < place(" Started "), "{text}");
    let everything = shown.stdout(&["events", "-A"]);
    assert!(everything.contains("FailedManifest"), "{everything}");
    assert!(everything.contains("apart-testnode"), "{everything}");
    // A removed pod may still have events, so this is not an error.
    let output = shown
        .agent
        .cli(&["events", "--for", "pod/nothing"])
        .unwrap();
    assert_eq!((output.code, &*output.stdout), (0, ""));
    assert!(!output.stderr.is_empty());
}

#[test]
fn logs_are_printed_for_running_and_ended_containers() {
    let shown = Shown::shared();
    assert_eq!(shown.stdout(&["logs", "web-testnode"]), "hello from web\n");
    assert_eq!(shown.stdout(&["logs", "done", "--tail", "1"]), "finished\n");
    let stamped = shown.stdout(&["logs", "pod/done", "--timestamps"]);
    assert!(stamped.ends_with("Z finished\n"), "{stamped}");
    // If there are several containers, it prints which one it chose.
    let output = shown.agent.cli(&["logs", "db"]).unwrap();
    assert_eq!(output.code, 0);
    let note = "Defaulted container \"main\" out of: main, sidecar, prepare (init)";
    assert!(output.stderr.contains(note), "{output:?}");
    let complaint = shown.complaint(1, &["logs", "web", "-c", "nothing"]);
    assert!(
        complaint.contains("container nothing is not valid"),
        "{complaint}"
    );
    let complaint = shown.complaint(1, &["logs", "web", "--previous"]);
    assert!(
        complaint.contains("previous terminated container"),
        "{complaint}"
    );
    shown.complaint(2, &["logs"]);
    shown.complaint(2, &["logs", "web", "--since", "soon"]);
}
