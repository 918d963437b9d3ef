//! Permission to use the agent's socket: root, and one group.

use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::process::Command;

use rubelet_testbed::agent::{CliOutput, binary};
use rubelet_testbed::{Agent, TestRuntime};

use crate::ended;
use crate::outside::TIMEOUT;

/// A user and group without any rights.
const NOBODY: &str = "65534";
/// A group that every Debian has, and its number.
const GROUP: (&str, &str) = ("staff", "50");

#[test]
fn the_socket_is_for_root_and_the_configured_group_only() {
    let runtime = TestRuntime::start().unwrap();
    let program = runtime.scratch().dir().join("rubelet");
    // Other users may have no access to the build directory.
    std::fs::copy(binary().unwrap(), &program).unwrap();
    for group in [None, Some(GROUP.0)] {
        let mut builder = Agent::builder(&runtime).program(&program);
        if let Some(group) = group {
            builder = builder.own_option("socketGroup", group);
        }
        let mut agent = builder.start().unwrap();
        agent.wait_ready(TIMEOUT).unwrap();
        let socket = std::fs::metadata(agent.api_socket()).unwrap();
        assert!(socket.file_type().is_socket());
        assert_eq!(socket.permissions().mode() & 0o777, 0o660);
        let owner = if group.is_some() { GROUP.1 } else { "0" };
        assert_eq!(
            (socket.uid(), socket.gid().to_string()),
            (0, owner.to_owned())
        );

        assert_eq!(agent.cli(&["get", "pods"]).unwrap().code, 0);
        let other = as_nobody(&agent, &program, "--clear-groups");
        assert_eq!((other.code, &*other.stdout), (1, ""), "{other:?}");
        let name = group.unwrap_or("root");
        assert!(other.stderr.contains("permission denied"), "{other:?}");
        assert!(
            other.stderr.contains(&format!("the group {name:?}")),
            "{other:?}"
        );
        let member = as_nobody(&agent, &program, &format!("--groups={}", GROUP.1));
        assert_eq!(member.code, i32::from(group.is_none()), "{member:?}");
        agent.terminate().unwrap();
    }
    let mut agent = Agent::builder(&runtime)
        .own_option("socketGroup", "no-such-group")
        .start()
        .unwrap();
    let status = agent
        .wait_for("it ends", TIMEOUT, |_| Ok(None::<()>))
        .unwrap_err();
    assert!(
        format!("{status:#}").contains("no-such-group"),
        "{status:#}"
    );
    assert_eq!(
        agent
            .exit_status()
            .unwrap()
            .and_then(|status| status.code()),
        Some(1)
    );
}

fn as_nobody(agent: &Agent, program: &std::path::Path, groups: &str) -> CliOutput {
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid", NOBODY, "--regid", NOBODY, groups])
        .arg(program)
        .args(["get", "pods"])
        .env("RUBELET_SOCKET", agent.api_socket());
    ended(&mut command)
}
