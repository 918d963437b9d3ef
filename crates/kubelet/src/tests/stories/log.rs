//! The log of a story: everything that happened, in order, each line with the time since the
//! beginning.
//!
//! It catches up at each call to the runtime and at each change of what the agent publishes, so
//! that lines are in the order in which things happened.

use std::{any::Any, sync::Arc, time::Duration};

use parking_lot::{Mutex, MutexGuard};
use rubelet_cri::CriError;
use tokio::time::Instant;

use super::{
    calls,
    timeline::Timeline,
    words::{clock, length},
};
use crate::{agent::Agent, tests::node::Node, tests::wire::CallObserver};

/// The duration of calls that take longer than this is logged.
const SLOW: Duration = Duration::from_millis(50);

/// A handle on the log. Clones are the same log.
#[derive(Clone)]
pub(super) struct Log(Arc<Mutex<LogState>>);

struct LogState {
    timeline: Timeline,
    calls: Vec<Call>,
}

/// A call that was made.
struct Call {
    began: Instant,
    uid: Option<String>,
    /// Its line; `None` if it is not logged.
    text: Option<String>,
}

impl Log {
    /// The log of a node whose agent was not started yet. With several pods, lines name their pod.
    pub(super) fn new(node: &Node, several: bool) -> Self {
        let state = LogState {
            timeline: Timeline::new(node, several),
            calls: Vec::new(),
        };
        let log = Self(Arc::new(Mutex::new(state)));
        node.wire.observe_calls(Arc::new(log.clone()));
        let (mut versions, follower) = (node.recorder().board().versions(), log.clone());
        tokio::spawn(async move {
            while versions.changed().await.is_ok() {
                follower.state().timeline.catch_up();
            }
        });
        log
    }

    /// Sets the label of the pod with this UID.
    pub(super) fn name_pod(&self, uid: &str, label: &str) {
        self.state().timeline.name_pod(uid, label);
    }

    /// Follows what this agent publishes.
    pub(super) fn record_events_of(&self, agent: &Agent) {
        self.state().timeline.set_agent(Some(agent));
        let (mut versions, follower) = (agent.pods.versions(), self.clone());
        tokio::spawn(async move {
            while versions.changed().await.is_ok() {
                follower.state().timeline.catch_up();
            }
        });
    }

    /// The agent has ended.
    pub(super) fn agent_is_gone(&self) {
        self.state().timeline.set_agent(None);
    }

    /// A line of the script.
    pub(super) fn say(&self, what: &str) {
        let mut state = self.state();
        state.timeline.catch_up();
        state.timeline.act(what);
    }

    /// Everything until now.
    pub(super) fn text(&self) -> String {
        let mut state = self.state();
        state.timeline.catch_up();
        let lines = state.timeline.lines().into_iter();
        lines
            .map(|(at, text)| format!("{} {text}\n", clock(at)))
            .collect()
    }

    fn state(&self) -> MutexGuard<'_, LogState> {
        self.0.lock()
    }
}

impl CallObserver for Log {
    fn began(&self, call: &'static str, request: &dyn Any) -> usize {
        let mut state = self.state();
        state.timeline.catch_up();
        let described = calls::describe(call, request, &state.timeline);
        if let Some(text) = &described.text {
            state.timeline.put(described.uid.as_deref(), "call", text);
        }
        state.calls.push(Call {
            began: Instant::now(),
            uid: described.uid,
            text: described.text,
        });
        state.calls.len() - 1
    }

    fn ended(&self, call: usize, result: Option<Result<(), &CriError>>) {
        let mut state = self.state();
        state.timeline.catch_up();
        let Call { began, uid, text } = &state.calls[call];
        let (took, uid) = (began.elapsed(), uid.clone());
        let Some(text) = text.clone() else { return };
        // The first line has the arguments beside the object; they are not repeated.
        let text = text.split(", ").next().unwrap_or_default();
        let end = match result {
            None => "was given up".to_owned(),
            Some(Err(error)) => format!("failed: {error}"),
            Some(Ok(())) if took > SLOW && !text.starts_with("StopContainer") => {
                format!("took {}", length(took))
            }
            Some(Ok(())) => return,
        };
        let line = format!("{text} {end}");
        state.timeline.put(uid.as_deref(), "call", &line);
    }
}
