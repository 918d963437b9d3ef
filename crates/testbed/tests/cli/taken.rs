//! Resources that another agent already uses.

use std::net::TcpListener;

use rubelet_testbed::runtime::Kind;
use rubelet_testbed::{Agent, TestRuntime};

use crate::outside::{self, TIMEOUT};

#[test]
fn a_resource_in_use_makes_the_second_agent_exit() {
    let (runtime, first) = outside::with_pods(&[]);
    let followed = |agent: &Agent| {
        let log = std::fs::read_to_string(agent.log_path())?;
        let told = log.contains("Receiving events of the container runtime");
        Ok(told.then_some(log))
    };
    let before = first
        .wait_for("it has nothing more to say", TIMEOUT, followed)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let socket = first.api_socket().display().to_string();
    let root = first.root_dir().display().to_string();
    // Two agents can use the same containerd; an embedded runtime has one agent.
    let elsewhere = TestRuntime::start().unwrap();
    let builder = || Agent::builder(&elsewhere);
    let mut rows = vec![
        (
            builder().config("healthzPort", port),
            format!("127.0.0.1:{port}"),
        ),
        (
            builder().own_option("socket", socket.as_str()),
            format!("another agent is listening on {socket}"),
        ),
        (
            builder().flag(format!("--root-dir={root}")),
            format!("another agent uses the root directory {root}"),
        ),
    ];
    if runtime.kind() == Kind::Embedded {
        let its = runtime.scratch().dir().display().to_string();
        rows.push((Agent::builder(&runtime), its));
        let bridge = runtime.scratch().bridge();
        rows.push((
            builder().flag(format!("--runtime-bridge={bridge}")),
            format!("uses the bridge {bridge}"),
        ));
    }
    for (builder, part) in rows {
        let mut second = builder.start().unwrap();
        let never = second.wait_for("it runs", TIMEOUT, |_| Ok(None::<()>));
        never.unwrap_err();
        let status = second.exit_status().unwrap();
        let log = std::fs::read_to_string(second.log_path()).unwrap();
        assert_eq!(status.and_then(|status| status.code()), Some(1), "{log}");
        let errors: Vec<&str> = log.lines().filter(|l| l.starts_with("error")).collect();
        assert_eq!(errors.len(), 1, "{log}");
        assert!(errors[0].contains(&part), "{log}");
    }
    assert_eq!(first.cli(&["get", "pods"]).unwrap().code, 0);
    let after = std::fs::read_to_string(first.log_path()).unwrap();
    assert_eq!(after, before, "the first agent has noticed nothing");
}
