//! `enforceNodeAllocatable`: limits the cgroup of all pods, and those of the system and of Kubernetes
//! if they are named, at the start and then each minute, as others may have changed them.
//!
//! The limits, messages and what follows from a failure are decided in
//! [`rubelet_node_plan::node_allocatable`].

use std::{sync::Arc, time::Duration};

use rubelet_cgroup_plan::CgroupDriver;
use rubelet_node_plan::node_allocatable::CgroupEnforcement;
use rubelet_node_state::{
    events::{EventType, Recorder, Subject},
    runtime_state::RuntimeState,
};
use tokio::{
    sync::watch,
    task::spawn_blocking,
    time::{sleep, timeout},
};

/// Time between two rounds (kubelet: retries after a failure, and updates of the QoS tiers).
const PERIOD: Duration = Duration::from_secs(60);

/// Sets the limits.
pub trait NodeCgroups: Send + Sync + 'static {
    /// Limits each cgroup now. May block. `driver` is that of the runtime, if it reports one.
    fn enforce(&self, driver: Option<CgroupDriver>) -> Vec<CgroupEnforcement>;
}

/// The outcome of the first round.
#[derive(Debug, Clone, PartialEq, Eq)]
enum FirstRound {
    /// The runtime has not answered, or the round is not over.
    Pending,
    /// The node may have pods.
    Enforced,
    /// The agent must stop, with this message.
    Refused(String),
}

/// The task.
pub(crate) struct NodeAllocatable {
    pub(crate) cgroups: Arc<dyn NodeCgroups>,
    pub(crate) runtime_state: watch::Receiver<RuntimeState>,
    pub(crate) recorder: Recorder,
    pub(crate) node_name: Arc<str>,
}

/// What others may know of the task.
#[derive(Debug, Clone)]
pub(crate) struct FirstEnforcement(Option<watch::Receiver<FirstRound>>);

impl FirstEnforcement {
    /// Of a node that limits nothing.
    pub(crate) fn none() -> Self {
        Self(None)
    }

    /// Waits until the first round has succeeded, but not longer than `limit`.
    ///
    /// # Errors
    /// The message with which the agent must stop.
    pub(crate) async fn wait(&self, limit: Duration) -> Result<(), String> {
        let Some(mut first) = self.0.clone() else {
            return Ok(());
        };
        // Also after a timeout: pods wait for the runtime, and `refused` follows.
        let over = timeout(limit, first.wait_for(|first| *first != FirstRound::Pending)).await;
        match over.map(|first| first.map(|first| first.clone())) {
            Ok(Ok(FirstRound::Refused(message))) => Err(message),
            _ => Ok(()),
        }
    }

    /// Resolves with a message when the agent must stop.
    pub(crate) async fn refused(&self) -> String {
        if let Some(mut first) = self.0.clone() {
            let refused = first.wait_for(|first| matches!(first, FirstRound::Refused(_)));
            if let Ok(first) = refused.await
                && let FirstRound::Refused(message) = &*first
            {
                return message.clone();
            }
        }
        std::future::pending().await
    }
}

impl NodeAllocatable {
    /// The task, and what others may know of it.
    pub(crate) fn start(self) -> (impl Future<Output = ()> + Send, FirstEnforcement) {
        let (sender, first) = watch::channel(FirstRound::Pending);
        (self.run(sender), FirstEnforcement(Some(first)))
    }

    /// Enforces and waits, for ever.
    async fn run(mut self, first: watch::Sender<FirstRound>) {
        // The names of the cgroups depend on the driver, which the runtime reports.
        if self
            .runtime_state
            .wait_for(|state| state.answered)
            .await
            .is_err()
        {
            // The agent stops.
            return std::future::pending().await;
        }
        let mut before = Vec::new();
        loop {
            let driver = self.runtime_state.borrow().cgroup_driver;
            let cgroups = Arc::clone(&self.cgroups);
            let Ok(found) = spawn_blocking(move || cgroups.enforce(driver)).await else {
                // The agent stops.
                return std::future::pending().await;
            };
            // A failure each time, which makes the event's count; a success once.
            for one in found
                .iter()
                .filter(|one| one.result.is_err() || !before.contains(*one))
            {
                self.record(one);
            }
            let refusal = found.iter().find_map(CgroupEnforcement::refusal);
            first.send_if_modified(|first| {
                let is_first = *first == FirstRound::Pending;
                if is_first {
                    *first = match refusal {
                        Some(message) => FirstRound::Refused(message),
                        None => FirstRound::Enforced,
                    };
                }
                is_first
            });
            before = found;
            sleep(PERIOD).await;
        }
    }

    fn record(&self, one: &CgroupEnforcement) {
        let event = one.event();
        let kind = match event.warning {
            true => EventType::Warning,
            false => EventType::Normal,
        };
        let subject = Subject::Node((&*self.node_name).into());
        self.recorder
            .record(subject, kind, event.reason, &event.message);
    }
}
