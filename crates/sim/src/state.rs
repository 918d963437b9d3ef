//! The state of a model: its objects, its scripts and its record.

mod container;
mod events;
mod filter;
mod images;
mod node;
mod process;
mod sandbox;
mod stats;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

pub(crate) use container::Container;
use events::Events;
use images::Images;
use node::Node;
use rubelet_cri::{Code, CriErrorKind};
pub(crate) use sandbox::Sandbox;

use crate::{
    Entry, EntryKind,
    behavior::{ExecScript, Script},
    clock::Clock,
    fault::Faults,
};

pub(crate) struct SimState {
    pub(crate) clock: Clock,
    pub(crate) sandboxes: BTreeMap<String, Sandbox>,
    pub(crate) containers: BTreeMap<String, Container>,
    /// Reserved names, built from metadata as in runtimes, and the identifiers of their holders.
    names: BTreeMap<String, String>,
    /// Reserved names by identifier.
    names_by_id: BTreeMap<String, String>,
    /// Running containers that will exit by themselves, with the time.
    exits: BTreeSet<(Duration, String)>,
    /// How much later than the kernel the runtime notices exits.
    pub(crate) exit_lag: Duration,
    /// Whether the kernel reports exit codes.
    pub(crate) exit_codes: bool,
    /// Number of processes that were started.
    processes: u32,
    pub(crate) events: Events,
    /// How long a sandbox still exists after the event of its removal.
    pub(crate) removal_lag: Duration,
    pub(crate) images: Images,
    pub(crate) node: Node,
    pub(crate) scripts: Scripts,
    pub(crate) faults: Faults,
    pub(crate) latencies: BTreeMap<String, Duration>,
    pub(crate) latency: Duration,
    pub(crate) log: Vec<Entry>,
    /// Number of starts of containers by pod UID and name.
    starts: BTreeMap<(String, String), usize>,
    number: u64,
    ids_issued: u64,
}

#[derive(Default)]
pub(crate) struct Scripts {
    /// By the name in the container's metadata. Takes precedence over the image's.
    pub(crate) by_container: BTreeMap<String, Script>,
    /// By the image's full name.
    pub(crate) by_image: BTreeMap<String, Script>,
    pub(crate) exec: Option<ExecScript>,
}

/// An error of the runtime.
#[derive(Debug)]
pub(crate) struct RuntimeError {
    pub(crate) kind: CriErrorKind,
    pub(crate) message: String,
}

impl RuntimeError {
    /// The kind of nearly all of containerd's errors.
    pub(crate) fn unknown(message: impl Into<String>) -> Self {
        Self {
            kind: CriErrorKind::Other(Code::Unknown),
            message: message.into(),
        }
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self {
            kind: CriErrorKind::NotFound,
            message: message.into(),
        }
    }

    /// A command that exceeded its own timeout. The caller's deadline is filled in by the call.
    pub(crate) fn exec_timeout(limit: Duration) -> Self {
        Self {
            kind: CriErrorKind::DeadlineExceeded(Duration::ZERO),
            message: format!("timeout {limit:?} exceeded: context deadline exceeded"),
        }
    }

    /// The error of an RPC that the runtime does not have.
    pub(crate) fn unimplemented() -> Self {
        Self {
            kind: CriErrorKind::Unimplemented,
            message: "unknown method".to_owned(),
        }
    }

    pub(crate) fn unavailable(message: &str) -> Self {
        Self {
            kind: CriErrorKind::Unavailable,
            message: message.to_owned(),
        }
    }
}

impl SimState {
    pub(crate) fn new() -> Self {
        Self {
            clock: Clock::new(),
            sandboxes: BTreeMap::new(),
            containers: BTreeMap::new(),
            names: BTreeMap::new(),
            names_by_id: BTreeMap::new(),
            exits: BTreeSet::new(),
            exit_lag: Duration::ZERO,
            exit_codes: false,
            processes: 0,
            events: Events::default(),
            removal_lag: Duration::ZERO,
            images: Images::default(),
            node: Node::default(),
            scripts: Scripts::default(),
            faults: Faults::default(),
            latencies: BTreeMap::new(),
            latency: Duration::ZERO,
            log: Vec::new(),
            starts: BTreeMap::new(),
            number: 0,
            ids_issued: 0,
        }
    }

    pub(crate) fn record(&mut self, what: EntryKind) {
        self.record_at(self.clock.now(), what);
    }

    /// Records something that happened earlier and is noticed only now.
    pub(crate) fn record_at(&mut self, at: Duration, what: EntryKind) {
        self.log.push(Entry { at, what });
    }

    pub(crate) fn fresh_number(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    /// An identifier as long as real ones, which is unique in its first characters.
    pub(crate) fn fresh_id(&mut self) -> String {
        self.ids_issued += 1;
        format!("{:012x}{:052x}", self.ids_issued, 0)
    }

    pub(crate) fn latency_of(&self, call: &str) -> Duration {
        self.latencies.get(call).copied().unwrap_or(self.latency)
    }

    /// The boot number of the runtime, while it is up.
    pub(crate) fn boot(&self) -> Option<u64> {
        self.node.up.then_some(self.node.boots)
    }

    fn reserve(&mut self, what: &str, name: &str, id: &str) -> Result<(), RuntimeError> {
        if let Some(holder) = self.names.get(name) {
            return Err(RuntimeError::unknown(format!(
                "failed to reserve {what} name {name:?}: name {name:?} is reserved for {holder:?}"
            )));
        }
        self.names.insert(name.to_owned(), id.to_owned());
        self.names_by_id.insert(id.to_owned(), name.to_owned());
        Ok(())
    }

    fn release_name(&mut self, id: &str) {
        if let Some(name) = self.names_by_id.remove(id) {
            self.names.remove(&name);
        }
    }
}
