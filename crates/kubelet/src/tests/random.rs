//! Random lives of pods: whatever happens to containers, sandboxes, calls, the runtime, the agent
//! and the manifests, nothing runs twice, and in the end the desired pods run.

mod calls;
mod checks;
mod delivery;
mod life;
mod noise;
mod seeds;
mod truth;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use proptest::prelude::*;
use rubelet_cri::{Code, CriErrorKind, Timeouts};
use rubelet_image_pull::images::PullParallelism;
use rubelet_sim::{Behavior, EventFlavour, Exec, Fault, Hang, ListFault, Subject};
use tokio::time::{Instant, sleep};

use self::{
    calls::{CALLS, LISTS},
    delivery::DeliveryCheck,
    life::{Action, Life, life},
    noise::{FLAVOURS, Noise},
    truth::Truth,
};
use super::node::{Node, seconds};

/// The current manifest of a pod.
#[derive(Debug, Clone, Copy, Default)]
struct Version {
    exists: bool,
    images: [bool; 2],
    init: bool,
    label: bool,
    host_network: bool,
}

fn image(second: bool) -> &'static str {
    if second { "app:2" } else { "app:1" }
}

struct RandomLife {
    node: Node,
    life: Life,
    versions: Vec<Version>,
    uids: Vec<String>,
    truth: Truth,
    delivery: DeliveryCheck,
    /// Sandboxes that were removed without the agent, with their containers.
    removed_sandboxes: BTreeSet<String>,
    /// Whether changes may have happened that no event reports on an open stream.
    changes_lost: bool,
    /// Whether events may have named wrong pods.
    wrong_pod_named: bool,
    /// Whether the clock was stepped.
    stepped: bool,
    /// Until when no stream delivers events.
    withheld: Option<Instant>,
    /// Faults that end by themselves, and when.
    hangs: Vec<(Instant, Hang)>,
    lost: Vec<(Instant, String)>,
    failing: Vec<(Instant, String)>,
    /// Containers whose process has exited, and when the runtime notices.
    ended: Vec<(Instant, String)>,
    agent_from: Option<Instant>,
    runtime_from: Option<Instant>,
    calm: Arc<AtomicBool>,
    /// The largest restart counts seen, by UID, start time of the pod, and container.
    counts: BTreeMap<(String, jiff::Timestamp, Box<str>), u32>,
}

impl RandomLife {
    fn new(life: Life) -> Self {
        let timeouts = Timeouts {
            request: seconds(20),
        };
        let mut node = Node::stopped(PullParallelism::Unlimited, timeouts);
        node.sim.set_latency(Duration::from_millis(life.latency));
        node.sim.events(FLAVOURS[life.flavour]);
        node.kernel = life.kernel.is_some();
        node.pid_query_idle = Duration::from_millis(30);
        let lag = life.kernel.unwrap_or_default();
        node.sim.set_exit_lag(Duration::from_millis(lag));
        node.sim.set_exit_codes(lag.is_multiple_of(2));
        if life.finishes_abandoned_calls {
            node.wire.finish_abandoned_calls();
        }
        let calm = Arc::new(AtomicBool::new(false));
        for image in ["app:1", "app:2"] {
            let (calm, ends) = (Arc::clone(&calm), life.ends.clone());
            node.sim.on_image_with(image, move |start| {
                let is_init = start.instance.name.starts_with("init");
                let calm = calm.load(Ordering::Relaxed);
                match ends.get(start.earlier).filter(|_| !calm) {
                    // A container that exits with 0 would not restart under every policy.
                    Some((after, code)) if is_init => {
                        Behavior::exits(Duration::from_millis(*after), *code)
                    }
                    Some((after, code)) => Behavior::exits(Duration::from_millis(*after), code + 1),
                    None if is_init => Behavior::exits(Duration::from_millis(300), 0),
                    None => Behavior::runs(),
                }
            });
        }
        let (still, hooks, mut done) = (Arc::clone(&calm), life.hooks.clone(), 0);
        node.sim.on_exec(move |_, _| {
            let hook = hooks.get(done).filter(|_| !still.load(Ordering::Relaxed));
            done += 1;
            hook.map_or_else(Exec::default, |(takes, code)| {
                Exec::exits(*code).after(Duration::from_millis(*takes))
            })
        });
        node.start();
        // With shared streams a closed one still receives its share: it loses an event after each
        // restart.
        let changes_lost = FLAVOURS[life.flavour] == EventFlavour::Shared;
        let mut run = Self {
            node,
            versions: vec![Version::default(); life.pods],
            uids: vec![String::new(); life.pods],
            life,
            truth: Truth::default(),
            delivery: DeliveryCheck::default(),
            removed_sandboxes: BTreeSet::new(),
            changes_lost,
            wrong_pod_named: false,
            stepped: false,
            withheld: None,
            hangs: Vec::new(),
            lost: Vec::new(),
            failing: Vec::new(),
            ended: Vec::new(),
            agent_from: None,
            runtime_from: None,
            calm,
            counts: BTreeMap::new(),
        };
        for pod in 0..run.life.pods {
            run.versions[pod].exists = true;
            run.write(pod);
        }
        run
    }

