//! Events: emission, faults, and queues until a stream takes them.

mod faults;
mod stream;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use faults::ActiveEventFaults;
use rubelet_cri::{
    ContainerEvent,
    v1::ContainerEventType::{self, ContainerCreatedEvent, ContainerDeletedEvent},
};
use stream::Stream;

use super::SimState;
use crate::{EntryKind, EventFlavour, Instance, Subject};

/// How long containerd 2.x keeps events that no stream takes.
const RETENTION: Duration = Duration::from_secs(300);
/// Capacity of the single queue of containerd 1.7, and of CRI-O's queue.
const QUEUE_CAPACITY: usize = 1000;
/// Maximum number of pending events of one stream of containerd.
const STREAM_CAPACITY: usize = 100;

/// An event in transit, with its number in the record.
pub(crate) type NumberedEvent = (u64, Arc<ContainerEvent>);

pub(crate) struct Events {
    pub(crate) flavour: EventFlavour,
    /// Whether the RPC exists, whatever the flavour.
    pub(crate) offered: bool,
    /// Whether streams receive nothing.
    pub(crate) withheld: bool,
    pub(crate) event_faults: ActiveEventFaults,
    streams: BTreeMap<u64, Stream>,
    /// Events that no stream has taken, with their times.
    kept: VecDeque<(Duration, NumberedEvent)>,
    /// Whether there has been a stream since the runtime started.
    began: bool,
    /// Whether events of containers are suppressed.
    pub(super) container_events_suppressed: bool,
    /// Whether all events are suppressed.
    pub(crate) all_events_suppressed: bool,
    /// The stream that received the last event of the shared queue.
    last_receiver: u64,
    numbers: u64,
    history: Vec<NumberedEvent>,
}

impl Default for Events {
    fn default() -> Self {
        Self {
            flavour: EventFlavour::default(),
            offered: true,
            withheld: false,
            event_faults: ActiveEventFaults::default(),
            streams: BTreeMap::new(),
            kept: VecDeque::new(),
            began: false,
            container_events_suppressed: false,
            all_events_suppressed: false,
            last_receiver: 0,
            numbers: 0,
            history: Vec::new(),
        }
    }
}

impl SimState {
    /// Emits an event about a container.
    pub(crate) fn emit_for_container(
        &mut self,
        kind: ContainerEventType,
        at: Duration,
        instance: &Instance,
    ) {
        if self.events.container_events_suppressed {
            return;
        }
        let sandbox = self.sandboxes.contains_key(&instance.sandbox_id);
        let event = ContainerEvent {
            container: instance.id.clone(),
            kind,
            created_at: self.clock.latest(),
            sandbox: sandbox.then(|| instance.sandbox_id.clone()),
            pod_uid: sandbox.then(|| instance.pod_uid.clone()),
            sequence: None,
        };
        self.emit(at, event, &instance.subject());
    }

    /// Emits an event about a sandbox.
    pub(crate) fn emit_for_sandbox(&mut self, kind: ContainerEventType, id: &str, pod_uid: &str) {
        let swallowed = [ContainerCreatedEvent, ContainerDeletedEvent].contains(&kind);
        if swallowed && self.events.flavour == EventFlavour::CriO {
            return;
        }
        let event = ContainerEvent {
            container: id.to_owned(),
            kind,
            created_at: self.clock.latest(),
            sandbox: Some(id.to_owned()),
            pod_uid: Some(pod_uid.to_owned()),
            sequence: None,
        };
        let about = Subject {
            id: Some(id.to_owned()),
            ..Subject::pod(pod_uid)
        };
        self.emit(self.clock.now(), event, &about);
    }

    fn emit(&mut self, at: Duration, event: ContainerEvent, about: &Subject) {
        let mute = [EventFlavour::None, EventFlavour::Closed];
        let emits = self.node.up && !self.events.all_events_suppressed;
        if !emits || mute.contains(&self.events.flavour) {
            return;
        }
        self.events.numbers += 1;
        let numbered = (self.events.numbers, Arc::new(event));
        self.events.history.push(numbered.clone());
        self.record_at(at, EntryKind::EventEmitted(numbered.0, numbered.1.clone()));
        self.inject_faults(at, &numbered, about);
    }

