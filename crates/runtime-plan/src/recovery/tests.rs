//! Hosts after crashes.

mod host;
mod properties;

use super::*;
use crate::state::{ContainerPhase, SandboxPhase};
use host::{BOOT, Host, NOW, container, sandbox};

fn steps(host: &Host) -> Vec<RecoveryStep> {
    let planned = host.plan().steps;
    planned.into_iter().map(|planned| planned.step).collect()
}

fn cgroup(path: &str) -> RecoveryStep {
    RecoveryStep::KillCgroup(CgroupPath::parse(path).unwrap())
}

fn running() -> SeenContainer {
    SeenContainer::Running {
        pid: 42,
        started_at: 7,
    }
}

fn running_pod() -> Host {
    let mut host = Host::new();
    host.add_sandbox(sandbox("s1", SandboxPhase::Ready));
    host.add_container(container("c1", "s1", ContainerPhase::Running));
    host.see("s1", "c1", running());
    host
}

#[test]
fn a_pod_that_runs_is_adopted_and_nothing_else_happens() {
    let host = running_pod();
    let adopt = RecoveryStep::Adopt {
        sandbox: "s1".into(),
    };
    assert_eq!(steps(&host), [adopt]);
    assert!(host.plan().ready.contains("s1"));
}

#[test]
fn what_happened_while_the_agent_was_away_is_taken_down() {
    let mut host = running_pod();
    let exit = ExitRecord::seen(3, 0, 99, false);
    host.see("s1", "c1", SeenContainer::Exited(exit.clone()));
    host.add_container(container("c2", "s1", ContainerPhase::Created));
    host.see("s1", "c2", running());
    let steps = steps(&host);
    assert!(steps.contains(&RecoveryStep::MarkExited {
        container: "c1".into(),
        exit
    }));
    assert!(steps.contains(&RecoveryStep::MarkRunning {
        container: "c2".into(),
        pid: 42,
        started_at: 7
    }));
    assert_eq!(steps.len(), 3);
}

#[test]
fn a_pod_without_its_supervisor_is_killed_before_it_is_called_dead() {
    let mut host = running_pod();
    host.kill_shim("s1");
    let written = ExitRecord::seen(1, 0, 88, false);
    host.add_container(container("c2", "s1", ContainerPhase::Running));
    host.exits.insert("c2".into(), written.clone());
    let steps = steps(&host);
    let place = |step: &RecoveryStep| {
        let found = steps.iter().position(|one| one == step);
        found.unwrap_or_else(|| panic!("no {step:?} in {steps:#?}"))
    };
    let dead = steps.iter().position(|step| {
        matches!(step, RecoveryStep::MarkExited { container, exit }
            if container == "c1" && exit.code == 255 && exit.reason == "Unknown" && exit.at == NOW)
    });
    assert!(place(&cgroup("/pods/c1")) < dead.unwrap());
    place(&RecoveryStep::MarkExited {
        container: "c2".into(),
        exit: written,
    });
    place(&RecoveryStep::MarkNotReady {
        sandbox: "s1".into(),
    });
    let network = place(&RecoveryStep::FreeNetwork {
        sandbox: "s1".into(),
    });
    assert!(network < place(&RecoveryStep::Unmount("/run/r/sandboxes/s1/net".into())));
    assert!(host.plan().ready.is_empty());
    let removed = |step: &RecoveryStep| matches!(step, RecoveryStep::RemoveContainer { .. });
    assert!(!steps.iter().any(removed));
}

#[test]
fn after_a_boot_nothing_is_killed_and_everything_has_ended() {
    let mut host = running_pod();
    host.kill_shim("s1");
    host.boot_id = "another".into();
    host.shim_cgroups.clear();
    let steps = steps(&host);
    let kills = |step: &RecoveryStep| matches!(step, RecoveryStep::KillCgroup(_));
    assert!(!steps.iter().any(kills), "{steps:#?}");
    assert!(steps.iter().any(|step| matches!(
        step,
        RecoveryStep::MarkExited { exit, .. } if exit.message.contains("rebooted")
    )));
    assert_ne!(host.boot_id, BOOT);
}

#[test]
fn what_was_half_made_or_half_removed_goes() {
    let mut host = running_pod();
    host.add_container(container("c2", "s1", ContainerPhase::Creating));
    host.add_container(container("c3", "s1", ContainerPhase::Removing));
    host.see("s1", "c2", SeenContainer::Created { pid: 9 });
    host.add_sandbox(sandbox("s2", SandboxPhase::Creating));
    let steps = steps(&host);
    for step in [
        RecoveryStep::DeleteInShim {
            sandbox: "s1".into(),
            container: "c2".into(),
        },
        cgroup("/pods/c2"),
        cgroup("/pods/c3"),
        RecoveryStep::RemoveSnapshot {
            container: "c2".into(),
        },
        RecoveryStep::RemoveDirectory("/run/r/sandboxes/s1/containers/c3".into()),
        RecoveryStep::RemoveContainer {
            container: "c3".into(),
        },
        RecoveryStep::EndShim {
            sandbox: "s2".into(),
        },
        cgroup("/shims/s2"),
        RecoveryStep::FreeNetwork {
            sandbox: "s2".into(),
        },
        RecoveryStep::RemoveDirectory("/run/r/sandboxes/s2".into()),
        RecoveryStep::RemoveSandbox {
            sandbox: "s2".into(),
        },
    ] {
        assert!(steps.contains(&step), "no {step:?} in {steps:#?}");
    }
    assert!(!steps.contains(&cgroup("/pods/c1")));
}

#[test]
fn what_belongs_to_nobody_goes() {
    let mut host = Host::new();
    host.add_sandbox(sandbox("s1", SandboxPhase::Ready));
    host.sandboxes.clear();
    host.snapshots.push("c9".into());
    host.mounts.push("/elsewhere/x".into());
    let steps = steps(&host);
    for step in [
        RecoveryStep::EndShim {
            sandbox: "s1".into(),
        },
        cgroup("/shims/s1"),
        RecoveryStep::Unmount("/run/r/sandboxes/s1/shm".into()),
        RecoveryStep::RemoveDirectory("/run/r/sandboxes/s1".into()),
        RecoveryStep::RemoveSnapshot {
            container: "c9".into(),
        },
    ] {
        assert!(steps.contains(&step), "no {step:?} in {steps:#?}");
    }
    assert!(!steps.contains(&RecoveryStep::Unmount("/elsewhere/x".into())));
}

#[test]
fn a_record_with_a_cgroup_that_can_not_be_kills_nothing() {
    let mut host = running_pod();
    host.kill_shim("s1");
    host.shim_cgroups.clear();
    for path in ["", "/", "/../x"] {
        host.containers.get_mut("c1").unwrap().cgroup = path.into();
        let kills = |step: &RecoveryStep| matches!(step, RecoveryStep::KillCgroup(_));
        assert!(!steps(&host).iter().any(kills), "{path:?}");
    }
}
