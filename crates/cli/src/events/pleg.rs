//! `rubelet events pleg`: what PLEG reported to the tasks of pods.
//!
//! An event is reported before the pod's task has handled it. While events are followed, each one
//! is delayed until the sync is done, so that it is printed once and complete.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use rubelet_server::{Resource, clock};
use serde_json::Value;
use tokio::time::Instant;

use super::{ShownArgs, full_name, nothing_found};
use crate::{
    agent::Agent,
    failure::CommandError,
    print::Printer,
    target::{name_of, parse_pod},
    terminal::Terminal,
    watch::{self, Selection, Show},
};

/// Time that an event waits for its pod to be synchronised. Starting a container may take longer,
/// and some events cause no sync.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) async fn run(
    agent: &Agent,
    args: ShownArgs,
    terminal: &mut Terminal<'_>,
) -> Result<(), CommandError> {
    let namespace = args.namespace.namespace();
    let fields = match &args.pod {
        Some(pod) => {
            let name = full_name(agent, parse_pod(pod)?, namespace).await?;
            Some(format!("pod.name={name}"))
        }
        None => None,
    };
    let selection = Selection {
        resource: Resource::LifecycleEvents,
        namespace: namespace.map(str::to_owned),
        labels: None,
        fields,
    };
    let mut events = agent.list(&selection.list_url()).await?;
    // Their names are sequence numbers.
    events.items.sort_by(|a, b| name_of(a).cmp(name_of(b)));
    let mut printer = Printer::new(
        Resource::LifecycleEvents,
        args.output,
        namespace.is_none(),
        !args.no_headers,
    );
    if args.watch {
        let mut held = PendingEvents::new(printer);
        for event in &events.items {
            held.changed(event, terminal)?;
        }
        return watch::follow(agent, &selection, events, &mut held, terminal).await;
    }
    if events.items.is_empty() && !printer.prints_nothing_too() {
        nothing_found(namespace, terminal);
        return Ok(());
    }
    let all: Vec<&Value> = events.items.iter().collect();
    printer.list(&all, clock::now(), terminal)
}

/// Time and sequence number of an event: numbers restart with the agent.
type Key = (String, String);

fn key(event: &Value) -> Key {
    let time = event["time"].as_str().unwrap_or_default();
    (time.to_owned(), name_of(event).to_owned())
}

/// Prints events once their pods are synchronised.
struct PendingEvents {
    printer: Printer,
    waiting: BTreeMap<Key, (Instant, Value)>,
    /// Events that were printed although no sync followed.
    given_up: BTreeSet<Key>,
}

impl PendingEvents {
    fn new(printer: Printer) -> Self {
        Self {
            printer,
            waiting: BTreeMap::new(),
            given_up: BTreeSet::new(),
        }
    }

    fn print(&mut self, event: &Value, terminal: &mut Terminal<'_>) -> Result<(), CommandError> {
        self.printer.single(event, clock::now(), terminal)
    }

    /// Prints the waiting events that match, as they are.
    fn give_up(
        &mut self,
        chosen: impl Fn(&Key, Instant, &Value) -> bool,
        terminal: &mut Terminal<'_>,
    ) -> Result<(), CommandError> {
        let (out, kept) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|(key, (due, event))| chosen(key, *due, event));
        self.waiting = kept;
        let out: BTreeMap<Key, (Instant, Value)> = out;
        for (key, (_, event)) in out {
            self.print(&event, terminal)?;
            self.given_up.insert(key);
        }
        Ok(())
    }
}

impl Show for PendingEvents {
    fn changed(&mut self, event: &Value, terminal: &mut Terminal<'_>) -> Result<(), CommandError> {
        let key = key(event);
        if self.given_up.contains(&key) {
            return Ok(());
        }
        if event["toSyncSeconds"].is_null() {
            let due = Instant::now() + PATIENCE;
            let waits = self.waiting.entry(key);
            waits.or_insert((due, Value::Null)).1 = event.clone();
            return Ok(());
        }
        self.waiting.remove(&key);
        // An earlier event of the same task that is still pending will never be completed.
        let pod = &event["pod"]["uid"];
        let superseded =
            |other: &Key, _, waits: &Value| *other < key && waits["pod"]["uid"] == *pod;
        self.give_up(superseded, terminal)?;
        self.print(event, terminal)
    }

    fn gone(&mut self, event: &Value, terminal: &mut Terminal<'_>) -> Result<(), CommandError> {
        let key = key(event);
        self.give_up(|waits, _, _| *waits == key, terminal)?;
        self.given_up.remove(&key);
        Ok(())
    }

    fn due(&self) -> Option<Instant> {
        self.waiting.values().map(|(due, _)| *due).min()
    }

    fn show_due(&mut self, terminal: &mut Terminal<'_>) -> Result<(), CommandError> {
        let now = Instant::now();
        self.give_up(|_, due, _| due <= now, terminal)
    }

    fn end(&mut self, terminal: &mut Terminal<'_>) -> Result<(), CommandError> {
        self.give_up(|_, _, _| true, terminal)
    }
}

#[cfg(test)]
mod tests;
