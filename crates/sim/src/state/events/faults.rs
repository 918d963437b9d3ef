//! What goes wrong with an event between the runtime and its streams.

use std::{sync::Arc, time::Duration};

use rubelet_cri::ContainerEvent;

use super::NumberedEvent;
use crate::{
    EntryKind, EventFault, EventOdds, Subject,
    event::{Dice, Mishap},
    state::State,
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

    pub(crate) fn roughen(&mut self, odds: EventOdds, seed: u64) {
        self.odds = Some((odds, Dice::new(seed)));
    }

    /// Nothing goes wrong any more. What is held stays held.
    pub(crate) fn clear(&mut self) {
        self.faults.clear();
        self.odds = None;
    }

    /// The oldest fault that fits; used up where it has a count.
    fn strike(&mut self, event: &ContainerEvent, about: &Subject) -> Option<Mishap> {
        let mut faults = self.faults.iter();
        let index = faults.position(|fault| fault.fits(event, about))?;
        let fault = &mut self.faults[index];
        let mishap = fault.mishap.clone();
        if let Some(left) = &mut fault.left {
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.faults.remove(index);
            }
        }
        Some(mishap)
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

impl State {
    /// Publishes an event as well as the faults let it.
    pub(super) fn inject_faults(
        &mut self,
        at: Duration,
        numbered: &NumberedEvent,
        subject: &Subject,
    ) {
        let late = Duration::ZERO;
        match self.events.event_faults.strike(&numbered.1, subject) {
            None => self.throw(at, numbered),
            Some(Mishap::Lose) => self.note_at(at, EntryKind::EventLost(numbered.0, "a fault")),
            Some(Mishap::Double) => {
                self.publish(at, late, numbered);
                self.publish(at, late, numbered);
            }
            Some(Mishap::Delay(by)) => self.publish(at, by, numbered),
            Some(Mishap::Hold) => self.events.event_faults.held.push(numbered.clone()),
            Some(Mishap::WithoutSandbox) => self.publish(at, late, &about(numbered, None)),
            Some(Mishap::WrongPod(uid)) => self.publish(at, late, &about(numbered, Some(&uid))),
        }
    }

    /// Publishes an event as well as chance lets it, where that has a say.
    fn throw(&mut self, at: Duration, numbered: &NumberedEvent) {
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
            self.note_at(at, EntryKind::EventLost(numbered.0, "chance"));
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

    /// Sends what was held, oldest first or newest first.
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
