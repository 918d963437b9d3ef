//! Whatever was left, and wherever a start dies: the host ends in order, and nothing that runs is
//! touched.

use proptest::{collection::vec, prelude::*, sample::select};

use super::{
    host::{Host, container, sandbox},
    *,
};

/// How a sandbox is left.
fn left_sandbox() -> impl Strategy<Value = (SandboxPhase, bool, bool, bool)> {
    let phases = vec![
        SandboxPhase::Creating,
        SandboxPhase::Ready,
        SandboxPhase::Ready,
        SandboxPhase::NotReady,
        SandboxPhase::Removing,
    ];
    (select(phases), any::<bool>(), any::<bool>(), any::<bool>())
}

/// How a container is left: its sandbox, its record and whether that is there, what is seen of it.
fn left_container() -> impl Strategy<Value = (usize, ContainerPhase, bool, u8, bool)> {
    let phases = vec![
        ContainerPhase::Creating,
        ContainerPhase::Created,
        ContainerPhase::Running,
        ContainerPhase::Running,
        ContainerPhase::Exited,
        ContainerPhase::Removing,
        ContainerPhase::Unknown,
    ];
    (
        0..4usize,
        select(phases),
        prop::bool::weighted(0.8),
        0..5u8,
        any::<bool>(),
    )
}

fn host() -> impl Strategy<Value = Host> {
    (
        vec(left_sandbox(), 4),
        vec(left_container(), 0..8),
        prop::bool::weighted(0.8),
    )
        .prop_map(|(sandboxes, containers, same_boot)| {
            let mut host = Host::new();
            let mut shims = Vec::new();
            for (index, (phase, has_record, has_shim, has_cgroup)) in
                sandboxes.into_iter().enumerate()
            {
                let id = format!("s{index}");
                host.add_sandbox(sandbox(&id, phase));
                if !has_record && phase != SandboxPhase::Ready {
                    host.sandboxes.remove(&id);
                }
                if !has_shim || !same_boot {
                    host.kill_shim(&id);
                    if !has_cgroup {
                        host.shim_cgroups.retain(|name| *name != id);
                    }
                }
                shims.push(has_shim && same_boot);
            }
            for (index, (of, phase, has_record, seen, exited)) in containers.into_iter().enumerate()
            {
                let (id, of_id) = (format!("c{index}"), format!("s{of}"));
                host.add_container(container(&id, &of_id, phase));
                if !has_record {
                    host.containers.remove(&id);
                }
                let exit = ExitRecord::seen(1, 0, 5, false);
                if exited {
                    host.exits.insert(id.clone(), exit.clone());
                }
                let seen = match seen {
                    0 => Some(SeenContainer::Created { pid: 42 }),
                    1 | 2 => Some(SeenContainer::Running {
                        pid: 42,
                        started_at: 7,
                    }),
                    3 => Some(SeenContainer::Exited(exit)),
                    _ => None,
                };
                if let Some(seen) = seen.filter(|_| shims[of]) {
                    host.see(&of_id, &id, seen);
                } else if same_boot && has_record && phase != ContainerPhase::Exited {
                    host.alive.insert(format!("/pods/{id}"));
                }
            }
            if !same_boot {
                host.boot_id = "another".into();
            }
            host
        })
}

/// Nothing is left to do but to adopt, and what is there fits together.
fn in_order(host: &Host) {
    let recovery = host.plan();
    for planned in &recovery.steps {
        assert!(
            matches!(planned.step, RecoveryStep::Adopt { .. }),
            "{planned:?} is left in {host:#?}"
        );
    }
    for (id, record) in &host.sandboxes {
        let ready = record.phase == SandboxPhase::Ready;
        assert_eq!(ready, recovery.ready.contains(id));
        assert_eq!(ready, host.shims.contains_key(id));
        assert_eq!(ready, host.alive.contains(&format!("/shims/{id}")));
    }
    for (id, record) in &host.containers {
        let runs = host.alive.contains(&format!("/pods/{id}"));
        let ended = record.phase == ContainerPhase::Exited;
        assert_eq!(runs, !ended, "{id} in {host:#?}");
        assert!(host.sandboxes.contains_key(&record.sandbox_id));
    }
    let of_containers = host.alive.iter().filter(|path| path.starts_with("/pods/"));
    assert!(of_containers.count() <= host.containers.len());
    assert!(
        host.snapshots
            .iter()
            .all(|id| host.containers.contains_key(id))
    );
}

/// The steps with those of some sandboxes before those of others, whose own order stays.
fn side_by_side(mut steps: Vec<PlannedStep>, turn: usize) -> Vec<PlannedStep> {
    let mut sandboxes: Vec<String> = steps.iter().map(|one| one.sandbox.clone()).collect();
    sandboxes.sort();
    sandboxes.dedup();
    let count = sandboxes.len().max(1);
    sandboxes.rotate_left(turn % count);
    steps.sort_by_key(|one| sandboxes.iter().position(|sandbox| *sandbox == one.sandbox));
    steps
}

proptest! {
    #[test]
    fn a_start_may_die_at_any_step(
        host in host(),
        deaths in vec(0..40usize, 0..4),
        turn in 0..5usize,
    ) {
        let mut host = host;
        let untouched: Vec<String> = host
            .containers
            .values()
            .filter(|record| {
                let sandbox = host.sandboxes.get(&record.sandbox_id);
                let seen = host.shims.get(&record.sandbox_id).and_then(|shim| shim.get(&record.id));
                record.boot_id == host.boot_id
                    && sandbox.is_some_and(|sandbox| sandbox.phase == SandboxPhase::Ready)
                    && record.phase == ContainerPhase::Running
                    && matches!(seen, Some(SeenContainer::Running { .. }))
            })
            .map(|record| record.id.clone())
            .collect();
        for death in deaths {
            for planned in side_by_side(host.plan().steps, turn).iter().take(death) {
                host.apply(&planned.step);
            }
        }
        for planned in side_by_side(host.plan().steps, turn) {
            host.apply(&planned.step);
        }
        in_order(&host);
        for id in untouched {
            prop_assert_eq!(host.containers[&id].phase, ContainerPhase::Running);
        }
    }
}
