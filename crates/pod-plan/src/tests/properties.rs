//! What holds for every plan, whatever happens to the pod: it converges, nothing runs twice, init
//! containers and sidecars keep their order, counts never drop, an end stays an end.

use proptest::prelude::*;
use rubelet_api::{
    container::{DefinitionHash, RestartAction},
    pod::{Pod, RestartPolicy},
};

use super::{build::*, model::Model};
use crate::{
    ObservedContainer, PodPlan, ProbeKind, ProbeResult, ProbeResults, ProcessState, Step,
    intents::RestartIntent, observed::ContainerPhase,
};

/// What happens to a pod. Numbers choose among what is there.
#[derive(Debug, Clone)]
enum Act {
    Exit(usize, i32),
    LoseTrack(usize),
    KillSandbox,
    VanishSandbox,
    SecondSandbox,
    Probe(usize, ProbeKind, ProbeResult),
    EditContainer(usize),
    EditSandbox,
    Ask(usize),
    Wait(i64),
    RestartAgent,
    StartFails(usize),
    ProcessGone(usize),
    ProcessLost(usize),
}

fn acts() -> impl Strategy<Value = Act> {
    let kind = prop_oneof![
        Just(ProbeKind::Startup),
        Just(ProbeKind::Liveness),
        Just(ProbeKind::Readiness)
    ];
    let outcome = prop_oneof![Just(ProbeResult::Success), Just(ProbeResult::Failure)];
    let code = prop_oneof![Just(0), Just(1), Just(42), Just(88), Just(137)];
    prop_oneof![
        6 => (0..6_usize, code).prop_map(|(place, code)| Act::Exit(place, code)),
        1 => (0..6_usize).prop_map(Act::LoseTrack),
        1 => Just(Act::KillSandbox),
        1 => Just(Act::VanishSandbox),
        1 => Just(Act::SecondSandbox),
        4 => (0..6_usize, kind, outcome).prop_map(|(place, kind, outcome)| Act::Probe(place, kind, outcome)),
        1 => (0..6_usize).prop_map(Act::EditContainer),
        1 => Just(Act::EditSandbox),
        1 => (0..6_usize).prop_map(Act::Ask),
        2 => (0..400_i64).prop_map(Act::Wait),
        1 => Just(Act::RestartAgent),
        1 => (0..6_usize).prop_map(Act::StartFails),
        6 => (0..6_usize).prop_map(Act::ProcessGone),
        1 => (0..6_usize).prop_map(Act::ProcessLost),
    ]
}

fn policy() -> impl Strategy<Value = RestartPolicy> {
    prop_oneof![
        Just(RestartPolicy::Always),
        Just(RestartPolicy::OnFailure),
        Just(RestartPolicy::Never)
    ]
}

/// Pods of all shapes: init containers, sidecars among them, own policies, rules and probes.
#[derive(Debug, Clone)]
struct Shape {
    policy: RestartPolicy,
    /// Whether it stays, and has probes.
    init: Vec<(bool, bool)>,
    /// Own policy, number of rules, whether it has probes.
    regular: Vec<(Option<RestartPolicy>, u8, bool)>,
}

fn shapes() -> impl Strategy<Value = Shape> {
    let init = proptest::collection::vec((any::<bool>(), any::<bool>()), 0..4);
    let own = proptest::option::of(policy());
    let regular = proptest::collection::vec((own, 0..3_u8, any::<bool>()), 1..4);
    (policy(), init, regular).prop_map(|(policy, init, regular)| Shape {
        policy,
        init,
        regular,
    })
}

impl Shape {
    fn pod(&self) -> Pod {
        let mut made = pod(self.policy, &[], &[]);
        for (index, (stays, probed)) in self.init.iter().enumerate() {
            let name = format!("i{index}x");
            let mut one = if *stays {
                sidecar(&name)
            } else {
                container(&name)
            };
            if *stays && *probed {
                one.startup = Some(probe());
                one.liveness = Some(probe());
            }
            made.spec.init_containers.push(one);
        }
        for (index, (own, rules, probed)) in self.regular.iter().enumerate() {
            let mut one = container(&format!("c{index}x"));
            one.restart_policy = *own;
            if own.is_some() && *rules > 0 {
                let action = match rules {
                    1 => RestartAction::Restart,
                    _ => RestartAction::RestartAllContainers,
                };
                one.restart_rules = vec![rule(action, &[88])];
            }
            if *probed {
                one.startup = Some(probe());
                one.liveness = Some(probe());
                one.readiness = Some(probe());
            }
            made.spec.containers.push(one);
        }
        made
    }
}

