//! What probes do to containers, and which are tried.

use std::time::Duration;

use rubelet_api::{
    pod::{Pod, RestartPolicy::*},
    status::Phase,
};

use super::build::*;
use crate::{
    PodPlan,
    ProbeKind::*,
    ProbeResult::{self, *},
    Step, Target,
};

fn pod_with_probes() -> Pod {
    let mut pod = pod(Always, &[], &["a"]);
    let a = &mut pod.spec.containers[0];
    a.startup = Some(probe());
    a.liveness = Some(probe());
    a.readiness = Some(probe());
    pod
}

fn plan_of(node: &mut Node, pod: &Pod, text: &str) -> PodPlan {
    let observed = seen(vec![sandbox(pod, 0, true)], records(text));
    node.plan(pod, &observed, 100)
}

fn tried(plan: &PodPlan) -> Vec<String> {
    let targets = plan.probes.iter();
    targets
        .map(|one| format!("{} {:?} {:?}", one.id, one.kind, one.initial))
        .collect()
}

#[test]
fn the_startup_probe_comes_first_and_then_the_others() {
    let pod = pod_with_probes();
    let mut node = Node::new();
    assert!(tried(&plan_of(&mut node, &pod, "")).is_empty());
    assert!(tried(&plan_of(&mut node, &pod, "a=created")).is_empty());
    let plan = plan_of(&mut node, &pod, "a=run");
    assert_eq!(
        tried(&plan),
        ["ContainerId(a0) Startup Unknown".replace("ContainerId(a0)", "a0")]
    );
    let status = plan.status.container("a").unwrap();
    assert!(!status.started && !status.ready);

    let mut node = node.probed("a", Startup, Success);
    let plan = plan_of(&mut node, &pod, "a=run");
    assert_eq!(
        tried(&plan),
        ["a0 Liveness Success", "a0 Readiness Failure"]
    );
    let status = plan.status.container("a").unwrap();
    assert!(status.started && !status.ready);

    let mut node = node.probed("a", Readiness, Success);
    let plan = plan_of(&mut node, &pod, "a=run");
    assert!(plan.status.container("a").unwrap().ready);
    let mut node = node.probed("a", Readiness, Failure);
    assert!(
        !plan_of(&mut node, &pod, "a=run")
            .status
            .container("a")
            .unwrap()
            .ready
    );
    // Another instance starts at zero.
    assert_eq!(
        tried(&plan_of(&mut node, &pod, "a#1=run a=exit:1")),
        ["a1 Startup Unknown"]
    );
}

#[test]
fn results_outlive_the_agent_for_the_same_instance_only() {
    let pod = pod_with_probes();
    let mut node = Node::new()
        .probed("a", Startup, Success)
        .probed("a", Readiness, Success);
    plan_of(&mut node, &pod, "a=run");
    node.probes = crate::ProbeResults::default();
    let plan = plan_of(&mut node, &pod, "a=run");
    let status = plan.status.container("a").unwrap();
    assert!(status.started && status.ready);
    assert_eq!(
        tried(&plan),
        ["a0 Liveness Success", "a0 Readiness Success"]
    );
    let plan = plan_of(&mut node, &pod, "a#1=run");
    let status = plan.status.container("a").unwrap();
    assert!(!status.started && !status.ready);
}

#[test]
fn a_failed_liveness_or_startup_probe_ends_the_container_and_the_policy_decides_the_rest() {
    let rows: [(_, _, ProbeResult, &[&str], &str); 6] = [
        (
            Always,
            Liveness,
            Failure,
            &["kill a0", "start a #1 in s0"],
            "Container a failed liveness probe, will be restarted",
        ),
        (
            OnFailure,
            Liveness,
            Failure,
            &["kill a0", "start a #1 in s0"],
            "Container a failed liveness probe, will be restarted",
        ),
        (
            Never,
            Liveness,
            Failure,
            &["kill a0"],
            "Container a failed liveness probe",
        ),
        (
            Always,
            Startup,
            Failure,
            &["kill a0", "start a #1 in s0"],
            "Container a failed startup probe, will be restarted",
        ),
        (
            Never,
            Startup,
            Failure,
            &["kill a0"],
            "Container a failed startup probe",
        ),
        (Always, Readiness, Failure, &[], ""),
    ];
    for (policy, kind, outcome, steps, message) in rows {
        let mut pod = pod_with_probes();
        pod.spec.restart_policy = policy;
        let mut node = Node::new()
            .probed("a", Startup, Success)
            .probed("a", kind, outcome);
        let plan = plan_of(&mut node, &pod, "a=run");
        assert_eq!(short(&plan), steps, "{policy:?} {kind:?}");
        if let Some(Step::KillContainers(kills)) = plan.steps.first() {
            assert_eq!(&*kills[0].message, message);
        }
    }
}

