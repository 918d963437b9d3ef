//! Random lives of pods: whatever happens to containers, sandboxes, calls, the runtime, the agent
//! and the manifests, nothing runs twice, and in the end there is what is wanted.

mod calls;
mod noise;
mod seeds;
mod told;
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
use rubelet_sim::{Behavior, EventFlavour, Exec, Fault, Hang, ListFault, Subject, What};
use tokio::time::{Instant, sleep};

use self::{
    calls::{CALLS, LISTS},
    noise::{FLAVOURS, Noise, noise},
    told::Told,
    truth::Truth,
};
use super::node::{Node, seconds};
use crate::images::PullParallelism;

/// Most pods of a life.
const PODS: usize = 4;

/// What happens to a node. Numbers choose among what is there, times are in milliseconds.
#[derive(Debug, Clone)]
enum Act {
    Nothing,
    KillContainer(usize, usize),
    /// The kernel tells the end so much earlier than the runtime.
    EndProcess(usize, usize, u64),
    LoseTrack(usize, u64),
    KillSandbox(usize),
    VanishSandbox(usize),
    RestartAgent,
    AgentDown(u64),
    RestartRuntime,
    RuntimeDown(u64),
    Fault {
        call: usize,
        kind: usize,
        after: bool,
        times: usize,
    },
    Hang {
        call: usize,
        pod: usize,
        after: bool,
        time: u64,
    },
    /// Lists leave out this share of a thousand, so many times.
    Holes {
        list: usize,
        share: u16,
        seed: u64,
        times: usize,
    },
    FailPrepare(usize, u64),
    FailCleanUp(usize, u64),
    EditImage(usize, usize),
    EditInit(usize),
    EditLabel(usize),
    EditNetwork(usize),
    Remove(usize),
    Add(usize),
    Noise(usize, Noise),
}

impl Act {
    /// The same, but to one of the first `pods` pods.
    fn among(mut self, pods: usize) -> Self {
        match &mut self {
            Self::KillContainer(pod, _)
            | Self::EndProcess(pod, _, _)
            | Self::LoseTrack(pod, _)
            | Self::KillSandbox(pod)
            | Self::VanishSandbox(pod)
            | Self::Hang { pod, .. }
            | Self::FailPrepare(pod, _)
            | Self::FailCleanUp(pod, _)
            | Self::EditImage(pod, _)
            | Self::EditInit(pod)
            | Self::EditLabel(pod)
            | Self::EditNetwork(pod)
            | Self::Remove(pod)
            | Self::Add(pod)
            | Self::Noise(pod, _) => *pod %= pods,
            Self::Nothing
            | Self::RestartAgent
            | Self::AgentDown(_)
            | Self::RestartRuntime
            | Self::RuntimeDown(_)
            | Self::Holes { .. }
            | Self::Fault { .. } => {}
        }
        self
    }
}

#[derive(Debug, Clone)]
struct Life {
    pods: usize,
    flavour: usize,
    init: usize,
    regular: usize,
    policy: &'static str,
    latency: u64,
    /// Whether the agent asks the kernel, and by how much the runtime is behind it.
    kernel: Option<u64>,
    finishes_abandoned_calls: bool,
    /// Time to the end and exit code of instances, by number of the start.
    ends: Vec<(u64, i32)>,
    /// How long hooks take, in milliseconds, and their exit codes, by their number; none at all
    /// where this is empty.
    hooks: Vec<(u64, i32)>,
    acts: Vec<(u64, Act)>,
}

