//! Ends of sessions: by their container, by the runtime, by the client.

use std::path::PathBuf;

use rubelet_testbed::{Agent, TestRuntime, proc, wait};

use crate::outside::children::Lines;
use crate::outside::{self, PodText, TIMEOUT};

/// A running command in the pod's container.
fn begun(agent: &Agent) -> Lines {
    let words = [
        "exec",
        "web",
        "--",
        "sh",
        "-c",
        "echo begun; exec sleep 1000",
    ];
    let mut session = Lines::start(agent.cli_command().args(words));
    session.wait("its begin", TIMEOUT, |line| line == "begun");
    session
}

#[test]
fn a_command_ends_with_its_container() {
    let web = PodText::new("web");
    let (_runtime, agent) = outside::with_pods(std::slice::from_ref(&web));
    let mut session = begun(&agent);
    agent.remove_manifest(&web.file()).unwrap();
    session.wait("how it ended", TIMEOUT, |line| {
        line == "command terminated with exit code 137"
    });
    assert_eq!(session.end(), Some(137));
}

#[test]
fn a_command_ends_with_its_runtime() {
    let (runtime, agent) = outside::with_pods(&[PodText::new("web")]);
    // The embedded runtime exits with its agent.
    let TestRuntime::Containerd(containerd) = &runtime else {
        return;
    };
    let mut session = begun(&agent);
    containerd.kill9().unwrap();
    session.wait("what happened", TIMEOUT, |line| line.starts_with("error: "));
    assert_eq!(session.end(), Some(1));
    let refused = agent.cli(&["exec", "web", "--", "true"]).unwrap();
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stderr.starts_with("error: "), "{refused:?}");
    containerd.resume().unwrap();
    wait::until("commands run again", TIMEOUT, || {
        let ended = agent.cli(&["exec", "web", "--", "true"])?;
        Ok((ended.code == 0).then_some(()))
    })
    .unwrap();
}

#[test]
fn disconnected_clients_leave_no_process_or_descriptor() {
    let (_runtime, agent) = outside::with_pods(&[PodText::new("web")]);
    // Descriptors of sessions: the agent watches the container's process some time after its start.
    let descriptors = || {
        let files = proc::open_files(agent.pid().unwrap());
        let of_sessions = |file: &PathBuf| {
            let file = file.to_string_lossy();
            ["socket:", "pipe:"]
                .iter()
                .any(|kind| file.starts_with(kind))
        };
        files.into_iter().filter(of_sessions).count()
    };
    // One more session, whose descriptors stay open for a moment longer.
    let processes = || {
        let words = ["exec", "web", "--", "sh", "-c", "pidof cat | wc -w"];
        let counted = agent.cli(&words).unwrap().stdout;
        counted.trim().parse::<usize>().unwrap()
    };
    // Afterwards one-time allocations exist.
    drop(begin_cat(&agent));
    wait::until("the first process is gone", TIMEOUT, || {
        Ok((processes() == 0).then_some(()))
    })
    .unwrap();
    let held = descriptors();
    let clients: Vec<_> = (0..30).map(|_| begin_cat(&agent)).collect();
    assert_eq!(processes(), 30);
    // They are killed.
    drop(clients);
    wait::until("their processes are gone", TIMEOUT, || {
        Ok((processes() == 0).then_some(()))
    })
    .unwrap();
    wait::until("their descriptors are closed", TIMEOUT, || {
        Ok((descriptors() <= held).then_some(()))
    })
    .unwrap();
}

fn begin_cat(agent: &Agent) -> Lines {
    let words = ["exec", "-i", "web", "--", "cat"];
    let mut client = Lines::start_with_input(agent.cli_command().args(words), b"here\n");
    client.wait("its echo", TIMEOUT, |line| line == "here");
    client
}
