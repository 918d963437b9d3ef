//! Lifecycle hooks: what runs beside the start and the end of a container.

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

/// Commands do what is put in here by name; others exit 0.
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

/// The event that is raised when a hook of that reason fails.
fn raised(node: &Node, event: &str) -> bool {
    node.events("web").iter().any(|raised| raised == event)
}
