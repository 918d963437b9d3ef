//! The task: reads the recorder's board and makes one call at a time.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use rubelet_base::Backoff;
use rubelet_kube::TokenBucket;
use rubelet_node_state::{board::Board, events::Event};
use tokio::time::{Instant, sleep_until};
use tracing::{debug, warn};

use super::{
    queue::EventQueue,
    send::EventApi,
    state::{OutgoingEvent, SentEvents},
    wire,
};
use crate::call_error::{CallError, CallErrorKind};

/// Waits between two tries to send an event (client-go: 10 s).
const RETRY_INITIAL: Duration = Duration::from_millis(500);
const RETRY_MAX: Duration = Duration::from_secs(10);

/// Sends events.
pub(super) struct EventTask<A> {
    client: A,
    board: Arc<Board<Box<str>, Event>>,
    node_name: Arc<str>,
    bucket: TokenBucket,
    dropped: Arc<AtomicU64>,
    seen: u64,
    queue: EventQueue,
    state: SentEvents,
    backoff: Backoff,
    last_warning: String,
}

type Call = Pin<Box<dyn Future<Output = (OutgoingEvent, Result<(), CallError>)> + Send>>;

impl<A: EventApi> EventTask<A> {
    pub(super) fn new(
        client: A,
        board: Arc<Board<Box<str>, Event>>,
        node_name: Arc<str>,
        (qps, burst): (f32, u32),
        dropped: Arc<AtomicU64>,
    ) -> Self {
        Self {
            client,
            board,
            node_name,
            bucket: TokenBucket::new(qps, burst),
            dropped,
            seen: 0,
            queue: EventQueue::default(),
            state: SentEvents::default(),
            backoff: Backoff::new(RETRY_INITIAL, RETRY_MAX),
            last_warning: String::new(),
        }
    }

    pub(super) async fn run(mut self) {
        let mut versions = self.board.versions();
        let mut call: Option<Call> = None;
        self.read();
        loop {
            if call.is_none() {
                call = self.next();
            }
            // Cancel safety: the receiver keeps what was not seen, the call stays where it is.
            tokio::select! {
                changed = versions.changed() => match changed {
                    Ok(()) => self.read(),
                    Err(_) => return,
                },
                (outgoing, answer) = async {
                    match &mut call {
                        Some(call) => call.await,
                        None => std::future::pending().await,
                    }
                } => call = self.ended(outgoing, answer),
            }
        }
    }

    fn read(&mut self) {
        let (version, changes) = self.board.since(self.seen);
        self.seen = version;
        for (_, _, event) in changes {
            let dropped = self.queue.push(event);
            self.dropped.fetch_add(dropped, Ordering::Relaxed);
        }
    }

    /// The call for the event that waits longest.
    fn next(&mut self) -> Option<Call> {
        while let Some(event) = self.queue.pop() {
            let now = Instant::now();
            if let Some(outgoing) = self.state.next(&event, now) {
                let at = now + self.bucket.take(now);
                return Some(self.call(outgoing, at));
            }
        }
        debug_assert!(self.queue.is_empty(), "everything was looked at");
        None
    }

    /// A call that is made at this time.
    fn call(&self, outgoing: OutgoingEvent, at: Instant) -> Call {
        let (client, node_name) = (self.client.clone(), Arc::clone(&self.node_name));
        Box::pin(async move {
            sleep_until(at).await;
            let answer = send(&client, &outgoing, &node_name).await;
            (outgoing, answer)
        })
    }

    /// Handles an answer: continues with the same call later, or with the next one.
    fn ended(&mut self, outgoing: OutgoingEvent, answer: Result<(), CallError>) -> Option<Call> {
        let Err(error) = answer else {
            self.backoff.reset();
            self.last_warning = String::new();
            self.state.sent(&outgoing);
            return None;
        };
        let wait = match error.kind {
            CallErrorKind::Unreachable => self.backoff.advance(),
            CallErrorKind::Later(wait) => self.backoff.advance().max(wait.unwrap_or_default()),
            // The namespace is gone or going, or the event is not one that the API server takes.
            _ => {
                self.dropped.fetch_add(1, Ordering::Relaxed);
                let event = &outgoing.event;
                debug!(reason = %event.reason, message = %event.message, %error, "Server rejected event (will not retry!)");
                return None;
            }
        };
        if self.last_warning != error.text {
            warn!(%error, "Unable to write event (will retry)");
            self.last_warning = error.text;
        }
        Some(self.call(outgoing, Instant::now() + wait))
    }
}

/// Creates or changes the event, whichever it takes.
async fn send<A: EventApi>(
    client: &A,
    outgoing: &OutgoingEvent,
    node_name: &str,
) -> Result<(), CallError> {
    let namespace = outgoing.event.subject.namespace();
    let change = || client.patch(namespace, wire::name(&outgoing.name), wire::patch(outgoing));
    if outgoing.repeats {
        match change().await {
            // The API server keeps events for an hour only.
            Err(error) if error.kind == CallErrorKind::NotFound => {}
            answer => return answer,
        }
    }
    match client
        .create(namespace, wire::object(outgoing, node_name))
        .await
    {
        // An earlier try got through, only its answer did not.
        Err(error) if error.kind == CallErrorKind::AlreadyExists => change().await,
        answer => answer,
    }
}
