//! A reader of events that records what it receives.

use futures_util::StreamExt;
use rubelet_cri::{ContainerEvent, CriError, CriResult, RuntimeService};
use rubelet_sim::Sim;
use tokio::{
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
    task::{JoinHandle, yield_now},
};

/// Reads a stream as fast as events arrive.
pub(crate) struct Reader {
    got: UnboundedReceiver<CriResult<ContainerEvent>>,
    task: JoinHandle<()>,
}

impl Reader {
    /// Opens a stream, which is open when this returns unless that fails.
    pub(crate) async fn open(sim: &Sim) -> Self {
        let mut events = sim.container_events();
        let (send, got) = unbounded_channel();
        let task = tokio::spawn(async move {
            while let Some(event) = events.next().await {
                // The test may not need the rest.
                let _ = send.send(event);
            }
        });
        others().await;
        Self { got, task }
    }

    /// The items since the last call.
    pub(crate) async fn items(&mut self) -> Vec<CriResult<ContainerEvent>> {
        others().await;
        let mut items = Vec::new();
        while let Ok(item) = self.got.try_recv() {
            items.push(item);
        }
        items
    }

    /// The events since the last call: the first letters of their kinds, in lower case for
    /// sandboxes.
    pub(crate) async fn kinds(&mut self) -> String {
        let items = self.items().await.into_iter();
        items
            .map(|item| letter(&item.expect("the stream goes on")))
            .collect()
    }

    /// The containers and sandboxes of the events since the last call.
    pub(crate) async fn ids(&mut self) -> Vec<String> {
        let items = self.items().await.into_iter();
        items
            .map(|item| item.expect("the stream goes on").container)
            .collect()
    }

    /// The error that ended the stream, which is the last item.
    pub(crate) async fn error(&mut self) -> CriError {
        let mut items = self.items().await;
        assert!(self.task.is_finished());
        let last = items.pop().expect("an error is an item");
        assert!(items.is_empty(), "{items:?}");
        last.expect_err("it is the last item")
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.task.is_finished()
    }

    /// Stops reading, and lets the runtime notice if it can.
    pub(crate) async fn close(self) {
        self.task.abort();
        others().await;
    }
}

/// Created, Started, stopped (X), Deleted.
fn letter(event: &ContainerEvent) -> char {
    let letter = match event.kind.as_str_name() {
        "CONTAINER_CREATED_EVENT" => 'C',
        "CONTAINER_STARTED_EVENT" => 'S',
        "CONTAINER_STOPPED_EVENT" => 'X',
        _ => 'D',
    };
    if event.is_sandbox() {
        letter.to_ascii_lowercase()
    } else {
        letter
    }
}

/// Lets all other tasks run until they wait.
pub(crate) async fn others() {
    for _ in 0..20 {
        yield_now().await;
    }
}
