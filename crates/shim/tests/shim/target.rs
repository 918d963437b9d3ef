//! Containers that see the processes of another one.

use std::{fs, path::PathBuf};

use rubelet_oci::NamespaceKind;
use rubelet_shim::protocol::{Call, CreateContainer, FailureKind, SignalTarget};

use super::fixture::{Recipe, Shim, with_each_runtime};

/// A container that is to see the processes of `main`.
fn debug(shim: &Shim, id: &str) -> CreateContainer {
    let link = shim.bundle(id).join(CreateContainer::PID_NAMESPACE);
    let recipe = Recipe {
        joins: vec![(NamespaceKind::Pid, link)],
        ..Recipe::default()
    };
    CreateContainer {
        pid_target: Some("main".into()),
        ..shim.prepare(id, "exec sleep 1000", recipe)
    }
}

fn processes(pid: i32) -> PathBuf {
    fs::read_link(format!("/proc/{pid}/ns/pid")).unwrap()
}

#[test]
fn a_container_joins_the_processes_of_one_that_runs() {
    with_each_runtime("target", |shim| {
        let main = shim.run("main", "exec sleep 1000", Recipe::default());
        // What an earlier try has left is no obstacle.
        let what = debug(shim, "debug");
        std::os::unix::fs::symlink("/proc/self/ns/pid", what.bundle.join("pid-namespace")).unwrap();
        shim.call(Call::Create(Box::new(what))).unwrap();
        shim.call(Call::Start { id: "debug".into() }).unwrap();
        let debug = shim.container("debug").unwrap().pid;
        assert_ne!(
            processes(main),
            processes(std::process::id().cast_signed()),
            "a namespace of its own"
        );
        assert_eq!(processes(debug), processes(main));
    });
}

#[test]
fn the_next_agent_can_still_name_a_target() {
    with_each_runtime("target-later", |shim| {
        let main = shim.run("main", "exec sleep 1000", Recipe::default());
        shim.reconnect();
        let what = debug(shim, "debug");
        shim.call(Call::Create(Box::new(what))).unwrap();
        let debug = shim.container("debug").unwrap().pid;
        assert_eq!(processes(debug), processes(main));
    });
}

/// An agent that has not heard of the end yet asks for it.
#[test]
fn a_container_that_has_ended_is_no_target() {
    with_each_runtime("target-over", |shim| {
        shim.run("main", "exec sleep 1000", Recipe::default());
        shim.signal("main", libc::SIGKILL, SignalTarget::Init);
        shim.exit("main");
        let what = debug(shim, "debug");
        // Where a path by process ID would have led.
        std::os::unix::fs::symlink("/proc/self/ns/pid", what.bundle.join("pid-namespace")).unwrap();
        let failure = shim.refused(Call::Create(Box::new(what)));
        assert_eq!(failure.kind, FailureKind::WrongState, "{failure:?}");
        assert!(failure.message.contains("main"), "{failure:?}");
        assert!(shim.container("debug").is_none());

        shim.delete("main");
        let failure = shim.refused(Call::Create(Box::new(debug(shim, "later"))));
        assert_eq!(failure.kind, FailureKind::NotFound, "{failure:?}");
    });
}

#[test]
fn a_container_that_was_not_started_is_no_target() {
    with_each_runtime("target-early", |shim| {
        shim.create("main", "exec sleep 1000", Recipe::default());
        let failure = shim.refused(Call::Create(Box::new(debug(shim, "debug"))));
        assert_eq!(failure.kind, FailureKind::WrongState, "{failure:?}");
    });
}
