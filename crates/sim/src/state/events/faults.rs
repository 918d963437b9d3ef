//! Faults of events between the runtime and its streams.

use std::{sync::Arc, time::Duration};

use rubelet_cri::ContainerEvent;

use super::NumberedEvent;
use crate::{
    EntryKind, EventFault, EventOdds, Subject,
    event::{Dice, EventFaultEffect},
    state::SimState,
};

#[derive(Default)]
pub(crate) struct ActiveEventFaults {
    faults: Vec<EventFault>,
    odds: Option<(EventOdds, Dice)>,
    held: Vec<NumberedEvent>,
}

impl ActiveEventFaults {
    pub(crate) fn add(&mut self, fault: EventFault) {
        self.faults.push(fault);
    }

    pub(crate) fn set_odds(&mut self, odds: EventOdds, seed: u64) {
        self.odds = Some((odds, Dice::new(seed)));
    }

    /// Removes all faults. Held events stay held.
    pub(crate) fn clear(&mut self) {
        self.faults.clear();
        self.odds = None;
    }

    /// The effect of the oldest fault that matches; its count is decremented.
    fn take_matching(
        &mut self,
        event: &ContainerEvent,
        about: &Subject,
    ) -> Option<EventFaultEffect> {
        let mut faults = self.faults.iter();
        let index = faults.position(|fault| fault.fits(event, about))?;
        let fault = &mut self.faults[index];
        let effect = fault.effect.clone();
        if let Some(left) = &mut fault.left {
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.faults.remove(index);
            }
        }
        Some(effect)
    }
}

/// The same event, but about another pod or about none.
fn about(numbered: &NumberedEvent, pod: Option<&str>) -> NumberedEvent {
    let mut event = ContainerEvent::clone(&numbered.1);
    match pod {
        None => (event.sandbox, event.pod_uid) = (None, None),
        Some(uid) => event.pod_uid = Some(uid.to_owned()),
    }
    (numbered.0, Arc::new(event))
}

impl SimState {
    /// Publishes an event, subject to the injected faults.
    pub(super) fn inject_faults(
        &mut self,
        at: Duration,
        numbered: &NumberedEvent,
        subject: &Subject,
    ) {
        let late = Duration::ZERO;
        match self.events.event_faults.take_matching(&numbered.1, subject) {
            None => self.publish_with_odds(at, numbered),
            Some(EventFaultEffect::Lose) => {
                self.record_at(at, EntryKind::EventLost(numbered.0, "a fault"));
            }
            Some(EventFaultEffect::Double) => {
                self.publish(at, late, numbered);
                self.publish(at, late, numbered);
            }
            Some(EventFaultEffect::Delay(by)) => self.publish(at, by, numbered),
            Some(EventFaultEffect::Hold) => self.events.event_faults.held.push(numbered.clone()),
            Some(EventFaultEffect::WithoutSandbox) => {
                self.publish(at, late, &about(numbered, None));
            }
            Some(EventFaultEffect::WrongPod(uid)) => {
                self.publish(at, late, &about(numbered, Some(&uid)));
            }
        }
    }

    /// Publishes an event, subject to random faults if these are enabled.
    fn publish_with_odds(&mut self, at: Duration, numbered: &NumberedEvent) {
        let Some((odds, mut dice)) = self.events.event_faults.odds.take() else {
            self.publish(at, Duration::ZERO, numbered);
            return;
        };
        let earlier = self.events.history.len() - 1;
        let mut event = numbered.clone();
        if dice.hits(odds.without_sandbox) {
            event = about(&event, None);
        }
        if dice.hits(odds.wrong_pod) && earlier > 0 {
            let other = self.events.history[dice.below(earlier)].1.pod_uid.clone();
            event = about(&event, Some(other.as_deref().unwrap_or("nobody")));
        }
        if dice.hits(odds.lost) {
            self.record_at(at, EntryKind::EventLost(numbered.0, "chance"));
        } else {
            let copies = if dice.hits(odds.doubled) { 2 } else { 1 };
            for _ in 0..copies {
                let late = if dice.hits(odds.late) {
                    dice.up_to(odds.longest)
                } else {
                    Duration::ZERO
                };
                self.publish(at, late, &event);
            }
        }
        if dice.hits(odds.replayed) && earlier > 0 {
            let stale = self.events.history[dice.below(earlier)].clone();
            self.publish(at, Duration::ZERO, &stale);
        }
        if dice.hits(odds.cut) {
            self.cut_streams();
        }
        self.events.event_faults.odds = Some((odds, dice));
    }

    /// Sends held events, oldest first or newest first.
    pub(crate) fn release(&mut self, reversed: bool) {
        let mut held = std::mem::take(&mut self.events.event_faults.held);
        if reversed {
            held.reverse();
        }
        let now = self.clock.now();
        for numbered in held {
            self.publish(now, Duration::ZERO, &numbered);
        }
    }
}
