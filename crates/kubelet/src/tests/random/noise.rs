//! What goes wrong with events.

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

/// Something that happens to events on their way, or to the clock.
#[derive(Debug, Clone, Copy)]
pub(super) enum Noise {
    /// The streams break.
    Cut,
    /// The runtime ends the streams.
    End,
    /// The streams get nothing any more.
    Mute,
    /// For so many milliseconds no stream gets anything.
    Withhold(u64),
    /// The last events come again.
    Replay(usize),
    /// From now on chance decides what goes wrong.
    Rough(u64),
    /// One thing goes wrong with the next events of a kind.
    Spoil {
        mishap: usize,
        kind: usize,
        times: usize,
        late: u64,
    },
    /// What was held comes now.
    Release(bool),
    /// The runtime is replaced by one with other ways.
    Become(usize),
    /// Somebody sets the clock.
    Step(i64),
}

pub(super) fn noise() -> impl Strategy<Value = Noise> {
    let spoil = (0_usize..6, 0..KINDS.len(), 1_usize..6, 0_u64..3000);
    prop_oneof![
        3 => Just(Noise::Cut),
        1 => Just(Noise::End),
        2 => Just(Noise::Mute),
        1 => (0_u64..20_000).prop_map(Noise::Withhold),
        3 => (1_usize..60).prop_map(Noise::Replay),
        3 => any::<u64>().prop_map(Noise::Rough),
        6 => spoil.prop_map(|(mishap, kind, times, late)| {
            Noise::Spoil { mishap, kind, times, late }
        }),
        2 => any::<bool>().prop_map(Noise::Release),
        1 => (0..FLAVOURS.len()).prop_map(Noise::Become),
        1 => prop_oneof![Just(-3600_i64), Just(3600)].prop_map(Noise::Step),
    ]
}

impl Noise {
    /// Whether changes may happen after this of which no event ever tells, on a stream that is
    /// open.
    pub(super) fn eats(&self) -> bool {
        match self {
            Self::Mute | Self::Withhold(_) | Self::Rough(_) | Self::Become(_) => true,
            Self::Spoil { mishap, .. } => matches!(mishap, 0 | 3 | 4 | 5),
            Self::Cut | Self::End | Self::Replay(_) | Self::Release(_) | Self::Step(_) => false,
        }
    }

    /// Whether events may come after this that name the wrong pod, so that pods are looked at for
    /// containers of others.
    pub(super) fn misleads(&self) -> bool {
        matches!(self, Self::Rough(_) | Self::Spoil { mishap: 5, .. })
    }

    /// Lets it happen. Returns how long events must be withheld, if they are.
    pub(super) fn make(&self, node: &Node, uid: &str) -> Option<Duration> {
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
            Self::Rough(seed) => sim.inject_random_event_faults(EventOdds::mixed(), *seed),
            Self::Spoil {
                mishap,
                kind,
                times,
                late,
            } => {
                let fault = match mishap {
                    0 => EventFault::lost(),
                    1 => EventFault::doubled(),
                    2 => EventFault::late(Duration::from_millis(*late)),
                    3 => EventFault::held(),
                    4 => EventFault::without_sandbox(),
                    _ => EventFault::with_wrong_pod(uid),
                };
                sim.inject_event(fault.of(KINDS[*kind]).times(*times));
            }
            Self::Release(true) => sim.release_events_reversed(),
            Self::Release(false) => sim.release_events(),
            Self::Become(flavour) => sim.events(FLAVOURS[*flavour]),
            Self::Step(seconds) => node.step_clock(*seconds),
        }
        None
    }
}
