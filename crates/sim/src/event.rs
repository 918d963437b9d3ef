//! How a model emits events, and the faults of their delivery.

use std::time::Duration;

use rubelet_base::SplitMix;
use rubelet_cri::{ContainerEvent, v1};

use crate::Subject;

/// The runtime whose events a model emulates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EventFlavour {
    /// Containerd 2.x. Emits all events of containers and sandboxes except for starts that failed. A
    /// stream with 100 pending events blocks calls that emit more. Without a stream, events are kept
    /// for five minutes; that a stream was dropped is noticed only with the next event, which is
    /// lost.
    #[default]
    Containerd,
    /// Containerd 1.7. The same events, through one queue of 1000 for all streams: each event
    /// reaches one of them, round robin. Without a stream they stay in the queue; while it is full,
    /// new ones are lost.
    Shared,
    /// CRI-O with events enabled. Emits no creation or removal of a sandbox, and no events of
    /// containers that are removed with their sandbox. Up to 1000 events before the first stream
    /// are kept; later, events without a stream are lost. While one stream has 1000 pending events,
    /// all streams lose new ones.
    CriO,
    /// Containerd 1.6: the RPC does not exist.
    None,
    /// CRI-O with events disabled: the stream ends without an error immediately.
    Closed,
}

/// A fault of single events. See [`Sim::inject_event`](crate::Sim::inject_event).
#[derive(Debug, Clone)]
pub struct EventFault {
    pub(crate) effect: EventFaultEffect,
    pub(crate) subject: Subject,
    pub(crate) kind: Option<v1::ContainerEventType>,
    pub(crate) left: Option<usize>,
}

#[derive(Debug, Clone)]
pub(crate) enum EventFaultEffect {
    Lose,
    Double,
    Delay(Duration),
    Hold,
    WithoutSandbox,
    WrongPod(String),
}

impl EventFault {
    fn new(effect: EventFaultEffect) -> Self {
        Self {
            effect,
            subject: Subject::any(),
            kind: None,
            left: Some(1),
        }
    }

    /// The next event is lost.
    #[must_use]
    pub fn lost() -> Self {
        Self::new(EventFaultEffect::Lose)
    }

    /// The next event is delivered twice.
    #[must_use]
    pub fn doubled() -> Self {
        Self::new(EventFaultEffect::Double)
    }

    /// The next event is delivered this much later; others overtake it.
    #[must_use]
    pub fn late(by: Duration) -> Self {
        Self::new(EventFaultEffect::Delay(by))
    }

    /// The next event is held until [`Sim::release_events`](crate::Sim::release_events).
    #[must_use]
    pub fn held() -> Self {
        Self::new(EventFaultEffect::Hold)
    }

    /// The next event names no sandbox and no pod.
    #[must_use]
    pub fn without_sandbox() -> Self {
        Self::new(EventFaultEffect::WithoutSandbox)
    }

    /// The next event has the UID of this pod.
    #[must_use]
    pub fn with_wrong_pod(uid: &str) -> Self {
        Self::new(EventFaultEffect::WrongPod(uid.to_owned()))
    }

    /// Only events about this subject. Its image is ignored.
    #[must_use]
    pub fn on(self, subject: Subject) -> Self {
        Self { subject, ..self }
    }

    /// Only events of this kind.
    #[must_use]
    pub fn of(self, kind: v1::ContainerEventType) -> Self {
        Self {
            kind: Some(kind),
            ..self
        }
    }

    /// This many events instead of one.
    #[must_use]
    pub fn times(self, times: usize) -> Self {
        Self {
            left: Some(times),
            ..self
        }
    }

    /// All events, until [`Sim::clear_faults`](crate::Sim::clear_faults).
    #[must_use]
    pub fn always(self) -> Self {
        Self { left: None, ..self }
    }

    pub(crate) fn fits(&self, event: &ContainerEvent, about: &Subject) -> bool {
        self.kind.is_none_or(|kind| kind == event.kind) && self.subject.matches(about)
    }
}

/// Probability of each random fault of events, in thousandths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventOdds {
    /// It is lost.
    pub lost: u16,
    /// It is delivered twice.
    pub doubled: u16,
    /// It, or its second copy, is delayed by up to `longest`.
    pub late: u16,
    /// It names no sandbox.
    pub without_sandbox: u16,
    /// It names the pod of an earlier event.
    pub wrong_pod: u16,
    /// An earlier event is delivered again after it.
    pub replayed: u16,
    /// All streams fail after it.
    pub cut: u16,
    /// The maximum delay of an event.
    pub longest: Duration,
}

impl EventOdds {
    /// Some faults of each kind.
    #[must_use]
    pub fn mixed() -> Self {
        Self {
            lost: 50,
            doubled: 50,
            late: 200,
            without_sandbox: 50,
            wrong_pod: 20,
            replayed: 50,
            cut: 10,
            longest: Duration::from_secs(2),
        }
    }
}

/// Random numbers that are the same for the same seed.
#[derive(Debug, Clone)]
pub(crate) struct Dice(SplitMix);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SplitMix::new(seed))
    }

    fn next(&mut self) -> u64 {
        self.0.next()
    }

    /// Any number below `end`, which is not zero.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.next() % end).unwrap_or(0)
    }

    /// True with this probability, in thousandths.
    pub(crate) fn hits(&mut self, per_mille: u16) -> bool {
        self.below(1000) < usize::from(per_mille)
    }

    /// A duration up to `longest`, in whole milliseconds.
    pub(crate) fn up_to(&mut self, longest: Duration) -> Duration {
        let millis = usize::try_from(longest.as_millis()).unwrap_or(usize::MAX - 1);
        let millis = self.below(millis.saturating_add(1));
        Duration::from_millis(u64::try_from(millis).unwrap_or(0))
    }
}
