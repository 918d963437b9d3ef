//! Random lives of pods: whatever happens to containers, sandboxes, calls, the runtime, the agent
//! and the manifests, nothing runs twice, and in the end there is what is wanted.

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
    life::{Act, Life, life},
    noise::{FLAVOURS, Noise},
    truth::Truth,
};
use super::node::{Node, seconds};

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
    delivery: DeliveryCheck,
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
            delivery: DeliveryCheck::default(),
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
        let act = act.among(self.life.pods);
        match act {
            Act::Nothing => {}
            Act::Noise(pod, noise) => {
                self.eaten |= noise.eats();
                self.misled |= noise.misleads();
                self.stepped |= matches!(noise, Noise::Step(_));
                if let Some(time) = noise.make(&self.node, &self.uids[pod]) {
                    self.withheld = Some(now + time);
                }
            }
            Act::KillContainer(..)
            | Act::EndProcess(..)
            | Act::LoseTrack(..)
            | Act::KillSandbox(_)
            | Act::VanishSandbox(_) => self.end_something(act, now),
            Act::RestartAgent if self.agent_from.is_none() => {
                self.check_record();
                self.node.restart().await;
                self.delivery.forget();
            }
            Act::AgentDown(time) if self.agent_from.is_none() => {
                self.check_record();
                self.node.kill().await;
                self.delivery.forget();
                self.agent_from = Some(until(time));
            }
            Act::RestartAgent | Act::AgentDown(_) => {}
            Act::RestartRuntime if self.runtime_from.is_none() => self.node.sim.restart(),
            Act::RuntimeDown(time) if self.runtime_from.is_none() => {
                self.node.sim.set_down(true);
                self.runtime_from = Some(until(time));
            }
            Act::RestartRuntime | Act::RuntimeDown(_) => {}
            Act::Fault { .. } | Act::Hang { .. } | Act::Holes { .. } => self.inject(act, now),
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
            Act::EditImage(..)
            | Act::EditInit(_)
            | Act::EditLabel(_)
            | Act::EditNetwork(_)
            | Act::Remove(_)
            | Act::Add(_) => self.change(act),
        }
    }

    /// A container, its process or a sandbox ends, or the runtime loses track of it.
    fn end_something(&mut self, act: Act, now: Instant) {
        let until = |time: u64| now + Duration::from_millis(time);
        match act {
            Act::KillContainer(pod, which) => {
                if let Some(id) = self.node.sim.running(&self.uids[pod], &self.name(which)) {
                    self.node.sim.kill_container(&id, 9, "");
                }
            }
            Act::EndProcess(pod, which, lag) => {
                if let Some(id) = self.node.sim.running(&self.uids[pod], &self.name(which)) {
                    self.node.sim.exit_unnoticed(&id, None);
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
                    self.node.sim.remove_sandbox_externally(id);
                    self.vanished.insert(id.clone());
                }
            }
            _ => {}
        }
    }

    /// Calls of the runtime fail, hang, or list less than there is.
    fn inject(&mut self, act: Act, now: Instant) {
        let until = |time: u64| now + Duration::from_millis(time);
        match act {
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
                let holes = ListFault::partial(LISTS[list], share, seed);
                self.node.sim.inject_list(holes.times(times));
            }
            _ => {}
        }
    }

    /// Somebody edits, removes or adds a manifest.
    fn change(&mut self, act: Act) {
        match act {
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
            Act::Remove(pod) if std::mem::replace(&mut self.versions[pod].wanted, false) => {
                self.node.unwant(&format!("p{pod}"));
            }
            Act::Add(pod) if !std::mem::replace(&mut self.versions[pod].wanted, true) => {
                self.write(pod);
            }
            _ => {}
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
                    self.node.account()
                );
                *most = container.restart_count;
            }
        }
    }

    /// What the agent that runs now reported of each container was reported once.
    fn check_record(&mut self) {
        self.delivery.follow(&self.node);
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