    /// Sends an event that the runtime did not emit.
    pub(crate) fn send_event(&mut self, event: ContainerEvent) {
        self.events.numbers += 1;
        let numbered = (self.events.numbers, Arc::new(event));
        self.publish(self.clock.now(), Duration::ZERO, &numbered);
    }

    /// Sends the last events again, oldest first and repeatedly, until `count` were sent.
    pub(crate) fn replay(&mut self, count: usize) {
        let history = &self.events.history;
        let last = &history[history.len().saturating_sub(count)..];
        let again: Vec<_> = last.iter().cycle().take(count).cloned().collect();
        for numbered in again {
            self.publish(self.clock.now(), Duration::ZERO, &numbered);
        }
    }

    /// Delivers an event to streams, according to the flavour.
    fn publish(&mut self, at: Duration, late: Duration, numbered: &NumberedEvent) {
        let latency = self.latency_of("GetContainerEvents") / 2;
        let ready = at + late + latency;
        match self.events.flavour {
            EventFlavour::Containerd => self.broadcast(at, ready, numbered),
            EventFlavour::Shared => {
                if self.events.kept.len() < QUEUE_CAPACITY {
                    self.events.kept.push_back((ready, numbered.clone()));
                    self.deal_shared_queue();
                } else {
                    self.record_at(at, EntryKind::EventLost(numbered.0, "the queue is full"));
                }
            }
            EventFlavour::CriO => {
                let full = |stream: &Stream| stream.waiting() >= QUEUE_CAPACITY;
                let lost = if self.events.began {
                    if self.events.streams.values().any(full) {
                        Some("the queue is full")
                    } else if !self.events.streams.values().any(Stream::is_read) {
                        Some("nobody listens")
                    } else {
                        self.push_to_streams(ready, numbered);
                        None
                    }
                } else if self.events.kept.len() < QUEUE_CAPACITY {
                    self.events.kept.push_back((ready, numbered.clone()));
                    None
                } else {
                    Some("the queue is full")
                };
                if let Some(why) = lost {
                    self.record_at(at, EntryKind::EventLost(numbered.0, why));
                }
            }
            EventFlavour::None | EventFlavour::Closed => {}
        }
    }

    fn broadcast(&mut self, at: Duration, ready: Duration, numbered: &NumberedEvent) {
        let events = &mut self.events;
        if !events.streams.values().any(Stream::is_registered) {
            events.kept.push_back((ready, numbered.clone()));
            while events
                .kept
                .front()
                .is_some_and(|(since, _)| *since + RETENTION < at)
            {
                events.kept.pop_front();
            }
            return;
        }
        // Only sending reveals that a client is gone; the event that was sent is lost.
        let read = events.streams.values().any(Stream::is_read);
        events.streams.retain(|_, stream| !stream.is_dropped());
        if read {
            self.push_to_streams(ready, numbered);
        } else {
            self.record_at(at, EntryKind::EventLost(numbered.0, "the stream is dead"));
        }
    }

    fn push_to_streams(&mut self, ready: Duration, numbered: &NumberedEvent) {
        let withheld = self.events.withheld;
        for stream in self.events.streams.values_mut() {
            if !withheld {
                stream.push(ready, numbered.clone());
            }
        }
    }

    /// Distributes the shared queue, one event to each stream with capacity in turn.
    fn deal_shared_queue(&mut self) {
        loop {
            let events = &mut self.events;
            let takes = |one: &Stream| one.is_registered() && one.waiting() < STREAM_CAPACITY;
            let all = events.streams.iter();
            let takers: Vec<u64> = all
                .filter(|(_, one)| takes(one))
                .map(|(id, _)| *id)
                .collect();
            let after = takers.iter().find(|id| **id > events.last_receiver);
            let Some(taker) = after.or(takers.first()).copied() else {
                return;
            };
            let Some((ready, numbered)) = events.kept.pop_front() else {
                return;
            };
            events.last_receiver = taker;
            let Some(stream) = events.streams.get_mut(&taker) else {
                return;
            };
            if !stream.is_read() {
                if stream.is_dropped() {
                    events.streams.remove(&taker);
                }
                self.record(EntryKind::EventLost(numbered.0, "the stream is dead"));
            } else if !events.withheld {
                stream.push(ready, numbered);
            }
        }
    }
}
