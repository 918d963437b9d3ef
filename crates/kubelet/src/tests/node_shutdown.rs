//! Shutdowns of the machine, announced by a model of logind.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use parking_lot::Mutex;
use rubelet_api::status::Phase;
use rubelet_node_plan::node_shutdown::{ShutdownGroup, ShutdownPolicy};
use rubelet_node_state::shutdown_state::ShutdownState;
use rubelet_sim::Behavior;
use tokio::{sync::watch, time::sleep};

use super::{
    metrics::value,
    node::{Node, seconds},
};
use crate::node_shutdown::{
    DelayGuard, ShutdownService, ShutdownServiceError, ShutdownSession, ShutdownSettings,
};

const APP: &str = "containers: [{name: app, image: 'app:1'}]";
const CRITICAL: &str = "priorityClassName: system-node-critical, priority: 2000001000";

/// What connections follow.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Announced {
    shuts_down: bool,
    /// Number of restarts of the bus, each of which ends all connections.
    restarts: u32,
}

/// A machine with logind.
struct Machine {
    announced: watch::Sender<Announced>,
    /// Locks that are held.
    locks: Arc<AtomicUsize>,
    /// Whether logind can be reached.
    is_reachable: Mutex<bool>,
}

impl Machine {
    fn locks(&self) -> usize {
        self.locks.load(Ordering::Relaxed)
    }

    fn announce(&self, shuts_down: bool) {
        self.announced
            .send_modify(|announced| announced.shuts_down = shuts_down);
    }

    fn restart_bus(&self) {
        self.announced
            .send_modify(|announced| announced.restarts += 1);
    }
}

/// logind of the machine.
struct Logind(Arc<Machine>);

#[async_trait]
impl ShutdownService for Logind {
    async fn connect(&self) -> Result<Box<dyn ShutdownSession>, ShutdownServiceError> {
        if !*self.0.is_reachable.lock() {
            return Err(ShutdownServiceError("cannot reach D-Bus".to_owned()));
        }
        let followed = self.0.announced.subscribe();
        let restarts = followed.borrow().restarts;
        Ok(Box::new(Session {
            machine: Arc::clone(&self.0),
            followed,
            restarts,
        }))
    }
}

struct Session {
    machine: Arc<Machine>,
    followed: watch::Receiver<Announced>,
    restarts: u32,
}

/// A lock.
struct Lock(Arc<AtomicUsize>);

impl Drop for Lock {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[async_trait]
impl ShutdownSession for Session {
    async fn is_shutting_down(&mut self) -> Result<bool, ShutdownServiceError> {
        Ok(self.machine.announced.borrow().shuts_down)
    }

    async fn delay(
        &mut self,
        period: Duration,
    ) -> Result<(DelayGuard, Duration), ShutdownServiceError> {
        self.machine.locks.fetch_add(1, Ordering::Relaxed);
        Ok((Box::new(Lock(Arc::clone(&self.machine.locks))), period))
    }

    async fn changed(&mut self) -> Result<(), ShutdownServiceError> {
        let changed = self.followed.changed().await;
        let is_lost = self.followed.borrow().restarts != self.restarts;
        match (changed, is_lost) {
            (Ok(()), false) => Ok(()),
            _ => Err(ShutdownServiceError("the connection is lost".to_owned())),
        }
    }
}

/// A node that waits for pods when its machine shuts down.
struct ShuttingDown {
    node: Node,
    machine: Arc<Machine>,
    /// Directory of the file with the times of the last shutdown.
    _directory: tempfile::TempDir,
}

impl ShuttingDown {
    /// 30 s for pods, of which 10 s are for critical ones.
    async fn new() -> Self {
        let policy = ShutdownPolicy::of_periods(seconds(30), seconds(10));
        Self::with(policy.expect("30 s are more than 10 s")).await
    }

    async fn with(policy: ShutdownPolicy) -> Self {
        let mut node = Node::new();
        node.kill().await;
        let machine = Arc::new(Machine {
            announced: watch::Sender::default(),
            locks: Arc::default(),
            is_reachable: Mutex::new(true),
        });
        let directory = tempfile::tempdir().expect("a directory for temporary files");
        node.shutdown = Some(ShutdownSettings {
            policy,
            service: Arc::new(Logind(Arc::clone(&machine))),
            record: directory.path().join("graceful_node_shutdown_state"),
        });
        node.start();
        let on = Self {
            node,
            machine,
            _directory: directory,
        };
        on.until_delayed().await;
        on
    }

    async fn until_delayed(&self) {
        let machine = Arc::clone(&self.machine);
        let is_delayed = move |_: &Node| machine.locks() == 1;
        self.node.until("a shutdown is delayed", is_delayed).await;
    }

