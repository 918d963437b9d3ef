//! The timeline of a story: collected from the oracle of the simulated runtime, from the statuses
//! that the agent publishes, and from events.

mod published;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use rubelet_api::probe::ProbeHandler;
use rubelet_base::{ContainerId, PodUid};
use rubelet_node_state::{
    events::Recorder,
    pod_board::{PodBoard, PodEntry},
};
use rubelet_pod_plan::{ProbeKind, ProbeResult};
use rubelet_probes::ProberHandle;
use rubelet_sim::{Entry, EntryKind, Sim};
use tokio::time::Instant;

use super::words::Names;
use crate::{agent::Agent, tests::node::Node};

const PROBES: [ProbeKind; 3] = [
    ProbeKind::Startup,
    ProbeKind::Liveness,
    ProbeKind::Readiness,
];

#[derive(Clone)]
struct Line {
    at: Duration,
    /// Number of script commands before it.
    act: usize,
    /// The position of the pod in the story; 0 if the line concerns no pod.
    pod: usize,
    text: String,
}

/// The lines so far, and the positions up to which each input was read.
pub(super) struct Timeline {
    sim: Sim,
    recorder: Recorder,
    agent: Option<(Arc<PodBoard>, ProberHandle)>,
    began: Instant,
    began_at: Timestamp,
    lines: Vec<Line>,
    names: Names,
    /// Labels of the story's pods and their positions in the story, by UID.
    labels: BTreeMap<String, (usize, String)>,
    /// Lines about pods name them.
    several: bool,
    /// Number of script commands so far.
    act: usize,
    /// The UIDs that sandboxes and containers belong to.
    owners: BTreeMap<String, String>,
    oracle_mark: usize,
    event_mark: u64,
    /// The last logged entry of each pod, and the pods on the agent's board.
    shown: BTreeMap<PodUid, Arc<PodEntry>>,
    on_board: BTreeSet<PodUid>,
    outcomes: BTreeMap<(ContainerId, ProbeKind), ProbeResult>,
    /// How many runs of a probe were too late to count.
    late: BTreeMap<(PodUid, Box<str>, ProbeKind), u64>,
}

impl Timeline {
    pub(super) fn new(node: &Node, several: bool) -> Self {
        Self {
            sim: node.sim.clone(),
            recorder: node.recorder().clone(),
            agent: None,
            began: Instant::now(),
            began_at: node.now(),
            lines: Vec::new(),
            names: Names::default(),
            labels: BTreeMap::new(),
            several,
            act: 0,
            owners: BTreeMap::new(),
            oracle_mark: 0,
            event_mark: 0,
            shown: BTreeMap::new(),
            on_board: BTreeSet::new(),
            outcomes: BTreeMap::new(),
            late: BTreeMap::new(),
        }
    }

    pub(super) fn name_pod(&mut self, uid: &str, label: &str) {
        self.names.learn_uid(uid);
        let place = self.labels.len() + 1;
        self.labels
            .entry(uid.to_owned())
            .or_insert((place, label.to_owned()));
    }

    pub(super) fn set_agent(&mut self, agent: Option<&Agent>) {
        self.catch_up();
        self.agent = agent.map(|agent| (Arc::clone(&agent.pods), agent.prober().clone()));
        self.on_board.clear();
    }

    pub(super) fn name_of<'a>(&'a self, id: &'a str) -> &'a str {
        self.names.of(id)
    }

    pub(super) fn owner_of(&self, id: &str) -> Option<String> {
        self.owners.get(id).cloned()
    }

    /// Whether the command is a probe of the container.
    pub(super) fn is_probe(&self, id: &str, command: &[String]) -> bool {
        let entry = self.owners.get(id).and_then(|uid| self.shown.get(&**uid));
        let containers = entry
            .into_iter()
            .flat_map(|entry| entry.pod.spec.all_containers());
        let mut probes = containers.flat_map(|one| PROBES.iter().filter_map(|kind| kind.of(one)));
        probes.any(|probe| match &probe.handler {
            ProbeHandler::Exec(probe) => probe
                .iter()
                .map(|word| &**word)
                .eq(command.iter().map(|word| &**word)),
            _ => false,
        })
    }