#[test]
fn the_probes_own_grace_counts_where_it_ends_the_container() {
    let mut pod = pod_with_probes();
    let seconds = Duration::from_secs;
    for (own, grace) in [(None, seconds(30)), (Some(seconds(5)), seconds(5))] {
        pod.spec.containers[0]
            .liveness
            .as_mut()
            .unwrap()
            .termination_grace = own;
        let mut node = Node::new().probed("a", Liveness, Failure);
        let plan = plan_of(&mut node, &pod, "a=run");
        let Step::KillContainers(kills) = &plan.steps[0] else {
            panic!("{plan:?}");
        };
        assert_eq!(kills[0].grace, grace);
    }
}

#[test]
fn restarts_of_unhealthy_containers_back_off_from_the_end_before() {
    let pod = pod_with_probes();
    let mut node = Node::new().probed("a", Liveness, Failure);
    let max = Duration::from_secs(300);
    node.history
        .note_restart(&pod.spec.containers[0], at(10), at(90), max);
    // Ended at 30, and 10 s of back-off are over at 100.
    let mut records = records("a#1=exit:1");
    records.push(found("a", 2, running()));
    records[1].id = "a0".into();
    let observed = seen(vec![sandbox(&pod, 0, true)], records.clone());
    let plan = node.plan(&pod, &observed, 100);
    assert_eq!(short(&plan), ["kill a0", "start a #3 in s0"]);
    // Within the back-off it is stopped now and started later.
    records[0].phase = exited_at(1, 95);
    let observed = seen(vec![sandbox(&pod, 0, true)], records);
    let plan = node.plan(&pod, &observed, 100);
    assert_eq!(
        (short(&plan), plan.wake_at),
        (vec!["kill a0".to_owned()], Some(at(105)))
    );
}

#[test]
fn while_a_pod_ends_regular_containers_are_only_asked_whether_they_are_ready() {
    let mut pod = pod_with_probes();
    let mut side = sidecar("s");
    side.liveness = Some(probe());
    side.readiness = Some(probe());
    pod.spec.init_containers.push(side);
    let mut node = Node::new().probed("a", Startup, Success);
    node.target = Target::Remove {
        grace: Duration::from_secs(30),
    };
    let plan = plan_of(&mut node, &pod, "s=run a=run");
    assert_eq!(
        tried(&plan),
        [
            "s0 Liveness Success",
            "s0 Readiness Failure",
            "a0 Readiness Failure"
        ]
    );
    // A result does not bring anything back.
    let mut node = node.probed("s", Liveness, Failure);
    let plan = plan_of(&mut node, &pod, "s=run a=exit:0");
    assert_eq!(short(&plan), ["kill s0", "stop s0"]);
}

#[test]
fn a_pod_that_fails_asks_nothing_of_its_containers_any_more() {
    let mut pod = pod_with_probes();
    let mut side = sidecar("s");
    side.liveness = Some(probe());
    pod.spec.init_containers.push(side);
    pod.spec.active_deadline = Some(Duration::from_secs(60));
    let mut node = Node::new().probed("a", Startup, Success);
    plan_of(&mut node, &pod, "s=run a=run");
    // Its deadline has passed, and its containers still end.
    let mut observed = seen(vec![sandbox(&pod, 0, true)], records("s=run a=run"));
    let plan = node.plan(&pod, &observed, 199);
    assert_eq!(plan.status.phase, Phase::Running);
    assert!(tried(&plan).is_empty());
    observed = seen(vec![sandbox(&pod, 0, true)], records("s=run a=exit:137"));
    node.plan(&pod, &observed, 200);
    observed = seen(vec![sandbox(&pod, 0, true)], records("s=exit:0 a=exit:137"));
    node.plan(&pod, &observed, 201);
    observed = seen(vec![sandbox(&pod, 0, true)], records("s=run a=run"));
    let plan = node.plan(&pod, &observed, 202);
    assert_eq!(plan.status.phase, Phase::Failed);
    assert!(tried(&plan).is_empty());
}

#[test]
fn a_container_that_owes_its_post_start_hook_has_not_started() {
    let pod = pod_with_probes();
    let mut node = Node::new().probed("a", Startup, Success);
    node.history
        .containers
        .entry("a".into())
        .or_default()
        .post_start = Some("a0".into());
    let plan = plan_of(&mut node, &pod, "a=run");
    assert_eq!(short(&plan), ["post start a0"]);
    assert!(!plan.status.container("a").unwrap().started);
    assert!(tried(&plan).is_empty());
    let plan = plan_of(&mut node, &pod, "a#1=run");
    assert_eq!(short(&plan), [""; 0]);
    assert_eq!(tried(&plan), ["a1 Startup Unknown"]);
}