    async fn until_released(&self) {
        let machine = Arc::clone(&self.machine);
        let is_released = move |_: &Node| machine.locks() == 0;
        self.node
            .until("the machine may shut down", is_released)
            .await;
    }

    /// Runs a pod of the API server.
    async fn run(&self, name: &str, spec: &str) -> String {
        let uid = self.node.apply(name, &format!("{spec}, {APP}"));
        self.node.change_in_api(name, |_| {});
        let runs = |node: &Node| node.is_running(name);
        self.node.until("it runs", runs).await;
        uid
    }

    async fn until_phase(&self, name: &str, phase: Phase) {
        let has_it = |node: &Node| node.phase(name) == Some(phase);
        self.node.until("it has this phase", has_it).await;
    }

    fn state(&self) -> ShutdownState {
        *self.node.agent().shutdown.borrow()
    }

    /// Messages of the events about the node, with their counts.
    fn node_events(&self) -> Vec<String> {
        let events = self.node.recorder().board().list();
        let of_reason = events
            .iter()
            .filter(|(_, _, event)| &*event.reason == "Shutdown");
        of_reason
            .map(|(_, _, event)| event.message.to_string())
            .collect()
    }

    fn ended_at(&self, uid: &str) -> Duration {
        self.node.exit_times(uid, "app")[0]
    }