    /// Writes the manifest of a pod.
    fn write(&mut self, pod: usize) {
        let Version {
            images,
            init,
            label,
            host_network,
            ..
        } = self.versions[pod];
        let hooks = match self.life.hooks.is_empty() {
            true => "",
            false => {
                ", lifecycle: {postStart: {exec: {command: [start]}}, \
                 preStop: {exec: {command: [stop]}}}"
            }
        };
        let list = |prefix: &str, count: usize, image_of: &dyn Fn(usize) -> bool| {
            let items: Vec<_> = (0..count)
                .map(|index| {
                    let hooks = if prefix == "app" { hooks } else { "" };
                    format!(
                        "{{name: {prefix}{index}, image: '{}'{hooks}}}",
                        image(image_of(index))
                    )
                })
                .collect();
            items.join(", ")
        };
        let spec = format!(
            "restartPolicy: {}, hostNetwork: {host_network}, terminationGracePeriodSeconds: 5, \
             initContainers: [{}], containers: [{}]",
            self.life.policy,
            list("init", self.life.init, &|_| init),
            list("app", self.life.regular, &|index| images[index]),
        );
        let metadata = format!("labels: {{l: '{label}'}}");
        self.uids[pod] = self.node.apply_with(&format!("p{pod}"), &metadata, &spec);
    }

    fn edit(&mut self, pod: usize, change: impl FnOnce(&mut Version)) {
        change(&mut self.versions[pod]);
        if self.versions[pod].exists {
            self.write(pod);
        }
    }

    /// The name of one of a pod's containers.
    fn name(&self, which: usize) -> String {
        let all = self.life.init + self.life.regular;
        match which % all {
            index if index < self.life.init => format!("init{index}"),
            index => format!("app{}", index - self.life.init),
        }
    }

    async fn apply(&mut self, action: Action) {
        let now = Instant::now();
        let until = |time: u64| now + Duration::from_millis(time);
        let action = action.among(self.life.pods);
        match action {
            Action::Nothing => {}
            Action::Noise(pod, noise) => {
                self.changes_lost |= noise.may_lose_changes();
                self.wrong_pod_named |= noise.may_name_wrong_pod();
                self.stepped |= matches!(noise, Noise::StepClock(_));
                if let Some(time) = noise.apply(&self.node, &self.uids[pod]) {
                    self.withheld = Some(now + time);
                }
            }
            Action::KillContainer(..)
            | Action::ExitUnnoticed(..)
            | Action::LoseTrack(..)
            | Action::KillSandbox(_)
            | Action::RemoveSandbox(_) => self.end_something(action, now),
            Action::RestartAgent if self.agent_from.is_none() => {
                self.check_lifecycle_events();
                self.node.restart().await;
                self.delivery.forget();
            }
            Action::AgentDown(time) if self.agent_from.is_none() => {
                self.check_lifecycle_events();
                self.node.kill().await;
                self.delivery.forget();
                self.agent_from = Some(until(time));
            }
            Action::RestartAgent | Action::AgentDown(_) => {}
            Action::RestartRuntime if self.runtime_from.is_none() => self.node.sim.restart(),
            Action::RuntimeDown(time) if self.runtime_from.is_none() => {
                self.node.sim.set_down(true);
                self.runtime_from = Some(until(time));
            }
            Action::RestartRuntime | Action::RuntimeDown(_) => {}
            Action::Fault { .. } | Action::Hang { .. } | Action::PartialList { .. } => {
                self.inject(action, now);
            }
            Action::FailPrepare(pod, time) => {
                let name = format!("p{pod}");
                self.node
                    .host
                    .fail_prepare(&name, Some("injected by the test"));
                self.failing.push((until(time), name));
            }
            Action::FailCleanUp(pod, time) => {
                let name = format!("p{pod}");
                self.node
                    .host
                    .fail_clean_up(&name, Some("injected by the test"));
                self.failing.push((until(time), name));
            }
            Action::EditImage(..)
            | Action::EditInit(_)
            | Action::EditLabel(_)
            | Action::EditNetwork(_)
            | Action::Remove(_)
            | Action::Add(_) => self.change(action),
        }
    }