fn act() -> impl Strategy<Value = Act> {
    let pod = 0..PODS;
    let span = prop_oneof![0_u64..100, 0_u64..5_000, 0_u64..60_000];
    let call = 0..CALLS.len();
    prop_oneof![
        2 => Just(Act::Nothing),
        4 => (pod.clone(), 0_usize..3).prop_map(|(pod, which)| Act::KillContainer(pod, which)),
        4 => (pod.clone(), 0_usize..3, prop_oneof![4 => 0_u64..100, 1 => 0_u64..20_000])
            .prop_map(|(pod, which, lag)| Act::EndProcess(pod, which, lag)),
        2 => (pod.clone(), span.clone()).prop_map(|(pod, span)| Act::LoseTrack(pod, span)),
        2 => pod.clone().prop_map(Act::KillSandbox),
        1 => pod.clone().prop_map(Act::VanishSandbox),
        5 => Just(Act::RestartAgent),
        2 => span.clone().prop_map(Act::AgentDown),
        1 => Just(Act::RestartRuntime),
        2 => span.clone().prop_map(Act::RuntimeDown),
        4 => (call.clone(), 0_usize..4, any::<bool>(), 1_usize..4)
            .prop_map(|(call, kind, after, times)| Act::Fault { call, kind, after, times }),
        3 => (call, pod.clone(), any::<bool>(), span)
            .prop_map(|(call, pod, after, time)| Act::Hang { call, pod, after, time }),
        3 => (0..LISTS.len(), prop_oneof![Just(1000_u16), 100_u16..900], any::<u64>(), 1_usize..6)
            .prop_map(|(list, share, seed, times)| Act::Holes { list, share, seed, times }),
        1 => (pod.clone(), 0_u64..30_000).prop_map(|(pod, time)| Act::FailPrepare(pod, time)),
        1 => (pod.clone(), 0_u64..30_000).prop_map(|(pod, time)| Act::FailCleanUp(pod, time)),
        3 => (pod.clone(), 0_usize..2).prop_map(|(pod, which)| Act::EditImage(pod, which)),
        1 => pod.clone().prop_map(Act::EditInit),
        1 => pod.clone().prop_map(Act::EditLabel),
        1 => pod.clone().prop_map(Act::EditNetwork),
        2 => pod.clone().prop_map(Act::Remove),
        3 => pod.clone().prop_map(Act::Add),
        6 => (pod, noise()).prop_map(|(pod, noise)| Act::Noise(pod, noise)),
    ]
}

/// Long pauses and times, for few lives.
fn life() -> impl Strategy<Value = Life> {
    let pause = prop_oneof![0_u64..20, 0_u64..1_000, 0_u64..20_000];
    let end = (prop_oneof![0_u64..5, 0_u64..3_000, 0_u64..40_000], 0_i32..3);
    life_with(Just(2), 0_usize..3, pause, 1..24, end, 12)
}

/// Short ones, for many.
fn short_life() -> impl Strategy<Value = Life> {
    let pause = prop_oneof![4 => 0_u64..20, 4 => 0_u64..400, 1 => 0_u64..3_000];
    let end = (prop_oneof![0_u64..5, 0_u64..3_000], 0_i32..3);
    let pods = prop_oneof![6 => Just(2), 2 => Just(3), 1 => Just(4)];
    let inits = prop_oneof![3 => Just(0_usize), 1 => Just(1), 1 => Just(2)];
    life_with(pods, inits, pause, 10..16, end, 4)
}

fn life_with(
    pods: impl Strategy<Value = usize>,
    inits: impl Strategy<Value = usize>,
    pause: impl Strategy<Value = u64>,
    acts: std::ops::Range<usize>,
    end: impl Strategy<Value = (u64, i32)>,
    ends: usize,
) -> impl Strategy<Value = Life> {
    let hook = (
        prop_oneof![Just(0_u64), 0_u64..500, 0_u64..20_000],
        0_i32..2,
    );
    (
        (pods, prop_oneof![3 => Just(0), 2 => 0..FLAVOURS.len()]),
        (inits, 1_usize..3),
        prop_oneof![3 => Just("Always"), 1 => Just("OnFailure")],
        (
            prop_oneof![Just(0_u64), Just(4), Just(60)],
            prop_oneof![1 => Just(None), 3 => (0_u64..80).prop_map(Some)],
        ),
        any::<bool>(),
        prop::collection::vec(end, 0..ends),
        prop_oneof![2 => Just(Vec::new()), 1 => prop::collection::vec(hook, 1..8)],
        prop::collection::vec((pause, act()), acts),
    )
        .prop_map(
            |(
                (pods, flavour),
                (init, regular),
                policy,
                (latency, kernel),
                finishes_abandoned_calls,
                ends,
                hooks,
                acts,
            )| Life {
                pods,
                flavour,
                init,
                regular,
                policy,
                latency,
                kernel,
                finishes_abandoned_calls,
                ends,
                hooks,
                acts,
            },
        )
}

