//! Container events: every subscriber gets each of them, in order, with a sequence number.
//!
//! A subscriber that does not read has [`MOST_WAITING`] events kept for it. Beyond that its stream ends,
//! after what is kept, with an error that tells it to list: nothing is left out without a word.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Poll, Waker},
};

use futures_core::Stream;
use rubelet_cri::{ContainerEvent, CriError, CriErrorKind, CriResult, EventStream};

/// So many events wait for one subscriber at most: those of some thousand containers that start.
pub(crate) const MOST_WAITING: usize = 16_384;

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
    waiting: VecDeque<ContainerEvent>,
    /// More came than can wait: the first that is not kept.
    overflow: Option<u64>,
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
            let keeps_up = queue.push(sequence, &event);
            if let Some(waker) = queue.waker.take() {
                waker.wake();
            }
            keeps_up
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
    /// False if the subscriber has fallen too far behind.
    fn push(&mut self, sequence: u64, event: &ContainerEvent) -> bool {
        if self.waiting.len() >= MOST_WAITING {
            self.overflow = Some(sequence);
            return false;
        }
        self.waiting.push_back(event.clone());
        true
    }
}

struct Subscription(Arc<Mutex<Queue>>);

impl Stream for Subscription {
    type Item = CriResult<ContainerEvent>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut queue = lock(&self.0);
        if let Some(event) = queue.waiting.pop_front() {
            return Poll::Ready(Some(Ok(event)));
        }
        if let Some(first) = queue.overflow.take() {
            queue.closed = true;
            let message = format!(
                "this stream was not read for {MOST_WAITING} events; from event {first} on they are lost: \
                 list the containers and sandboxes, and ask for events anew"
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

/// A panic while the lock was held can't leave these values half changed.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt, StreamExt};

    use rubelet_cri::v1::ContainerEventType;

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
    fn a_slow_subscriber_misses_nothing_up_to_a_bound_and_is_told_beyond_it() {
        use ContainerEventType::{
            ContainerCreatedEvent, ContainerDeletedEvent, ContainerStartedEvent,
            ContainerStoppedEvent,
        };
        let hub = EventHub::default();
        let mut slow = hub.subscribe();
        let life = [
            ContainerCreatedEvent,
            ContainerStartedEvent,
            ContainerStoppedEvent,
            ContainerDeletedEvent,
        ];
        for kind in life {
            hub.send(event("a", kind));
        }
        let told: Vec<_> = read(&mut slow)
            .into_iter()
            .map(|(_, kind, _)| kind)
            .collect();
        assert_eq!(
            told, life,
            "the end of a container hides nothing of its life"
        );

        for _ in 0..=MOST_WAITING {
            hub.send(event("a", ContainerStoppedEvent));
        }
        let mut other = hub.subscribe();
        hub.send(event("b", ContainerStoppedEvent));
        for number in 5..5 + MOST_WAITING as u64 {
            let next = slow.next().now_or_never().flatten().unwrap().unwrap();
            assert_eq!(next.sequence, Some(number));
        }
        let error = slow.next().now_or_never().flatten().unwrap().unwrap_err();
        assert_eq!(error.kind, CriErrorKind::ResourceExhausted);
        assert!(error.message.contains("list the containers"), "{error:?}");
        assert!(
            slow.next().now_or_never().unwrap().is_none(),
            "it has ended"
        );
        assert_eq!(read(&mut other).len(), 1, "others go on");
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