    /// Ends a container, its process or a sandbox, or makes the runtime lose track of a container.
    fn end_something(&mut self, action: Action, now: Instant) {
        let until = |time: u64| now + Duration::from_millis(time);
        match action {
            Action::KillContainer(pod, which) => {
                if let Some(id) = self.node.sim.running(&self.uids[pod], &self.name(which)) {
                    self.node.sim.kill_container(&id, 9, "");
                }
            }
            Action::ExitUnnoticed(pod, which, lag) => {
                if let Some(id) = self.node.sim.running(&self.uids[pod], &self.name(which)) {
                    self.node.sim.exit_unnoticed(&id, None);
                    self.ended.push((until(lag), id));
                }
            }
            Action::LoseTrack(pod, time) => {
                if let Some(id) = self.node.sim.running(&self.uids[pod], "app0") {
                    self.node.wire.lose_track(&id, true);
                    self.lost.push((until(time), id));
                }
            }
            Action::KillSandbox(pod) => {
                if let Some(id) = self.node.sim.sandboxes(&self.uids[pod]).last() {
                    self.node.sim.kill_sandbox(id);
                }
            }
            Action::RemoveSandbox(pod) => {
                if let Some(id) = self.node.sim.sandboxes(&self.uids[pod]).last() {
                    self.node.sim.remove_sandbox_externally(id);
                    self.removed_sandboxes.insert(id.clone());
                }
            }
            _ => {}
        }
    }

    /// Makes calls to the runtime fail, hang, or return incomplete lists.
    fn inject(&mut self, action: Action, now: Instant) {
        let until = |time: u64| now + Duration::from_millis(time);
        match action {
            Action::Fault {
                call,
                kind,
                after,
                times,
            } => {
                let kind = [
                    CriErrorKind::Other(Code::Unknown),
                    CriErrorKind::DeadlineExceeded(seconds(20)),
                    CriErrorKind::Unavailable,
                    CriErrorKind::Canceled,
                ][kind];
                let fault = Fault::of(CALLS[call])
                    .error(kind, "injected by the test")
                    .times(times);
                self.node
                    .sim
                    .inject(if after { fault.after_effect() } else { fault });
            }
            Action::Hang {
                call,
                pod,
                after,
                time,
            } => {
                let subject = match CALLS[call] {
                    call if call.starts_with("List") || call == "ImageStatus" => Subject::any(),
                    _ => Subject::pod(&self.uids[pod]),
                };
                let hang = if after {
                    self.node.sim.hang_after_effect(CALLS[call], subject)
                } else {
                    self.node.sim.hang(CALLS[call], subject)
                };
                self.hangs.push((until(time), hang));
            }
            Action::PartialList {
                list,
                share,
                seed,
                times,
            } => {
                self.changes_lost = true;
                let holes = ListFault::partial(LISTS[list], share, seed);
                self.node.sim.inject_list(holes.times(times));
            }
            _ => {}
        }
    }

    /// Edits, removes or adds a manifest.
    fn change(&mut self, action: Action) {
        match action {
            Action::EditImage(pod, which) => {
                self.edit(pod, |version| {
                    version.images[which] = !version.images[which];
                });
            }
            Action::EditInit(pod) => self.edit(pod, |version| version.init = !version.init),
            Action::EditLabel(pod) => self.edit(pod, |version| version.label = !version.label),
            Action::EditNetwork(pod) => {
                self.edit(pod, |version| version.host_network = !version.host_network);
            }
            Action::Remove(pod) if std::mem::replace(&mut self.versions[pod].exists, false) => {
                self.node.remove_manifest(&format!("p{pod}"));
            }
            Action::Add(pod) if !std::mem::replace(&mut self.versions[pod].exists, true) => {
                self.write(pod);
            }
            _ => {}
        }
    }

    /// Lets time pass and checks invariants now and then.
    async fn advance(&mut self, time: Duration) {
        let end = Instant::now() + time;
        loop {
            self.undo(Instant::now());
            self.check_invariants();
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            sleep(left.min(Duration::from_millis(700))).await;
        }
    }

    /// Ends the faults that were to last until now.
    fn undo(&mut self, now: Instant) {
        self.hangs.retain(|(until, _)| *until > now);
        for (_, id) in self.lost.extract_if(.., |(until, _)| *until <= now) {
            self.node.wire.lose_track(&id, false);
        }
        for (_, id) in self.ended.extract_if(.., |(until, _)| *until <= now) {
            self.node.sim.kill_container(&id, 9, "");
        }
        for (_, name) in self.failing.extract_if(.., |(until, _)| *until <= now) {
            self.node.host.fail_prepare(&name, None);
            self.node.host.fail_clean_up(&name, None);
        }
        if self.withheld.take_if(|until| *until <= now).is_some() {
            self.node.sim.withhold_events(false);
        }
        if self.runtime_from.take_if(|from| *from <= now).is_some() {
            self.node.sim.set_down(false);
        }
        if self.agent_from.take_if(|from| *from <= now).is_some() {
            self.node.start();
        }
    }