/// A manifest as it is now.
#[derive(Debug, Clone, Copy, Default)]
struct Version {
    wanted: bool,
    images: [bool; 2],
    init: bool,
    label: bool,
    host_network: bool,
}

fn image(second: bool) -> &'static str {
    if second { "app:2" } else { "app:1" }
}

struct Story {
    node: Node,
    life: Life,
    versions: Vec<Version>,
    uids: Vec<String>,
    truth: Truth,
    told: Told,
    /// Sandboxes that somebody else removed, with what was in them.
    vanished: BTreeSet<String>,
    /// Events were lost on streams that are open.
    eaten: bool,
    /// Events named wrong pods.
    misled: bool,
    /// The clock was set.
    stepped: bool,
    /// Until when no stream gets anything.
    withheld: Option<Instant>,
    /// What ends by itself, and when.
    hangs: Vec<(Instant, Hang)>,
    lost: Vec<(Instant, String)>,
    failing: Vec<(Instant, String)>,
    /// Containers whose process is gone, and when the runtime notices.
    ended: Vec<(Instant, String)>,
    agent_from: Option<Instant>,
    runtime_from: Option<Instant>,
    calm: Arc<AtomicBool>,
    /// The largest restart counts seen, by UID, start time of the pod, and container.
    counts: BTreeMap<(String, jiff::Timestamp, Box<str>), u32>,
}