/// What holds for every plan.
pub(super) fn check(model: &Model, plan: &PodPlan) {
    let (mut killed, mut removed) = (Vec::new(), Vec::new());
    for step in &plan.steps {
        match step {
            Step::KillContainers(kills) => killed.extend(kills.iter().map(|kill| &kill.id)),
            Step::StopSandboxes(ids) => killed.extend(
                model
                    .observed
                    .containers
                    .iter()
                    .filter(|found| ids.contains(&found.sandbox))
                    .map(|found| &found.id),
            ),
            Step::StartContainer {
                name,
                restart_count,
                sandbox,
                precreated,
                ..
            } => {
                for found in &model.observed.containers {
                    let is_precreated = precreated.as_ref() == Some(&found.id);
                    assert!(!is_precreated || found.phase == ContainerPhase::Created);
                    if found.name != *name || is_precreated || removed.contains(&&found.id) {
                        continue;
                    }
                    let alive = !matches!(found.phase, ContainerPhase::Exited(_));
                    let replaced = matches!(found.phase, ContainerPhase::Created);
                    assert!(
                        !alive || replaced || killed.contains(&&found.id),
                        "{name} is started beside {found:?}"
                    );
                    if let Some(count) = restart_count {
                        assert!(*count > found.restart_count, "{name} #{count}: {found:?}");
                    }
                }
                check_order(model, name, sandbox);
            }
            Step::RemoveContainers(dead) => {
                removed.extend(dead.iter().map(|one| &one.id));
                for one in dead {
                    let found = model.observed.containers.iter().find(|c| c.id == one.id);
                    let may_run = found.unwrap().phase.may_run();
                    assert!(!may_run, "{one:?} may run and is removed");
                }
            }
            Step::PrecreateContainer {
                name,
                restart_count,
                before,
                ..
            } => {
                let mut all = model.observed.containers.iter();
                let found = all.find(|found| found.id == *before).unwrap();
                assert_eq!(found.process, ProcessState::Gone);
                assert!(matches!(found.phase, ContainerPhase::Running { .. }));
                let mut all = model.observed.containers.iter();
                let newer = all.any(|one| one.name == *name && one.restart_count >= *restart_count);
                assert!(!newer, "{name} #{restart_count} is made twice");
            }
            _ => {}
        }
    }
    let Some(old) = &model.status else { return };
    if old.phase.is_terminal() {
        assert_eq!(plan.status.phase, old.phase, "an end stays an end");
        let starts = plan.steps.iter().any(|step| {
            matches!(
                step,
                Step::StartContainer { .. }
                    | Step::StartCreated { .. }
                    | Step::CreateSandbox { .. }
            )
        });
        assert!(!starts, "a pod that ended starts nothing: {plan:?}");
    }
    for status in plan.status.all_containers() {
        let before = old
            .container(&status.name)
            .map_or(0, |old| old.restart_count);
        assert!(status.restart_count >= before, "{status:?} had {before}");
    }
    for condition in &plan.status.conditions {
        if let Some(before) = old.condition(&condition.kind) {
            let same = before.status == condition.status;
            let kept = before.last_transition == condition.last_transition;
            assert!(!same || kept, "{condition:?} was {before:?}");
        }
    }
}

/// A container starts only after all init containers before it: those that run to their end have
/// ended well, the sidecars were started.
fn check_order(model: &Model, name: &str, sandbox: &rubelet_base::SandboxId) {
    let (spec, observed) = (&model.pod.spec, &model.observed);
    let mut regular = spec.containers.iter();
    if regular.any(|one| observed.newest_in(sandbox, &one.name).is_some()) {
        return;
    }
    for init in spec
        .init_containers
        .iter()
        .take_while(|one| *one.name != *name)
    {
        let found = observed.newest_in(sandbox, &init.name);
        let passed = match init.restart_policy {
            Some(RestartPolicy::Always) => found.is_some(),
            _ => {
                // One before a sidecar that restarts may have lost its record long ago.
                found.is_some_and(|found| found.phase.exit().is_some_and(|exit| !exit.failed()))
            }
        };
        assert!(passed, "{name} starts before {}: {found:?}", init.name);
    }
}