    /// Checks that restart counts never drop, and that a runtime that responds is not reported as
    /// down.
    fn check_invariants(&mut self) {
        let counts_reads = !self.life.finishes_abandoned_calls && !self.wrong_pod_named;
        self.truth.follow(&self.node, counts_reads);
        if self.agent_from.is_some() {
            return;
        }
        self.delivery.follow(&self.node);
        assert_eq!(self.node.agent().pleg().problem(), None);
        for (uid, _, entry) in self.node.agent().pods.list() {
            let status = &entry.status;
            for container in status.init_containers.iter().chain(&status.containers) {
                let key = (
                    uid.as_str().to_owned(),
                    status.start_time,
                    container.name.clone(),
                );
                let most = self.counts.entry(key).or_default();
                assert!(
                    container.restart_count >= *most,
                    "the restart count of {} dropped from {most} to {}\n{}",
                    container.name,
                    container.restart_count,
                    self.node.failure_report()
                );
                *most = container.restart_count;
            }
        }
    }

    /// Checks that the current agent has reported each change of a container once.
    fn check_lifecycle_events(&mut self) {
        self.delivery.follow(&self.node);
        let events = self.node.lifecycle();
        // Older events are dropped.
        if events.first().is_some_and(|event| event.number == 1) {
            let holes = |(_, action): &(u64, Action)| matches!(action, Action::PartialList { .. });
            truth::assert_once(&events, self.life.actions.iter().any(holes), &self.node);
        }
    }

    /// Ends all faults.
    fn stop_faults(&mut self) {
        self.calm.store(true, Ordering::Relaxed);
        self.node.sim.clear_faults();
        let far = Instant::now() + seconds(1_000_000);
        self.undo(far);
    }

    /// Ends all faults; checks that the desired state is reached and that then nothing changes any
    /// more.
    async fn assert_converges(&mut self) {
        self.stop_faults();
        let settled = |node: &Node| {
            (0..self.life.pods).all(|pod| match self.versions[pod].exists {
                true => node.is_running(&format!("p{pod}")) && self.is_as_desired(node, pod),
                false => node.is_gone(&self.uids[pod]),
            })
        };
        // Containers that were started before may still exit by themselves.
        for round in 0.. {
            self.node
                .within(seconds(1000), "the desired state is reached", settled)
                .await;
            let mark = self.node.sim.oracle().mark();
            sleep(seconds(20)).await;
            let calls = self.node.sim.oracle().calls_since(mark);
            let is_read = |call: &str| call.starts_with("List") || call.ends_with("Status");
            if calls.iter().all(|call| is_read(call.call)) {
                break;
            }
            assert!(
                round < 20,
                "the node does not become idle\n{}",
                self.node.failure_report()
            );
        }
        for (name, heartbeat) in &self.node.agent().heartbeats {
            assert!(heartbeat.age() <= seconds(11), "{name}");
        }
        for pod in 0..self.life.pods {
            let died = "TaskDied ";
            let events = self.node.events(&format!("p{pod}"));
            assert!(
                !events.iter().any(|event| event.starts_with(died)),
                "{events:?}"
            );
        }
    }

    fn is_as_desired(&self, node: &Node, pod: usize) -> bool {
        let (version, uid) = (self.versions[pod], &self.uids[pod]);
        let images = (0..self.life.regular).all(|index| {
            let id = node.sim.running(uid, &format!("app{index}"));
            let config = id.and_then(|id| node.sim.container_config(&id));
            let used = config.and_then(|config| config.image).unwrap_or_default();
            used.user_specified_image == image(version.images[index])
        });
        let entry = node.pod(&format!("p{pod}"));
        let label = version.label.to_string();
        images
            && entry.is_some_and(|entry| {
                entry.pod.labels.get("l").map(AsRef::as_ref) == Some(label.as_str())
                    && entry.status.pod_ips.is_empty() == version.host_network
            })
    }
}

async fn run_life(life: Life) {
    let actions = life.actions.clone();
    let mut run = RandomLife::new(life);
    for (pause, action) in actions {
        run.advance(Duration::from_millis(pause)).await;
        run.apply(action).await;
    }
    run.advance(seconds(1)).await;
    run.assert_converges().await;
    run.assert_order();
    run.assert_hooks();
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        max_shrink_iters: 400,
        ..ProptestConfig::default()
    })]

    #[test]
    fn nothing_runs_twice_and_the_node_converges_despite_faults(life in life()) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().expect("a runtime");
        runtime.block_on(run_life(life));
    }
}
