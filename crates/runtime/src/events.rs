//! Container events: every subscriber gets each of them, in order, with a sequence number.
//!
//! For a subscriber that does not read, up to [`MAX_PENDING`] events are buffered. Beyond that its
//! stream ends after the buffered events, with an error that requires it to list: no event is
//! dropped silently.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::{Arc, Weak},
    task::{Context, Poll, Waker},
};

use futures_core::Stream;
use parking_lot::Mutex;
use rubelet_cri::{ContainerEvent, CriError, CriErrorKind, CriResult, EventStream};
use tokio::sync::watch;

/// Maximum events buffered for one subscriber: those of some thousand container starts.
pub(crate) const MAX_PENDING: usize = 16_384;

/// Delivers events to all subscribers.
#[derive(Debug, Default)]
pub(crate) struct EventHub {
    subscribers: Mutex<EventSubscribers>,
    /// The number of the last event.
    last: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct EventSubscribers {
    subscribers: Vec<Weak<Mutex<SubscriberQueue>>>,
    closed: bool,
}

#[derive(Debug, Default)]
struct SubscriberQueue {
    waiting: VecDeque<ContainerEvent>,
    /// Sequence number of the first event that did not fit into the buffer.
    overflow: Option<u64>,
    waker: Option<Waker>,
    closed: bool,
}

impl EventHub {
    /// Queues the event for all subscribers. Never waits.
    pub(crate) fn send(&self, mut event: ContainerEvent) {
        let mut hub = self.subscribers.lock();
        // Only this changes it, under the lock.
        let sequence = *self.last.borrow() + 1;
        event.sequence = Some(sequence);
        hub.subscribers.retain(|subscriber| {
            let Some(queue) = subscriber.upgrade() else {
                return false;
            };
            // The hub stays locked, so that each queue has the events in the order of numbers.
            let mut queue = queue.lock();
            let keeps_up = queue.push(sequence, &event);
            if let Some(waker) = queue.waker.take() {
                waker.wake();
            }
            keeps_up
        });
        self.last.send_replace(sequence);
    }

    /// The number of the last event.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.last.subscribe()
    }

    /// All events from this call on.
    pub(crate) fn subscribe(&self) -> EventStream {
        let queue = Arc::new(Mutex::new(SubscriberQueue::default()));
        let mut hub = self.subscribers.lock();
        if hub.closed {
            queue.lock().closed = true;
        }
        hub.subscribers.push(Arc::downgrade(&queue));
        Box::pin(Subscription(queue))
    }

    /// Ends all streams after their buffered events were read.
    pub(crate) fn close(&self) {
        let mut hub = self.subscribers.lock();
        hub.closed = true;
        for queue in hub
            .subscribers
            .drain(..)
            .filter_map(|queue| queue.upgrade())
        {
            let mut queue = queue.lock();
            queue.closed = true;
            if let Some(waker) = queue.waker.take() {
                waker.wake();
            }
        }
    }
}

impl SubscriberQueue {
    /// False if the buffer was full.
    fn push(&mut self, sequence: u64, event: &ContainerEvent) -> bool {
        if self.waiting.len() >= MAX_PENDING {
            self.overflow = Some(sequence);
            return false;
        }
        self.waiting.push_back(event.clone());
        true
    }
}

struct Subscription(Arc<Mutex<SubscriberQueue>>);

impl Stream for Subscription {
    type Item = CriResult<ContainerEvent>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut queue = self.0.lock();
        if let Some(event) = queue.waiting.pop_front() {
            return Poll::Ready(Some(Ok(event)));
        }
        if let Some(first) = queue.overflow.take() {
            queue.closed = true;
            let message = format!(
                "the subscriber fell behind by more than {MAX_PENDING} events, and events from {first} on were dropped: \
                 list the containers and sandboxes, and ask for events again"
            );
            let kind = CriErrorKind::ResourceExhausted;
            return Poll::Ready(Some(Err(CriError::new(
                "GetContainerEvents",
                kind,
                message,
            ))));
        }
        if queue.closed {
            return Poll::Ready(None);
        }
        queue.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

#[cfg(test)]
mod tests;