    fn told_at(&self, uid: &str) -> Duration {
        self.node.term_times(uid, "app")[0]
    }
}

#[tokio::test(start_paused = true)]
async fn pods_end_group_by_group_before_the_machine_does() {
    let on = ShuttingDown::new().await;
    let stubborn = Behavior::runs().ignoring_term();
    on.node.sim.on_image("app:1", stubborn);
    let web = on.run("web", "terminationGracePeriodSeconds: 300").await;
    let quick = on.run("quick", "terminationGracePeriodSeconds: 5").await;
    let dns = on.run("dns", CRITICAL).await;
    assert_eq!(on.machine.locks(), 1);
    let begin = on.node.now().as_second();
    on.machine.announce(true);
    on.until_released().await;
    let told = on.told_at(&web);
    assert_eq!(on.ended_at(&web) - told, seconds(20), "what its group has");
    assert_eq!(on.ended_at(&quick) - on.told_at(&quick), seconds(5));
    assert!(on.told_at(&dns) >= told + seconds(20));
    assert_eq!(on.ended_at(&dns) - on.told_at(&dns), seconds(10));
    assert_eq!(on.state(), ShutdownState::ShuttingDown);
    for name in ["web", "quick", "dns"] {
        on.until_phase(name, Phase::Failed).await;
        let status = on.node.pod(name).unwrap().status.clone();
        assert_eq!(&*status.reason, "Terminated");
        let message = "Pod was terminated in response to imminent node shutdown.";
        assert_eq!(&*status.message, message);
        let condition = status.condition("DisruptionTarget").unwrap();
        assert!(condition.status.is_true());
        assert_eq!(&*condition.reason, "TerminationByKubelet");
        assert_eq!(&*condition.message, message);
    }
    assert_eq!(
        on.node_events(),
        ["Shutdown manager detected shutdown event"]
    );
    let time = |which: &str| {
        let name = format!("kubelet_graceful_shutdown_{which}_time_seconds");
        let begin = f64::from(i32::try_from(begin).unwrap());
        value(&on.node, &name) - begin
    };
    assert!((0.0..=1.0).contains(&time("start")), "{}", time("start"));
    assert!((30.0..=32.0).contains(&time("end")), "{}", time("end"));
}

#[tokio::test(start_paused = true)]
async fn a_group_that_has_ended_is_not_waited_for() {
    let on = ShuttingDown::new().await;
    let web = on.run("web", "terminationGracePeriodSeconds: 300").await;
    let dns = on.run("dns", CRITICAL).await;
    let began = on.node.uptime();
    on.machine.announce(true);
    on.until_released().await;
    assert!(on.node.uptime() - began < seconds(10));
    assert!(on.ended_at(&web) <= on.told_at(&dns));
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_group_without_time_are_told_and_not_waited_for() {
    let groups = [(0, 0), (1000, 10)].map(|(priority, period)| ShutdownGroup {
        priority,
        period: seconds(period),
    });
    let policy = ShutdownPolicy::of_priorities(groups.to_vec()).unwrap();
    let on = ShuttingDown::with(policy).await;
    let stubborn = Behavior::runs().ignoring_term();
    on.node.sim.on_image("app:1", stubborn);
    let web = on.run("web", "priority: 1").await;
    let dns = on.run("dns", "priority: 5000").await;
    on.machine.announce(true);
    on.until_released().await;
    assert!(on.told_at(&dns) < on.told_at(&web) + seconds(2));
    assert_eq!(on.ended_at(&dns) - on.told_at(&dns), seconds(10));
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_comes_meanwhile_is_rejected() {
    let on = ShuttingDown::new().await;
    on.machine.announce(true);
    on.until_released().await;
    on.node.apply("late", APP);
    on.node.change_in_api("late", |_| {});
    on.until_phase("late", Phase::Failed).await;
    let status = on.node.pod("late").unwrap().status.clone();
    assert_eq!(&*status.reason, "NodeShutdown");
    assert_eq!(
        &*status.message,
        "Pod was rejected: Pod was rejected as the node is shutting down."
    );
    assert_eq!(
        on.node.events("late"),
        ["NodeShutdown Pod was rejected as the node is shutting down."]
    );
    assert_eq!(on.node.calls("RunPodSandbox"), 0);
}

#[tokio::test(start_paused = true)]
async fn pods_of_manifests_run_again_after_the_boot_and_others_do_not() {
    let mut on = ShuttingDown::new().await;
    on.run("web", "restartPolicy: Always").await;
    let uid = on.node.apply("static", APP);
    on.node
        .until("it runs", |node| node.is_running("static"))
        .await;
    on.machine.announce(true);
    on.until_released().await;
    on.until_phase("static", Phase::Failed).await;
    // An agent that starts meanwhile lets them rest.
    on.node.restart().await;
    sleep(seconds(600)).await;
    assert_eq!(on.node.phase("static"), Some(Phase::Failed));
    for reachable in [true, false] {
        on.node.kill().await;
        on.machine.announce(false);
        *on.machine.is_reachable.lock() = reachable;
        on.node.start();
        on.node
            .until("it runs again", |node| node.is_running("static"))
            .await;
        assert_eq!(on.node.phase("web"), Some(Phase::Failed));
        let status = on.node.pod("static").unwrap().status.clone();
        assert_eq!((&*status.reason, &*status.message), ("", ""));
        assert!(status.condition("DisruptionTarget").is_none());
        assert!(
            value(&on.node, "kubelet_graceful_shutdown_end_time_seconds") > 0.0,
            "kept across the boot"
        );
        if reachable {
            on.until_delayed().await;
            on.machine.announce(true);
            on.until_released().await;
            on.until_phase("static", Phase::Failed).await;
        }
    }
    on.node.assert_never_twice(&uid);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_shutdown_restores_the_node() {
    let on = ShuttingDown::new().await;
    let stubborn = Behavior::runs().ignoring_term();
    on.node.sim.on_image("app:1", stubborn);
    let uid = on.node.apply(
        "static",
        &format!("terminationGracePeriodSeconds: 300, {APP}"),
    );
    on.node
        .until("it runs", |node| node.is_running("static"))
        .await;
    let web = on.run("web", "terminationGracePeriodSeconds: 300").await;
    let dns = on.run("dns", CRITICAL).await;
    on.machine.announce(true);
    on.node
        .until("it is told", |node| {
            !node.term_times(&web, "app").is_empty()
        })
        .await;
    on.node.apply("late", APP);
    on.until_phase("late", Phase::Failed).await;
    on.machine.announce(false);
    on.until_phase("web", Phase::Failed).await;
    on.until_delayed().await;
    for name in ["static", "late"] {
        on.node.until("it runs", |node| node.is_running(name)).await;
    }
    sleep(seconds(600)).await;
    assert!(on.node.is_running("dns"));
    assert!(on.node.term_times(&dns, "app").is_empty());
    assert_eq!(on.machine.locks(), 1);
    assert_eq!(on.state(), ShutdownState::Running);
    assert_eq!(on.node_events().len(), 2, "{:?}", on.node_events());
    on.node.assert_never_twice(&uid);
    on.run("next", "priority: 1").await;
}

#[tokio::test(start_paused = true)]
async fn a_restart_of_the_bus_loses_neither_the_lock_nor_a_shutdown() {
    let on = ShuttingDown::new().await;
    let web = on.run("web", "priority: 1").await;
    on.machine.restart_bus();
    sleep(seconds(5)).await;
    assert_eq!(on.machine.locks(), 1);
    *on.machine.is_reachable.lock() = false;
    on.machine.restart_bus();
    sleep(seconds(600)).await;
    assert_eq!(on.machine.locks(), 0);
    assert!(on.node.is_running("web"));
    on.machine.announce(true);
    *on.machine.is_reachable.lock() = true;
    on.until_phase("web", Phase::Failed).await;
    assert_eq!(on.node.term_times(&web, "app").len(), 1);
}