impl Story {
    fn new(life: Life) -> Self {
        let timeouts = Timeouts {
            request: seconds(20),
        };
        let mut node = Node::stopped(PullParallelism::Unlimited, timeouts);
        node.sim.set_latency(Duration::from_millis(life.latency));
        node.sim.events(FLAVOURS[life.flavour]);
        node.kernel = life.kernel.is_some();
        node.rest = Duration::from_millis(30);
        let lag = life.kernel.unwrap_or_default();
        node.sim.set_exit_lag(Duration::from_millis(lag));
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
                    // Containers that end well would not be started again under every policy.
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
        // A stream that is gone takes its turn there: it swallows an event after each restart.
        let eaten = FLAVOURS[life.flavour] == EventFlavour::Shared;
        let mut story = Self {
            node,
            versions: vec![Version::default(); life.pods],
            uids: vec![String::new(); life.pods],
            life,
            truth: Truth::default(),
            told: Told::default(),
            vanished: BTreeSet::new(),
            eaten,
            misled: false,
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
        for pod in 0..story.life.pods {
            story.versions[pod].wanted = true;
            story.write(pod);
        }
        story
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
        self.uids[pod] = self.node.want_with(&format!("p{pod}"), &metadata, &spec);
    }

    fn edit(&mut self, pod: usize, change: impl FnOnce(&mut Version)) {
        change(&mut self.versions[pod]);
        if self.versions[pod].wanted {
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

    async fn act(&mut self, act: Act) {
        let now = Instant::now();
        let until = |time: u64| now + Duration::from_millis(time);
        match act.among(self.life.pods) {
            Act::Nothing => {}
            Act::Noise(pod, noise) => {
                self.eaten |= noise.eats();
                self.misled |= noise.misleads();
                self.stepped |= matches!(noise, Noise::Step(_));
                if let Some(time) = noise.make(&self.node, &self.uids[pod]) {
                    self.withheld = Some(now + time);
                }
            }
            Act::KillContainer(pod, which) => {
                if let Some(id) = self.node.sim.running(&self.uids[pod], &self.name(which)) {
                    self.node.sim.kill_container(&id, 9, "");
                }
            }
            Act::EndProcess(pod, which, lag) => {
                if let Some(id) = self.node.sim.running(&self.uids[pod], &self.name(which)) {
                    self.node.sim.end_process(&id);
                    self.ended.push((until(lag), id));
                }
            }
            Act::LoseTrack(pod, time) => {
                if let Some(id) = self.node.sim.running(&self.uids[pod], "app0") {
                    self.node.wire.lose_track(&id, true);
                    self.lost.push((until(time), id));
                }
            }
            Act::KillSandbox(pod) => {
                if let Some(id) = self.node.sim.sandboxes(&self.uids[pod]).last() {
                    self.node.sim.kill_sandbox(id);
                }
            }
            Act::VanishSandbox(pod) => {
                if let Some(id) = self.node.sim.sandboxes(&self.uids[pod]).last() {
                    self.node.sim.vanish_sandbox(id);
                    self.vanished.insert(id.clone());
                }
            }
            Act::RestartAgent if self.agent_from.is_none() => {
                self.check_record();
                self.node.restart().await;
                self.told.forget();
            }
            Act::AgentDown(time) if self.agent_from.is_none() => {
                self.check_record();
                self.node.kill().await;
                self.told.forget();
                self.agent_from = Some(until(time));
            }
            Act::RestartAgent | Act::AgentDown(_) => {}
            Act::RestartRuntime if self.runtime_from.is_none() => self.node.sim.restart(),
            Act::RuntimeDown(time) if self.runtime_from.is_none() => {
                self.node.sim.set_down(true);
                self.runtime_from = Some(until(time));
            }
            Act::RestartRuntime | Act::RuntimeDown(_) => {}
            Act::Fault {
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
                    .error(kind, "as the story wants")
                    .times(times);
                self.node
                    .sim
                    .inject(if after { fault.after_effect() } else { fault });
            }
            Act::Hang {
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
            Act::Holes {
                list,
                share,
                seed,
                times,
            } => {
                self.eaten = true;
                let holes = ListFault::thinned(LISTS[list], share, seed);
                self.node.sim.inject_list(holes.times(times));
            }
            Act::FailPrepare(pod, time) => {
                let name = format!("p{pod}");
                self.node
                    .host
                    .fail_prepare(&name, Some("as the story wants"));
                self.failing.push((until(time), name));
            }
            Act::FailCleanUp(pod, time) => {
                let name = format!("p{pod}");
                self.node
                    .host
                    .fail_clean_up(&name, Some("as the story wants"));
                self.failing.push((until(time), name));
            }
            Act::EditImage(pod, which) => {
                self.edit(pod, |version| {
                    version.images[which] = !version.images[which];
                });
            }
            Act::EditInit(pod) => self.edit(pod, |version| version.init = !version.init),
            Act::EditLabel(pod) => self.edit(pod, |version| version.label = !version.label),
            Act::EditNetwork(pod) => {
                self.edit(pod, |version| version.host_network = !version.host_network);
            }
            Act::Remove(pod) => {
                if std::mem::replace(&mut self.versions[pod].wanted, false) {
                    self.node.unwant(&format!("p{pod}"));
                }
            }
            Act::Add(pod) => {
                if !std::mem::replace(&mut self.versions[pod].wanted, true) {
                    self.write(pod);
                }
            }
        }
    }

    /// Lets time pass, with a look at the restart counts now and then.
    async fn pass(&mut self, time: Duration) {
        let end = Instant::now() + time;
        loop {
            self.undo(Instant::now());
            self.look();
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            sleep(left.min(Duration::from_millis(700))).await;
        }
    }

    /// Ends what was to last until now.
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

    /// Restart counts of a pod never drop, and a runtime that answers is not called dead.
    fn look(&mut self) {
        let counts_reads = !self.life.finishes_abandoned_calls && !self.misled;
        self.truth.follow(&self.node, counts_reads);
        if self.agent_from.is_some() {
            return;
        }
        self.told.follow(&self.node);
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
                    self.node.account()
                );
                *most = container.restart_count;
            }
        }
    }

    /// What the agent that runs now told of each container was told once.
    fn check_record(&mut self) {
        self.told.follow(&self.node);
        let events = self.node.lifecycle();
        // Older ones are forgotten.
        if events.first().is_some_and(|event| event.number == 1) {
            let holes = |(_, act): &(u64, Act)| matches!(act, Act::Holes { .. });
            truth::assert_once(&events, self.life.acts.iter().any(holes), &self.node);
        }
    }

    /// Nothing goes wrong any more.
    fn end_trouble(&mut self) {
        self.calm.store(true, Ordering::Relaxed);
        self.node.sim.clear_faults();
        let far = Instant::now() + seconds(1_000_000);
        self.undo(far);
    }

    /// Trouble ends; what is wanted comes about, and then nothing happens any more.
    async fn calm_down(&mut self) {
        self.end_trouble();
        let settled = |node: &Node| {
            (0..self.life.pods).all(|pod| match self.versions[pod].wanted {
                true => node.is_running(&format!("p{pod}")) && self.is_as_wanted(node, pod),
                false => node.is_gone(&self.uids[pod]),
            })
        };
        // What was started before it became calm may still end by itself.
        for round in 0.. {
            self.node
                .within(seconds(1000), "everything is as it is wanted", settled)
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
                "it does not become calm\n{}",
                self.node.account()
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

    fn is_as_wanted(&self, node: &Node, pod: usize) -> bool {
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

    /// By the oracle: nothing ran twice at a time, and init containers ran in order, each in its
    /// sandbox before the others.
    fn assert_order(&self) {
        let oracle = self.node.sim.oracle();
        let mut running: BTreeSet<(&str, &str)> = BTreeSet::new();
        let mut ended_well: BTreeSet<(&str, &str)> = BTreeSet::new();
        for entry in oracle.entries() {
            match &entry.what {
                What::ContainerStarted(of) => {
                    let (sandbox, name) = (of.sandbox_id.as_str(), of.name.as_str());
                    let inits = (0..self.life.init).map(|index| format!("init{index}"));
                    let earlier: Vec<_> = inits.take_while(|init| init != name).collect();
                    for init in &earlier {
                        let done = ended_well.contains(&(sandbox, init.as_str()));
                        assert!(done, "{of} started before {init} had ended\n{oracle}");
                    }
                    let beside = running.iter().find(|(other, beside)| {
                        *other == sandbox
                            && (beside.starts_with("init") || name.starts_with("init"))
                    });
                    assert!(beside.is_none(), "{of} started beside {beside:?}\n{oracle}");
                    running.insert((sandbox, name));
                }
                What::ContainerExited { instance, code, .. } => {
                    let key = (instance.sandbox_id.as_str(), instance.name.as_str());
                    running.remove(&key);
                    if *code == 0 {
                        ended_well.insert(key);
                    }
                }
                _ => {}
            }
        }
        for uid in &self.uids {
            self.node.assert_never_twice(uid);
        }
    }

    /// I6, by the oracle: each exit code was told as it was, before the agent removed the container.
    fn assert_codes(&self) {
        let oracle = self.node.sim.oracle();
        let mut codes = BTreeMap::new();
        for entry in oracle.entries() {
            match &entry.what {
                What::ContainerExited { instance, code, .. } => {
                    codes.insert(&instance.id, *code);
                    let told = self.told.codes.get(&instance.id);
                    assert!(
                        told.is_none_or(|told| told == code),
                        "I6: {instance} ended with {code}, and {told:?} was told\n{oracle}"
                    );
                }
                What::ContainerRemoved(of) if !self.vanished.contains(&of.sandbox_id) => {
                    let lost = codes.contains_key(&of.id) && !self.told.codes.contains_key(&of.id);
                    assert!(
                        !lost,
                        "I6: {of} was removed and its end never told\n{oracle}"
                    );
                }
                _ => {}
            }
        }
    }

    /// By the oracle: the postStart hook of whatever runs in the end has succeeded.
    fn assert_hooks(&self) {
        if self.life.hooks.is_empty() {
            return;
        }
        let oracle = self.node.sim.oracle();
        for uid in &self.uids {
            for name in (0..self.life.regular).map(|index| format!("app{index}")) {
                let Some(id) = self.node.sim.running(uid, &name) else {
                    continue;
                };
                let done = oracle.execs(uid, &name).into_iter().any(|exec| {
                    exec.id == id
                        && exec.command == "start"
                        && exec.ended.is_some_and(|(_, code)| code == Some(0))
                });
                assert!(done, "the postStart hook of {id} did not succeed\n{oracle}");
            }
        }
    }
}

async fn live(life: Life) {
    let acts = life.acts.clone();
    let mut story = Story::new(life);
    for (pause, act) in acts {
        story.pass(Duration::from_millis(pause)).await;
        story.act(act).await;
    }
    story.pass(seconds(1)).await;
    story.calm_down().await;
    story.assert_order();
    story.assert_hooks();
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        max_shrink_iters: 400,
        ..ProptestConfig::default()
    })]

    #[test]
    fn whatever_happens_nothing_runs_twice_and_in_the_end_all_is_as_wanted(life in life()) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().expect("a runtime");
        runtime.block_on(live(life));
    }
}
