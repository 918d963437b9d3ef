//! Queries of PLEG's observations, lifecycle events and metrics.

use std::time::Duration;

use rubelet_base::PodName;
use rubelet_node_state::events::Subject;
use rubelet_pleg::{LifecycleEvent, LifecycleKind};
use rubelet_pod_plan::ObservedPod;

use crate::tests::node::{Node, seconds};

/// Longest delay from an event to the pod's task. The simulated runtime responds at once, so any
/// delay is due to a timer.
pub(super) const DELIVERY_LIMIT: Duration = Duration::from_millis(50);

pub(super) const APP: &str = "containers: [{name: app, image: 'app:1'}]";
pub(super) const ONCE: &str = "restartPolicy: Never, containers: [{name: app, image: 'app:1'}]";

pub(super) fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

impl Node {
    /// The lifecycle events of this agent that are still kept, oldest first.
    pub(in crate::tests) fn lifecycle(&self) -> Vec<LifecycleEvent> {
        let rows = self.agent().pleg().record().board().list();
        rows.into_iter()
            .map(|(_, _, event)| (*event).clone())
            .collect()
    }

    /// The lifecycle events of one container or sandbox, with their times since the simulation
    /// started.
    pub(super) fn lifecycle_of(&self, id: &str) -> Vec<(LifecycleKind, Duration)> {
        let (now, uptime) = (self.now(), self.uptime());
        let events = self.lifecycle().into_iter();
        let about = events.filter(|event| &*event.id == id);
        about
            .map(|event| {
                let age = Duration::try_from(now.duration_since(event.at)).unwrap_or_default();
                (event.kind, uptime.saturating_sub(age))
            })
            .collect()
    }

    /// Number of its lifecycle events of this kind.
    pub(super) fn lifecycle_count(&self, id: &str, kind: LifecycleKind) -> usize {
        let events = self.lifecycle_of(id).into_iter();
        events.filter(|(what, _)| *what == kind).count()
    }

    /// Waits until the exit of a container is reported; returns the time that this took.
    pub(super) async fn until_death_of(&self, id: &str) -> Duration {
        let died = |node: &Self| node.lifecycle_count(id, LifecycleKind::Died) > 0;
        self.within(seconds(400), "its exit is reported", died)
            .await
    }

    /// Number of events with this reason on the node.
    pub(super) fn node_events(&self, reason: &str) -> u32 {
        let rows = self.recorder().board().list().into_iter();
        let events = rows.map(|(_, _, event)| event);
        let about = events
            .filter(|event| matches!(event.subject, Subject::Node(_)) && &*event.reason == reason);
        about.map(|event| event.count).sum()
    }

    /// The current observation of a pod.
    pub(in crate::tests) fn known(&self, name: &str) -> ObservedPod {
        let uid = self.uid(name).as_str().into();
        let pod = PodName::new("default", &format!("{name}-n"));
        let seen = self.agent().pleg().observe(&uid, &pod);
        let seen = seen.borrow();
        (*seen.pod).clone()
    }

    /// Kills the only container of a pod; returns its identifier.
    pub(super) fn kill_app(&self, uid: &str, code: i32) -> String {
        let id = self.sim.running(uid, "app").expect("it runs");
        self.sim.kill_container(&id, code, "");
        id
    }

    /// The value of a line of the metrics, such as `name{label="value"}`; 0 where it is missing.
    pub(super) fn metric(&self, line: &str) -> f64 {
        let text = self.metrics.render();
        let found = text.lines().find_map(|found| found.strip_prefix(line));
        found.map_or(0.0, |value| value.trim().parse().expect("a number"))
    }

    /// Number of inspections so far, whatever their cause.
    pub(super) fn inspections(&self) -> f64 {
        let text = self.metrics.render();
        let lines = text.lines();
        let counts = lines.filter_map(|line| {
            let rest = line.strip_prefix("rubelet_pleg_inspections_total{")?;
            rest.split_once("} ")?.1.parse::<f64>().ok()
        });
        counts.sum()
    }
}
