//! Follows changes, also across restarts of the agent: when the stream ends, the objects are listed
//! again and what differs from the last printed state is printed. A deletion that happened while
//! the agent was down is not reported.

use std::{collections::BTreeMap, time::Duration};

use anyhow::anyhow;
use http::StatusCode;
use rubelet_base::Backoff;
use rubelet_server::{Resource, clock};
use serde_json::Value;
use tokio::time::{Instant, sleep_until};

use super::{
    agent::{Agent, CallError, Objects, ResponseStream, collection},
    failure::CommandError,
    print::Printer,
    target::{name_of, namespace_of},
    terminal::Terminal,
    url::Url,
};

/// The objects that a command shows.
#[derive(Debug, Clone)]
pub(super) struct Selection {
    pub(super) resource: Resource,
    /// `None` means all.
    pub(super) namespace: Option<String>,
    pub(super) labels: Option<String>,
    pub(super) fields: Option<String>,
}

impl Selection {
    /// The request for all of them.
    pub(super) fn list_url(&self) -> Url {
        collection(self.resource, self.namespace.as_deref())
            .maybe("labelSelector", self.labels.as_deref())
            .maybe("fieldSelector", self.fields.as_deref())
    }

    /// The request for changes after a list.
    pub(super) fn watch_url(&self, version: &str) -> Url {
        self.list_url()
            .with("watch", "true")
            .with("resourceVersion", version)
    }

    /// From now on only the object of that name and namespace.
    pub(super) fn narrow_to(&mut self, object: &Value) {
        self.namespace = Some(namespace_of(object).to_owned()).filter(|text| !text.is_empty());
        // A comma or an equals sign in a manifest's name must not end the term.
        let mut name = String::new();
        for c in name_of(object).chars() {
            if matches!(c, ',' | '=' | '\\') {
                name.push('\\');
            }
            name.push(c);
        }
        self.fields = Some(format!("metadata.name={name}"));
    }
}

