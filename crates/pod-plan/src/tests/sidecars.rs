//! Sidecars: init containers that stay (KEP-753).

use rubelet_api::pod::{Pod, RestartPolicy::*};

use super::build::*;
use crate::{
    ProbeKind::{Liveness, Readiness, Startup},
    ProbeResult::{Failure, Success},
    Step, Target,
    step::KillOrder,
};

/// Init container `i`, sidecars `s` and `t`, then container `a`.
fn pod_with_sidecars(policy: rubelet_api::pod::RestartPolicy) -> Pod {
    let mut pod = pod(policy, &["i"], &["a"]);
    pod.spec
        .init_containers
        .extend([sidecar("s"), sidecar("t")]);
    pod
}

#[test]
fn sidecars_start_in_order_and_the_next_waits_until_the_one_before_has_started() {
    let pod = pod_with_sidecars(Always);
    let rows: [(&str, &[&str], &str); 12] = [
        (
            "",
            &["start i in s0"],
            "Pending i:PodInitializing s:PodInitializing t:PodInitializing a:PodInitializing",
        ),
        (
            "i=exit:0",
            &["start s in s0"],
            "Pending i:Completed(0) s:PodInitializing t:PodInitializing a:PodInitializing",
        ),
        (
            "i=exit:0 s=created",
            &["start created s0"],
            "Pending i:Completed(0) s: t:PodInitializing a:PodInitializing",
        ),
        (
            "i=exit:0 s=run",
            &["start t in s0"],
            "Pending i:Completed(0) s:Running t:PodInitializing a:PodInitializing",
        ),
        (
            "i=exit:0 s=run t=run",
            &["start a in s0"],
            "Pending i:Completed(0) s:Running t:Running a:PodInitializing",
        ),
        (
            "i=exit:0 s=run t=run a=run",
            &[],
            "Running i:Completed(0) s:Running t:Running a:Running",
        ),
        // One that ends before the next has begun is started again first.
        (
            "i=exit:0 s=exit:0",
            &["start s #1 in s0"],
            "Pending i:Completed(0) s:Completed(0) t:PodInitializing a:PodInitializing",
        ),
        (
            "i=exit:0 s=unknown",
            &["kill s0", "start s #1 in s0"],
            "Pending i:Completed(0) s:ContainerStatusUnknown(137) t:PodInitializing a:PodInitializing",
        ),
        // Beside running containers each sidecar is looked after on its own.
        (
            "i=exit:0 s=exit:1 t=run a=run",
            &["start s #1 in s0"],
            "Running i:Completed(0) s:Error(1) t:Running a:Running",
        ),
        (
            "i=exit:0 s=exit:1 t=exit:0 a=run",
            &["start s #1 in s0", "start t #1 in s0"],
            "Running i:Completed(0) s:Error(1) t:Completed(0) a:Running",
        ),
        (
            "i=exit:0 t=unknown a=run",
            &["kill t0", "start s in s0", "start t #1 in s0"],
            "Pending i:Completed(0) s:PodInitializing t:ContainerStatusUnknown(137) a:Running",
        ),
        // That the regular container ended does not undo that the pod was initialised.
        (
            "i=exit:0 s=run t=run a=exit:1",
            &["start a #1 in s0"],
            "Running i:Completed(0) s:Running t:Running a:Error(1)",
        ),
    ];
    for (records, steps, status) in rows {
        let (found, said) = Node::new().in_sandbox(&pod, records);
        assert_eq!(found, steps, "{records}");
        assert_eq!(said, status, "{records}");
    }
}

#[test]
fn a_sidecar_with_a_startup_probe_holds_up_the_next_until_the_probe_succeeds() {
    let mut pod = pod_with_sidecars(Always);
    pod.spec.init_containers[1].startup = Some(probe());
    let records = "i=exit:0 s=run";
    let (steps, _) = Node::new().in_sandbox(&pod, records);
    assert_eq!(steps, [""; 0], "no result yet");
    let mut started = Node::new().probed("s", Startup, Success);
    assert_eq!(started.in_sandbox(&pod, records).0, ["start t in s0"]);
    let mut failed = Node::new().probed("s", Startup, Failure);
    let (steps, _) = failed.in_sandbox(&pod, records);
    assert_eq!(steps, ["kill s0", "start s #1 in s0"]);
}

#[test]
fn an_unhealthy_or_edited_sidecar_is_replaced_and_nothing_else_is() {
    let mut pod = pod_with_sidecars(Never);
    pod.spec.init_containers[2].liveness = Some(probe());
    let records = "i=exit:0 s=run t=run a=run";
    let mut sick = Node::new().probed("t", Liveness, Failure);
    let (steps, _) = sick.in_sandbox(&pod, records);
    assert_eq!(steps, ["kill t0", "start t #1 in s0"]);
    pod.spec.init_containers[1].definition =
        Some(rubelet_api::container::DefinitionHash("v1:new".into()));
    let (steps, _) = Node::new().in_sandbox(&pod, records);
    assert_eq!(steps, ["kill s0", "start s #1 in s0"]);
}

#[test]
fn readiness_of_the_pod_counts_sidecars() {
    let mut pod = pod_with_sidecars(Always);
    pod.spec.init_containers[1].readiness = Some(probe());
    let records = "i=exit:0 s=run t=run a=run";
    let mut node = Node::new();
    node.in_sandbox(&pod, records);
    let status = node.status.clone().unwrap();
    assert!(!status.container("s").unwrap().ready && status.container("s").unwrap().started);
    assert_eq!(
        conditions(&status)[2],
        "-Ready ContainersNotReady containers with unready status: [s]"
    );
    let mut node = Node::new().probed("s", Readiness, Success);
    node.in_sandbox(&pod, records);
    assert_eq!(conditions(&node.status.unwrap())[2], "+Ready");
}

#[test]
fn sidecars_do_not_keep_a_finished_pod_going_and_end_after_the_others_in_reverse() {
    for (policy, code, phase) in [
        (Never, 0, "Succeeded"),
        (OnFailure, 0, "Succeeded"),
        (Never, 1, "Failed"),
    ] {
        let pod = pod_with_sidecars(policy);
        let records = format!("i=exit:0 s=run t=run a=exit:{code}");
        let (steps, said) = Node::new().in_sandbox(&pod, &records);
        assert_eq!(steps, ["kill t0,s0", "stop s0"], "{policy:?} {code}");
        let said = said.split(' ').next().unwrap();
        // The sidecars still run: the pod has not ended yet.
        assert_eq!(said, "Running", "{policy:?} {code}");
        let ended = format!("i=exit:0 s=exit:0 t=exit:137 a=exit:{code}");
        let (_, said) = Node::new().in_sandbox(&pod, &ended);
        assert_eq!(said.split(' ').next().unwrap(), phase, "{policy:?} {code}");
    }
    let pod = pod_with_sidecars(Always);
    let mut node = Node::new();
    node.target = Target::Remove {
        grace: std::time::Duration::from_secs(30),
    };
    let observed = seen(
        vec![sandbox(&pod, 0, true)],
        records("i=exit:0 s=run t=run a=run"),
    );
    let plan = node.plan(&pod, &observed, 100);
    let Step::KillContainers(kills) = &plan.steps[0] else {
        panic!("{plan:?}");
    };
    let turns: Vec<_> = kills.iter().map(|kill| (&*kill.name, kill.order)).collect();
    assert_eq!(
        turns,
        [
            ("t", KillOrder::Sidecar(2)),
            ("s", KillOrder::Sidecar(1)),
            ("a", KillOrder::Regular)
        ]
    );
}
