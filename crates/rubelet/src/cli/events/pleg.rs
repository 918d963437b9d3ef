//! `rubelet events pleg`: what PLEG told the tasks of pods.
//!
//! An event is known before the pod's task has worked on it. While events are followed, each is
//! held back until that is over, so that it is shown once and complete.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use rubelet_server::{Resource, clock};
use serde_json::Value;
use tokio::time::Instant;

use super::{ShownArgs, full_name, nothing_found};
use crate::cli::{
    agent::Agent,
    failure::Failure,
    print::Printer,
    target::{name_of, parse_pod},
    terminal::Terminal,
    watch::{self, Selection, Show},
};

/// So long an event waits for its pod to be synchronised. Starting a container may take longer, and
/// some events are followed by no work at all.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) async fn run(
    agent: &Agent,
    args: ShownArgs,
    terminal: &mut Terminal<'_>,
) -> Result<(), Failure> {
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
    // Their names are their numbers.
    events.items.sort_by(|a, b| name_of(a).cmp(name_of(b)));
    let mut printer = Printer::new(
        Resource::LifecycleEvents,
        args.output,
        namespace.is_none(),
        !args.no_headers,
    );
    if args.watch {
        let mut held = Held::new(printer);
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

/// When it happened, and its number: numbers begin anew when the agent does.
type Key = (String, String);

fn key(event: &Value) -> Key {
    let time = event["time"].as_str().unwrap_or_default();
    (time.to_owned(), name_of(event).to_owned())
}

/// Prints events once their pods were synchronised.
struct Held {
    printer: Printer,
    waiting: BTreeMap<Key, (Instant, Value)>,
    /// Events that were printed although nothing had come of them.
    given_up: BTreeSet<Key>,
}

impl Held {
    fn new(printer: Printer) -> Self {
        Self {
            printer,
            waiting: BTreeMap::new(),
            given_up: BTreeSet::new(),
        }
    }

    fn print(&mut self, event: &Value, terminal: &mut Terminal<'_>) -> Result<(), Failure> {
        self.printer.single(event, clock::now(), terminal)
    }

    /// Prints those that wait and are chosen, as they are.
    fn give_up(
        &mut self,
        chosen: impl Fn(&Key, Instant, &Value) -> bool,
        terminal: &mut Terminal<'_>,
    ) -> Result<(), Failure> {
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

impl Show for Held {
    fn changed(&mut self, event: &Value, terminal: &mut Terminal<'_>) -> Result<(), Failure> {
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
        // What was told to the same task before and is still open stays open.
        let pod = &event["pod"]["uid"];
        let superseded =
            |other: &Key, _, waits: &Value| *other < key && waits["pod"]["uid"] == *pod;
        self.give_up(superseded, terminal)?;
        self.print(event, terminal)
    }

    fn gone(&mut self, event: &Value, terminal: &mut Terminal<'_>) -> Result<(), Failure> {
        let key = key(event);
        self.give_up(|waits, _, _| *waits == key, terminal)?;
        self.given_up.remove(&key);
        Ok(())
    }

    fn due(&self) -> Option<Instant> {
        self.waiting.values().map(|(due, _)| *due).min()
    }

    fn show_due(&mut self, terminal: &mut Terminal<'_>) -> Result<(), Failure> {
        let now = Instant::now();
        self.give_up(|_, due, _| due <= now, terminal)
    }

    fn end(&mut self, terminal: &mut Terminal<'_>) -> Result<(), Failure> {
        self.give_up(|_, _, _| true, terminal)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(number: u32, pod: &str, sync: Option<f64>) -> Value {
        json!({
            "metadata": { "name": format!("{number:012}"), "namespace": "default" },
            "time": format!("2026-03-01T12:00:{number:02}.000000Z"),
            "pod": { "name": pod, "uid": pod },
            "container": "main",
            "id": "c0ffee",
            "type": "ContainerDied",
            "cause": "event STOPPED",
            "afterChangeSeconds": 0.004,
            "toSyncSeconds": sync,
        })
    }

    /// What a reader sees of these calls: number of the second, pod and sync latency.
    fn shown(acts: impl Fn(&mut Held, &mut Terminal<'_>)) -> Vec<String> {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut terminal = Terminal::new(&mut out, &mut err, false);
        let mut held = Held::new(Printer::new(Resource::LifecycleEvents, None, false, false));
        acts(&mut held, &mut terminal);
        let text = String::from_utf8(out).unwrap();
        let row = |line: &str| {
            let cells: Vec<&str> = line.split_whitespace().collect();
            format!(
                "{} {} {}",
                &cells[0][17..19],
                cells[1],
                cells[cells.len() - 1]
            )
        };
        text.lines().map(row).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn each_event_is_printed_once_and_complete() {
        let rows = shown(|held, terminal| {
            held.changed(&event(1, "web", None), terminal).unwrap();
            held.changed(&event(2, "db", None), terminal).unwrap();
            held.changed(&event(2, "db", Some(0.5)), terminal).unwrap();
            held.changed(&event(1, "web", Some(0.002)), terminal)
                .unwrap();
            held.end(terminal).unwrap();
        });
        assert_eq!(rows, ["02 db 500ms", "01 web 2.0ms"]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_that_a_later_one_superseded_stays_open() {
        let rows = shown(|held, terminal| {
            held.changed(&event(1, "web", None), terminal).unwrap();
            held.changed(&event(2, "db", None), terminal).unwrap();
            held.changed(&event(3, "web", Some(0.002)), terminal)
                .unwrap();
            // Too late: it was printed.
            held.changed(&event(1, "web", Some(0.5)), terminal).unwrap();
            held.end(terminal).unwrap();
        });
        assert_eq!(rows, ["01 web -", "03 web 2.0ms", "02 db -"]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_waits_for_some_seconds_only_or_until_it_is_gone() {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut terminal = Terminal::new(&mut out, &mut err, false);
        let printer = Printer::new(Resource::LifecycleEvents, None, false, false);
        let mut held = Held::new(printer);
        held.changed(&event(1, "web", None), &mut terminal).unwrap();
        held.changed(&event(2, "db", None), &mut terminal).unwrap();
        assert_eq!(held.due(), Some(Instant::now() + PATIENCE));
        held.gone(&event(2, "db", None), &mut terminal).unwrap();
        held.show_due(&mut terminal).unwrap();
        tokio::time::advance(PATIENCE).await;
        held.show_due(&mut terminal).unwrap();
        assert_eq!(held.due(), None);
        let text = String::from_utf8(out).unwrap();
        let pods: Vec<_> = text
            .split_whitespace()
            .filter(|w| ["web", "db"].contains(w))
            .collect();
        assert_eq!(pods, ["db", "web"]);
    }
}
