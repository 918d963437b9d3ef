//! Events that wait to be sent. Pure.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use rubelet_node_state::events::Event;

/// Largest number of queued events (client-go: `maxQueuedEvents`).
const LIMIT: usize = 1000;

/// The newest of each event, in the order in which they began to wait.
#[derive(Debug, Default)]
pub(super) struct EventQueue {
    order: VecDeque<Box<str>>,
    newest: HashMap<Box<str>, Arc<Event>>,
}

impl EventQueue {
    /// An event happened, or happened again. Returns how many others are dropped for it.
    pub(super) fn push(&mut self, event: Arc<Event>) -> u64 {
        let name = event.name.clone();
        if self.newest.insert(name.clone(), event).is_none() {
            self.order.push_back(name);
        }
        let mut dropped = 0;
        while self.order.len() > LIMIT
            && let Some(oldest) = self.order.pop_front()
        {
            self.newest.remove(&oldest);
            dropped += 1;
        }
        dropped
    }

    /// The event that waits longest.
    pub(super) fn pop(&mut self) -> Option<Arc<Event>> {
        let name = self.order.pop_front()?;
        self.newest.remove(&name)
    }

    /// True if nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
}