    /// All lines, by time. At one time, lines are grouped by pod.
    pub(super) fn lines(&self) -> Vec<(Duration, String)> {
        let mut lines = self.lines.clone();
        lines.sort_by_key(|line| (line.at, line.act, line.pod));
        lines.into_iter().map(|line| (line.at, line.text)).collect()
    }

    /// Logs a command of the script.
    pub(super) fn act(&mut self, text: &str) {
        self.act += 1;
        self.put(None, "then", text);
    }

    /// Adds a line with the current time.
    pub(super) fn put(&mut self, uid: Option<&str>, kind: &str, text: &str) {
        self.put_at(self.began.elapsed(), uid, kind, text);
    }

    fn put_at(&mut self, at: Duration, uid: Option<&str>, kind: &str, text: &str) {
        let label = uid.and_then(|uid| self.labels.get(uid));
        let pod = label.map_or(0, |(place, _)| *place);
        let label = label.filter(|_| self.several);
        let label = label.map_or_else(String::new, |(_, label)| format!("[{label}] "));
        let text = self.names.plain(text, self.began_at);
        let (text, act) = (format!("{kind:<5} {label}{text}"), self.act);
        self.lines.push(Line { at, act, pod, text });
    }

    /// Adds lines for everything that happened since the last call.
    pub(super) fn catch_up(&mut self) {
        let entries = self.sim.entries_since(self.oracle_mark);
        self.oracle_mark += entries.len();
        for entry in entries {
            self.fact(&entry);
        }
        let events = self.new_events();
        // Events of probes precede what the agent does about them; other events follow it.
        let (probes, steps): (Vec<_>, Vec<_>) = events
            .into_iter()
            .partition(|event| published::is_of_probe(event));
        for event in probes {
            self.event(&event);
        }
        if let Some((board, prober)) = self.agent.clone() {
            self.pods(&board, &prober);
        }
        for event in steps {
            self.event(&event);
        }
    }

    fn fact(&mut self, entry: &Entry) {
        self.names.learn(&entry.what);
        let (uid, kind, text) = match &entry.what {
            EntryKind::SandboxReady { id, pod_uid, .. } => {
                self.owners.insert(id.clone(), pod_uid.clone());
                return;
            }
            EntryKind::ContainerCreated(of) => {
                self.owners.insert(of.id.clone(), of.pod_uid.clone());
                return;
            }
            EntryKind::ContainerStarted(of) if self.agent.is_none() => {
                (&of.pod_uid, "proc", format!("{} starts", of.id))
            }
            EntryKind::SigtermSent(of) => (&of.pod_uid, "proc", format!("{} gets SIGTERM", of.id)),
            EntryKind::ContainerExited {
                instance: of,
                code,
                reason,
            } => {
                let text = format!("{} exits {code} ({reason})", of.id);
                (&of.pod_uid, "proc", text)
            }
            EntryKind::CallBegan {
                call: "PullImage",
                subject,
                ..
            } => {
                let image = subject.image.as_deref().unwrap_or_default();
                let text = format!("PullImage {image}");
                let uid = self.user_of(image);
                return self.put_at(entry.at, uid.as_deref(), "call", &text);
            }
            _ => return,
        };
        self.put_at(entry.at, Some(uid), kind, &text);
    }

    /// The pod that wants this image.
    fn user_of(&self, image: &str) -> Option<String> {
        let mut shown = self.shown.iter();
        let user = shown.find(|(_, entry)| {
            let mut containers = entry.pod.spec.all_containers();
            containers.any(|one| *one.image == *image)
        });
        user.map(|(uid, _)| uid.as_str().to_owned())
    }
}
