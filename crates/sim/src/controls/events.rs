//! Controls of events, for tests.

use rubelet_cri::ContainerEvent;

use crate::{EventFault, EventFlavour, EventOdds, Sim};

impl Sim {
    /// Emits events as this runtime does. Open streams stay open.
    pub fn events(&self, flavour: EventFlavour) {
        self.with(|state| state.events.flavour = flavour);
    }

    /// Whether the RPC exists. If not, a new stream fails with `Unimplemented`; open ones stay
    /// open.
    pub fn offer_events(&self, offered: bool) {
        self.with(|state| state.events.offered = offered);
    }

    /// While on, streams are accepted but receive nothing: events are lost.
    pub fn withhold_events(&self, on: bool) {
        self.with(|state| state.events.withheld = on);
    }

    /// The streams that are open now receive nothing more, and do not end. Later ones receive
    /// events.
    pub fn mute_events(&self) {
        self.with(|state| state.mute_streams());
    }

    /// Open streams fail, and the events in them are lost.
    pub fn cut_events(&self) {
        self.with(|state| state.cut_streams());
    }

    /// The runtime ends open streams without an error.
    pub fn end_events(&self) {
        self.with(|state| state.finish_streams());
    }

    /// Adds a fault. If several match an event, the oldest one is used.
    /// [`clear_faults`](Sim::clear_faults) removes it.
    pub fn inject_event(&self, fault: EventFault) {
        self.with(|state| state.events.event_faults.add(fault));
    }

    /// Injects random faults into events that match no fault, until
    /// [`clear_faults`](Sim::clear_faults). The same seed causes the same faults for the same
    /// events.
    pub fn inject_random_event_faults(&self, odds: EventOdds, seed: u64) {
        self.with(|state| state.events.event_faults.set_odds(odds, seed));
    }

    /// Sends the events that [`EventFault::held`] holds, oldest first.
    pub fn release_events(&self) {
        self.with(|state| state.release(false));
    }

    /// The same, newest first.
    pub fn release_events_reversed(&self) {
        self.with(|state| state.release(true));
    }

    /// Sends the last `count` events again, unchanged, oldest first. If there are fewer, they are
    /// repeated until `count` were sent.
    pub fn replay_events(&self, count: usize) {
        self.with(|state| state.replay(count));
    }

    /// Sends an event that the runtime did not emit, such as one about a pod that never existed.
    pub fn send_event(&self, event: ContainerEvent) {
        self.with(|state| state.send_event(event));
    }

    /// Number of event streams that are being read now.
    #[must_use]
    pub fn open_streams(&self) -> usize {
        self.look(|state| state.open_streams())
    }
}