fn act(model: &mut Model, act: &Act) {
    let names: Vec<Box<str>> = model
        .pod
        .spec
        .all_containers()
        .map(|one| one.name.clone())
        .collect();
    let name = |place: usize| names[place % names.len()].clone();
    let newest = |model: &Model, place: usize| {
        let found = model.observed.newest(&name(place));
        found.map(|found| (found.id.clone(), found.phase.clone()))
    };
    match act {
        Act::Exit(place, code) => {
            let name = name(*place);
            let mut all = model.observed.containers.iter();
            let running = all.find(|found| found.name == name && found.phase.may_run());
            if let Some(id) = running.map(|found| found.id.clone()) {
                model.end(id.as_str(), *code);
            }
        }
        Act::LoseTrack(place) => {
            if let Some((id, ContainerPhase::Running { .. })) = newest(model, *place) {
                model.record(id.as_str()).phase = ContainerPhase::Unknown;
            }
        }
        Act::KillSandbox => {
            if let Some(sandbox) = model.observed.sandboxes.first() {
                let id = sandbox.id.clone();
                model.kill_sandbox(id.as_str());
            }
        }
        Act::VanishSandbox => {
            if let Some(sandbox) = model.observed.sandboxes.first() {
                let id = sandbox.id.clone();
                model.observed.sandboxes.remove(0);
                model
                    .observed
                    .containers
                    .retain(|found| found.sandbox != id);
            }
        }
        Act::SecondSandbox => {
            if let Some(newest) = model.observed.sandboxes.first() {
                let mut other = newest.clone();
                other.id = format!("{}+", newest.id).as_str().into();
                other.created_at = at(model.now);
                other.ready = true;
                other.attempt += 1;
                model.observed.sandboxes.insert(0, other);
            }
        }
        Act::Probe(place, kind, outcome) => model.probe(&name(*place), *kind, *outcome),
        Act::EditContainer(place) => {
            let name = name(*place);
            let lists = [
                &mut model.pod.spec.init_containers,
                &mut model.pod.spec.containers,
            ];
            for one in lists.into_iter().flatten() {
                if one.name == name {
                    one.definition = Some(DefinitionHash(format!("v1:{}", model.now).into()));
                }
            }
        }
        Act::EditSandbox => {
            model.pod.sandbox_definition =
                Some(DefinitionHash(format!("v1:s{}", model.now).into()));
        }
        Act::Ask(place) => {
            let instance = newest(model, *place).map(|(id, _)| id);
            let at = at(model.now);
            model
                .intents
                .restarts
                .insert(name(*place), RestartIntent { instance, at });
        }
        Act::Wait(seconds) => model.now += seconds,
        Act::RestartAgent => model.probes = ProbeResults::default(),
        Act::ProcessGone(place) => says(model, &name(*place), ProcessState::Gone),
        Act::ProcessLost(place) => says(model, &name(*place), ProcessState::Lost),
        Act::StartFails(place) => {
            let container = model.pod.spec.container(&name(*place)).unwrap().clone();
            let now = at(model.now);
            model
                .history
                .note_start_failed(&container, "RunContainerError", "no", now);
        }
    }
}

/// What the kernel says of the container that runs, or does so by the runtime's word.
fn says(model: &mut Model, name: &str, process: ProcessState) {
    let mut all = model.observed.containers.iter_mut();
    let runs = |found: &&mut ObservedContainer| {
        *found.name == *name && matches!(found.phase, ContainerPhase::Running { .. })
    };
    if let Some(found) = all.find(runs) {
        found.process = process;
    }
}

/// Leaves the pod alone until nothing needs to be done any more.
fn settle(model: &mut Model) -> PodPlan {
    // Exits that the kernel reported are reported by the runtime, or never.
    let gone = model.observed.containers.iter();
    let gone = gone.filter(|found| found.process == ProcessState::Gone);
    let gone: Vec<_> = gone.map(|found| found.id.clone()).collect();
    for (index, id) in gone.into_iter().enumerate() {
        match index % 2 {
            0 => model.end(id.as_str(), 137),
            _ => model.record(id.as_str()).process = ProcessState::Lost,
        }
    }
    for _ in 0..400 {
        let plan = model.plan();
        if plan.steps.is_empty() && plan.wake_at.is_none() {
            let probed = plan.probes.iter().all(|target| {
                model.probes.get(&target.id, target.kind) == Some(ProbeResult::Success)
            });
            let init = model.pod.spec.init_containers.iter().any(|one| {
                one.restart_policy != Some(RestartPolicy::Always)
                    && model
                        .observed
                        .newest(&one.name)
                        .is_some_and(|found| found.phase.may_run())
            });
            if probed && !init {
                return plan;
            }
        }
        model.apply(&plan);
        model.prosper(&plan);
    }
    panic!(
        "{:?} does not settle: {:#?}",
        model.pod.spec, model.observed
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_plans_keep_the_rules_and_come_to_rest(
        shape in shapes(),
        script in proptest::collection::vec((acts(), 0..3_usize), 0..25),
    ) {
        let mut model = Model::new(shape.pod());
        for (what, rounds) in &script {
            act(&mut model, what);
            for _ in 0..*rounds {
                let plan = model.plan();
                model.apply(&plan);
                if *rounds == 2 {
                    model.prosper(&plan);
                }
                model.now += 1;
            }
        }
        let plan = settle(&mut model);
        let status = &plan.status;
        if status.phase.is_terminal() {
            prop_assert!(model.observed.is_stopped(), "{:?}", model.observed);
        } else {
            for one in &status.containers {
                let found = model.observed.newest(&one.name);
                let container = model.pod.spec.container(&one.name).unwrap();
                let runs = found.is_some_and(|found| matches!(found.phase, ContainerPhase::Running { .. }));
                let ended = found.and_then(|found| found.phase.exit()).is_some_and(|exit| {
                    !crate::actions::should_restart(container, model.pod.spec.restart_policy, exit.code)
                });
                prop_assert!(runs || ended, "{} is {found:?}", one.name);
                prop_assert_eq!(one.ready, runs);
            }
            for (_, one) in model.pod.spec.sidecars() {
                let found = model.observed.newest(&one.name);
                let runs = found.is_some_and(|found| matches!(found.phase, ContainerPhase::Running { .. }));
                prop_assert!(runs, "{} is {found:?}", one.name);
            }
        }
        // At rest a plan is empty for good.
        let again = model.plan();
        prop_assert!(again.steps.is_empty() && again.wake_at.is_none());
    }
}
