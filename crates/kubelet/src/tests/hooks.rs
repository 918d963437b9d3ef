//! Lifecycle hooks: postStart and preStop.

mod post_start;
mod pre_stop;

use std::sync::Arc;

use parking_lot::Mutex;
use rubelet_sim::Exec;

use super::node::Node;

/// The spec of a pod with one container `app` that has this `lifecycle`.
fn app_with(lifecycle: &str) -> String {
    format!("containers: [{{name: app, image: 'app:1', lifecycle: {{{lifecycle}}}}}]")
}

/// The behavior of commands by name; all others exit 0.
#[derive(Clone, Default)]
struct Commands(Arc<Mutex<Vec<(String, Exec)>>>);

impl Commands {
    fn of(node: &Node) -> Self {
        let commands = Self::default();
        let script = commands.clone();
        node.sim.on_exec(move |_, command| {
            let all = script.0.lock();
            let found = all.iter().rev().find(|(name, _)| *name == command[0]);
            found.map_or_else(Exec::default, |(_, exec)| exec.clone())
        });
        commands
    }

    fn set(&self, name: &str, exec: Exec) {
        let mut all = self.0.lock();
        all.push((name.to_owned(), exec));
    }
}

/// Whether this event, `REASON MESSAGE`, was raised for the pod `web`.
fn raised(node: &Node, event: &str) -> bool {
    node.events("web").iter().any(|raised| raised == event)
}
