//! Faults of events and of the clock.

use proptest::prelude::*;
use rubelet_cri::v1::ContainerEventType as Kind;
use rubelet_sim::{EventFault, EventFlavour, EventOdds};
use std::time::Duration;

use crate::tests::node::Node;

pub(super) const FLAVOURS: [EventFlavour; 5] = [
    EventFlavour::Containerd,
    EventFlavour::Shared,
    EventFlavour::CriO,
    EventFlavour::None,
    EventFlavour::Closed,
];
const KINDS: [Kind; 4] = [
    Kind::ContainerCreatedEvent,
    Kind::ContainerStartedEvent,
    Kind::ContainerStoppedEvent,
    Kind::ContainerDeletedEvent,
];

/// A fault in the delivery of events, or a step of the clock.
#[derive(Debug, Clone, Copy)]
pub(super) enum Noise {
    /// The streams break.
    Cut,
    /// The runtime ends the streams.
    End,
    /// The streams stay open and deliver nothing any more.
    Mute,
    /// For so many milliseconds no stream delivers events.
    Withhold(u64),
    /// The last events are delivered again.
    Replay(usize),
    /// From now on events have random faults, from this seed.
    RandomFaults(u64),
    /// The next events of a kind have this fault.
    FaultEvents {
        fault: usize,
        kind: usize,
        times: usize,
        late: u64,
    },
    /// Events that were held back are delivered, in order or in reverse.
    DeliverHeld(bool),
    /// The runtime emits events as another implementation does.
    ChangeFlavour(usize),
    /// The wall clock is stepped by so many seconds.
    StepClock(i64),
}

pub(super) fn noise() -> impl Strategy<Value = Noise> {
    let faults = (0_usize..6, 0..KINDS.len(), 1_usize..6, 0_u64..3000);
    prop_oneof![
        3 => Just(Noise::Cut),
        1 => Just(Noise::End),
        2 => Just(Noise::Mute),
        1 => (0_u64..20_000).prop_map(Noise::Withhold),
        3 => (1_usize..60).prop_map(Noise::Replay),
        3 => any::<u64>().prop_map(Noise::RandomFaults),
        6 => faults.prop_map(|(fault, kind, times, late)| {
            Noise::FaultEvents { fault, kind, times, late }
        }),
        2 => any::<bool>().prop_map(Noise::DeliverHeld),
        1 => (0..FLAVOURS.len()).prop_map(Noise::ChangeFlavour),
        1 => prop_oneof![Just(-3600_i64), Just(3600)].prop_map(Noise::StepClock),
    ]
}

impl Noise {
    /// Whether changes may then happen that no event ever reports on an open stream.
    pub(super) fn may_lose_changes(&self) -> bool {
        match self {
            Self::Mute | Self::Withhold(_) | Self::RandomFaults(_) | Self::ChangeFlavour(_) => true,
            Self::FaultEvents { fault, .. } => matches!(fault, 0 | 3 | 4 | 5),
            Self::Cut | Self::End | Self::Replay(_) | Self::DeliverHeld(_) | Self::StepClock(_) => {
                false
            }
        }
    }

    /// Whether events may then name the wrong pod, so that the wrong pods are inspected.
    pub(super) fn may_name_wrong_pod(&self) -> bool {
        matches!(
            self,
            Self::RandomFaults(_) | Self::FaultEvents { fault: 5, .. }
        )
    }

    /// Applies the fault. Returns how long events are to be withheld, if they are.
    pub(super) fn apply(&self, node: &Node, uid: &str) -> Option<Duration> {
        let sim = &node.sim;
        match self {
            Self::Cut => sim.cut_events(),
            Self::End => sim.end_events(),
            Self::Mute => sim.mute_events(),
            Self::Withhold(time) => {
                sim.withhold_events(true);
                return Some(Duration::from_millis(*time));
            }
            Self::Replay(count) => sim.replay_events(*count),
            Self::RandomFaults(seed) => sim.inject_random_event_faults(EventOdds::mixed(), *seed),
            Self::FaultEvents {
                fault,
                kind,
                times,
                late,
            } => {
                let fault = match fault {
                    0 => EventFault::lost(),
                    1 => EventFault::doubled(),
                    2 => EventFault::late(Duration::from_millis(*late)),
                    3 => EventFault::held(),
                    4 => EventFault::without_sandbox(),
                    _ => EventFault::with_wrong_pod(uid),
                };
                sim.inject_event(fault.of(KINDS[*kind]).times(*times));
            }
            Self::DeliverHeld(true) => sim.release_events_reversed(),
            Self::DeliverHeld(false) => sim.release_events(),
            Self::ChangeFlavour(flavour) => sim.events(FLAVOURS[*flavour]),
            Self::StepClock(seconds) => node.step_clock(*seconds),
        }
        None
    }
}
