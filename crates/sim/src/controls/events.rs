//! What a test can do to events.

use rubelet_cri::ContainerEvent;

use crate::{EventFault, EventFlavour, EventOdds, Sim};

impl Sim {
    /// Events are emitted as by this runtime. Open streams stay open.
    pub fn events(&self, flavour: EventFlavour) {
        self.with(|state| state.events.flavour = flavour);
    }

    /// Whether the RPC exists. A new stream of a runtime without it fails as `Unimplemented`; one
    /// that is open stays open.
    pub fn offer_events(&self, offered: bool) {
        self.with(|state| state.events.offered = offered);
    }

    /// While on, streams are accepted and never get anything: events are lost meanwhile.
    pub fn withhold_events(&self, on: bool) {
        self.with(|state| state.events.withheld = on);
    }

    /// The streams that are open now get nothing more, and do not end. Later ones do get events.
    pub fn mute_events(&self) {
        self.with(|state| state.mute_streams());
    }

    /// The streams that are open break, with what was on the way in them.
    pub fn cut_events(&self) {
        self.with(|state| state.cut_streams());
    }

    /// The runtime ends the streams that are open, without an error.
    pub fn end_events(&self) {
        self.with(|state| state.finish_streams());
    }

    /// Adds a fault. Of several that fit an event, the oldest strikes.
    /// [`clear_faults`](Sim::clear_faults) takes it away.
    pub fn inject_event(&self, fault: EventFault) {
        self.with(|state| state.events.event_faults.add(fault));
    }

    /// From now on chance decides what goes wrong with events that no fault strikes, until
    /// [`clear_faults`](Sim::clear_faults). The same seed does the same to the same events.
    pub fn rough_events(&self, odds: EventOdds, seed: u64) {
        self.with(|state| state.events.event_faults.roughen(odds, seed));
    }

    /// Sends the events that [`EventFault::held`] kept back, oldest first.
    pub fn release_events(&self) {
        self.with(|state| state.release(false));
    }

    /// The same, newest first.
    pub fn release_events_reversed(&self) {
        self.with(|state| state.release(true));
    }

    /// Sends the last `count` events again, as stale as they are, oldest first; where fewer
    /// happened, again and again until it were so many.
    pub fn replay_events(&self, count: usize) {
        self.with(|state| state.replay(count));
    }

    /// Sends an event that the runtime did not emit, such as one about a pod that never was.
    pub fn send_event(&self, event: ContainerEvent) {
        self.with(|state| state.send_event(event));
    }

    /// How many streams of events somebody reads now.
    #[must_use]
    pub fn open_streams(&self) -> usize {
        self.look(|state| state.open_streams())
    }
}