/// Prints the changes that are followed.
pub(super) trait Show {
    /// An object is new or has changed.
    fn changed(&mut self, object: &Value, terminal: &mut Terminal<'_>) -> Result<(), CommandError>;

    /// An object that was printed is gone; this is its last state.
    fn gone(&mut self, object: &Value, terminal: &mut Terminal<'_>) -> Result<(), CommandError>;

    /// When the next delayed event must be printed.
    fn due(&self) -> Option<Instant> {
        None
    }

    /// Prints events whose delay has passed.
    fn show_due(&mut self, _: &mut Terminal<'_>) -> Result<(), CommandError> {
        Ok(())
    }

    /// The stream has ended: prints the remaining events.
    fn end(&mut self, _: &mut Terminal<'_>) -> Result<(), CommandError> {
        Ok(())
    }
}

impl Show for Printer {
    fn changed(&mut self, object: &Value, terminal: &mut Terminal<'_>) -> Result<(), CommandError> {
        self.single(object, clock::now(), terminal)
    }

    fn gone(&mut self, object: &Value, terminal: &mut Terminal<'_>) -> Result<(), CommandError> {
        self.single(object, clock::now(), terminal)
    }
}

/// When the running agent first saw the pod's manifest.
const CONFIG_SEEN: &str = "kubernetes.io/config.seen";

/// Delay before listing again when a stream has ended.
const PAUSE: Duration = Duration::from_millis(100);

/// The last printed state of the objects, by namespace and name, without their versions. An agent
/// that has just started may not know all of them yet, so only a deletion removes one.
type Printed = BTreeMap<(String, String), Value>;

fn key(object: &Value) -> (String, String) {
    (namespace_of(object).to_owned(), name_of(object).to_owned())
}

fn state(object: &Value) -> Value {
    let mut state = object.clone();
    state["metadata"]["resourceVersion"] = Value::Null;
    // Each start of the agent reads the manifests again, as each start of the kubelet does.
    if let Some(annotations) = state["metadata"]["annotations"].as_object_mut() {
        annotations.remove(CONFIG_SEEN);
    }
    state
}

/// Prints every change after `listed`, which has been printed, until Ctrl-C or until the reader of
/// stdout is gone.
pub(super) async fn follow(
    agent: &Agent,
    selection: &Selection,
    listed: Objects,
    show: &mut dyn Show,
    terminal: &mut Terminal<'_>,
) -> Result<(), CommandError> {
    let follower = Follower {
        agent,
        selection,
        printed: listed
            .items
            .iter()
            .map(|object| (key(object), state(object)))
            .collect(),
        show: &mut *show,
        terminal: &mut *terminal,
    };
    tokio::select! {
        ended = follower.run(listed.version) => return ended,
        interrupted = tokio::signal::ctrl_c() => interrupted?,
    }
    show.end(terminal)
}

struct Follower<'a, 'b> {
    agent: &'a Agent,
    selection: &'a Selection,
    printed: Printed,
    show: &'a mut dyn Show,
    terminal: &'a mut Terminal<'b>,
}

impl Follower<'_, '_> {
    async fn run(mut self, mut version: String) -> Result<(), CommandError> {
        loop {
            match self.agent.open(&self.selection.watch_url(&version)).await {
                Ok(stream) => self.print_changes(stream).await?,
                Err(CallError::Refused(code, error)) if code != StatusCode::GONE => {
                    return Err(error.into());
                }
                Err(_) => {}
            }
            tokio::time::sleep(PAUSE).await;
            version = self.list_again().await?;
        }
    }

    /// Prints the changes of one stream until it ends, for any reason.
    async fn print_changes(&mut self, mut stream: ResponseStream) -> Result<(), CommandError> {
        let mut buffer = Vec::new();
        loop {
            let due = self.show.due();
            // Cancel safety: a piece is returned as a whole or not at all; the timer is set again.
            let piece = tokio::select! {
                piece = stream.next() => piece,
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    self.show.show_due(self.terminal)?;
                    continue;
                }
            };
            let Some(Ok(piece)) = piece else {
                return Ok(());
            };
            buffer.extend_from_slice(&piece);
            while let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = buffer.drain(..=end).collect();
                let event: Value = serde_json::from_slice(&line)
                    .map_err(|error| anyhow!(error).context("the agent's watch is not JSON"))?;
                if !self.print_change(&event)? {
                    return Ok(());
                }
            }
        }
    }

    /// False if the stream reports that it can't continue.
    fn print_change(&mut self, event: &Value) -> Result<bool, CommandError> {
        let object = &event["object"];
        match event["type"].as_str() {
            Some("ADDED" | "MODIFIED") => self.print_if_new(object)?,
            // The server may report the deletion of an object that this client may never have seen.
            Some("DELETED") => {
                if self.printed.remove(&key(object)).is_some() {
                    self.show.gone(object, self.terminal)?;
                }
            }
            Some("BOOKMARK") => {}
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn print_if_new(&mut self, object: &Value) -> Result<(), CommandError> {
        let state = state(object);
        if self.printed.get(&key(object)) == Some(&state) {
            return Ok(());
        }
        self.printed.insert(key(object), state);
        self.show.changed(object, self.terminal)
    }

    /// Waits for the agent, lists, and prints what has changed meanwhile.
    async fn list_again(&mut self) -> Result<String, CommandError> {
        let mut pause = Backoff::new(PAUSE, Duration::from_secs(2));
        let mut told = false;
        let listed = loop {
            match self.agent.list(&self.selection.list_url()).await {
                Ok(listed) => break listed,
                Err(CallError::Away(_) | CallError::Broken(_)) => {
                    if !std::mem::replace(&mut told, true) {
                        self.terminal
                            .note("the agent does not respond; waiting for it");
                    }
                    tokio::time::sleep(pause.advance()).await;
                }
                Err(error) => return Err(error.into()),
            }
        };
        for object in &listed.items {
            self.print_if_new(object)?;
        }
        Ok(listed.version)
    }
}
