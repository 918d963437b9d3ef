//! Events go to the API server, as core/v1 Events in the kubelet's words (client-go:
//! `tools/record`).
//!
//! | part | what it decides |
//! |---|---|
//! | `queue` | which events wait: the newest of each, up to a limit, the oldest is dropped |
//! | `similar` | from the tenth message of one reason on, one event represents all of them |
//! | `spam` | how many events one object may cause |
//! | `state` | create or update, from what was sent before |
//! | `wire` | the objects and patches |
//!
//! The task reads the recorder's board and makes one call at a time, within the rate limit.
//! Recording an event never waits for a call.

mod queue;
mod send;
mod similar;
mod spam;
mod state;
mod sweep;
mod task;
#[cfg(test)]
mod tests;
mod wire;

use std::sync::{Arc, atomic::AtomicU64};

use rubelet_kube::Client;
use rubelet_node_state::events::Recorder;

/// Dependencies of the task.
pub struct EventParts {
    /// The API server.
    pub client: Client,
    /// The source of the events.
    pub recorder: Recorder,
    /// Name of this node.
    pub node_name: Arc<str>,
    /// `eventRecordQPS`: events a second in the long run; 0 for any number.
    pub qps: f32,
    /// `eventBurst`: events at once after a quiet time.
    pub burst: u32,
    /// Counts the events that never reached the API server, other than those of one object beyond
    /// its share.
    pub dropped: Arc<AtomicU64>,
}

/// Sends events, forever.
pub async fn run(parts: EventParts) {
    let EventParts {
        client,
        recorder,
        node_name,
        qps,
        burst,
        dropped,
    } = parts;
    let board = Arc::clone(recorder.board());
    task::EventTask::new(client, board, node_name, (qps, burst), dropped)
        .run()
        .await;
}
