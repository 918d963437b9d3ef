//! Container events: every subscriber gets each of them, in order, with a sequence number.
//!
//! A subscriber that falls behind costs a bounded amount of memory and still misses no object: what
//! waits for it is kept per object, where a later event of a kind replaces an earlier one of the
//! same kind, and the removal of an object replaces all that was still to be told about it.

use std::{
    collections::{BTreeMap, HashMap},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Poll, Waker},
};

use futures_core::Stream;
use rubelet_cri::{ContainerEvent, CriResult, EventStream, v1::ContainerEventType};

/// Hands events to all subscribers.
#[derive(Debug, Default)]
pub(crate) struct EventHub(Mutex<Hub>);

#[derive(Debug, Default)]
struct Hub {
    sequence: u64,
    subscribers: Vec<Weak<Mutex<Queue>>>,
    closed: bool,
}

#[derive(Debug, Default)]
struct Queue {
    /// By sequence number.
    waiting: BTreeMap<u64, ContainerEvent>,
    /// The numbers of what waits, by object.
    objects: HashMap<String, Vec<u64>>,
    waker: Option<Waker>,
    closed: bool,
}

impl EventHub {
    /// Tells all subscribers. Never waits.
    pub(crate) fn send(&self, mut event: ContainerEvent) {
        let mut hub = lock(&self.0);
        hub.sequence += 1;
        let sequence = hub.sequence;
        event.sequence = Some(sequence);
        hub.subscribers.retain(|subscriber| {
            let Some(queue) = subscriber.upgrade() else {
                return false;
            };
            let mut queue = lock(&queue);
            queue.push(sequence, event.clone());
            if let Some(waker) = queue.waker.take() {
                waker.wake();
            }
            true
        });
    }

    /// All events from this call on.
    pub(crate) fn subscribe(&self) -> EventStream {
        let queue = Arc::new(Mutex::new(Queue::default()));
        let mut hub = lock(&self.0);
        if hub.closed {
            lock(&queue).closed = true;
        }
        hub.subscribers.push(Arc::downgrade(&queue));
        Box::pin(Subscription(queue))
    }

    /// Ends all streams once what waits in them was read.
    pub(crate) fn close(&self) {
        let mut hub = lock(&self.0);
        hub.closed = true;
        for queue in hub
            .subscribers
            .drain(..)
            .filter_map(|queue| queue.upgrade())
        {
            let mut queue = lock(&queue);
            queue.closed = true;
            if let Some(waker) = queue.waker.take() {
                waker.wake();
            }
        }
    }
}

impl Queue {
    fn push(&mut self, sequence: u64, event: ContainerEvent) {
        let numbers = self.objects.entry(event.container.clone()).or_default();
        let waiting = &mut self.waiting;
        let removed = event.kind == ContainerEventType::ContainerDeletedEvent;
        numbers.retain(|number| {
            let same = waiting
                .get(number)
                .is_some_and(|old| removed || old.kind == event.kind);
            if same {
                waiting.remove(number);
            }
            !same
        });
        numbers.push(sequence);
        self.waiting.insert(sequence, event);
    }

    fn pop(&mut self) -> Option<ContainerEvent> {
        let (sequence, event) = self.waiting.pop_first()?;
        if let Some(numbers) = self.objects.get_mut(&event.container) {
            numbers.retain(|&number| number != sequence);
            if numbers.is_empty() {
                self.objects.remove(&event.container);
            }
        }
        Some(event)
    }
}

struct Subscription(Arc<Mutex<Queue>>);

impl Stream for Subscription {
    type Item = CriResult<ContainerEvent>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut queue = lock(&self.0);
        if let Some(event) = queue.pop() {
            return Poll::Ready(Some(Ok(event)));
        }
        if queue.closed {
            return Poll::Ready(None);
        }
        queue.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

/// A panic while the lock was held can't leave these values half changed.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt, StreamExt};

    use super::*;

    fn event(container: &str, kind: ContainerEventType) -> ContainerEvent {
        ContainerEvent {
            container: container.to_owned(),
            kind,
            created_at: 0,
            sandbox: None,
            pod_uid: None,
            sequence: None,
        }
    }

    fn read(stream: &mut EventStream) -> Vec<(String, ContainerEventType, Option<u64>)> {
        std::iter::from_fn(|| stream.next().now_or_never().flatten())
            .map(|event| event.unwrap())
            .map(|event| (event.container, event.kind, event.sequence))
            .collect()
    }

    #[test]
    fn each_subscriber_gets_all_events_in_order() {
        use ContainerEventType::{ContainerCreatedEvent, ContainerStartedEvent};
        let hub = EventHub::default();
        let mut first = hub.subscribe();
        hub.send(event("a", ContainerCreatedEvent));
        let mut second = hub.subscribe();
        hub.send(event("a", ContainerStartedEvent));
        let started = ("a".to_owned(), ContainerStartedEvent, Some(2));
        let created = ("a".to_owned(), ContainerCreatedEvent, Some(1));
        assert_eq!(read(&mut first), [created, started.clone()]);
        assert_eq!(read(&mut second), [started]);
        hub.close();
        assert!(first.next().now_or_never().unwrap().is_none());
    }

    #[test]
    fn a_slow_subscriber_holds_a_bounded_number_of_events_and_misses_no_object() {
        use ContainerEventType::{ContainerDeletedEvent, ContainerStoppedEvent};
        let hub = EventHub::default();
        let mut slow = hub.subscribe();
        for _ in 0..1000 {
            hub.send(event("a", ContainerStoppedEvent));
        }
        hub.send(event("b", ContainerStoppedEvent));
        hub.send(event("b", ContainerDeletedEvent));
        assert_eq!(
            read(&mut slow),
            [
                ("a".to_owned(), ContainerStoppedEvent, Some(1000)),
                ("b".to_owned(), ContainerDeletedEvent, Some(1002)),
            ]
        );
    }

    #[tokio::test]
    async fn a_waiting_subscriber_wakes_up() {
        let hub = Arc::new(EventHub::default());
        let mut stream = hub.subscribe();
        let reader = tokio::spawn(async move { stream.next().await });
        tokio::task::yield_now().await;
        hub.send(event("a", ContainerEventType::ContainerStartedEvent));
        assert_eq!(reader.await.unwrap().unwrap().unwrap().container, "a");
    }
}
