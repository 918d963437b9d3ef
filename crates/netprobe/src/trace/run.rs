//! The course of a trace: which probe is sent when, what an answer means, when a hop is complete. It
//! reads no clock and no socket: the time is an argument, since the start of the session.

mod paths;

use std::{net::IpAddr, time::Duration};

use super::{
    event::{Hop, HopAnswer, HopProbe, TracePath},
    options::TraceOptions,
};
use crate::icmp_error::{IcmpError, IcmpMeaning};

/// A probe waits at least this long, whatever other answers say: this machine may be busy.
const LEAST_WAIT: Duration = Duration::from_millis(500);
/// A probe waits so many times as long as another one to the same hop took.
const SAME_HOP: u32 = 3;
/// A probe waits so many times as long as one to a farther hop took.
const FARTHER_HOP: u32 = 10;
/// Pause before probes are sent one by one: answers to earlier ones pass by.
const PAUSE: Duration = Duration::from_secs(1);
/// The shortest MTU of a link.
const LEAST_MTU: u16 = 68;

/// A probe to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// Its number.
    pub id: u16,
    /// Its TTL.
    pub ttl: u8,
    /// Its flow.
    pub flow: u8,
    /// Its length with its headers, in bytes.
    pub length: u16,
}

/// The next action of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceAction {
    /// Send this probe, then call [`TraceRun::on_sent`].
    Send(Probe),
    /// Wait until this time, or until something arrives.
    Wait(Duration),
    /// It is over.
    Done,
}

/// An answer, as a socket received it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceReply {
    /// The number of the probe; `None` if the answer quotes too little of it.
    pub id: Option<u16>,
    /// The sender.
    pub from: IpAddr,
    /// When it arrived.
    pub at: Duration,
    /// The ICMP error; `None` if the target answered the probe itself.
    pub icmp: Option<IcmpError>,
}

/// One probe. It was never sent, is under way, or has an outcome.
#[derive(Debug, Clone, Copy)]
struct ProbeState {
    ttl: u8,
    flow: u8,
    sent: Option<Duration>,
    outcome: Option<ProbeResult>,
    /// It stands in for one that was lost.
    repeated: bool,
}

impl ProbeState {
    fn is_under_way(&self) -> bool {
        self.sent.is_some() && self.outcome.is_none()
    }
}

#[derive(Debug, Clone, Copy)]
enum ProbeResult {
    Lost,
    /// Lost, and sent once more under another number.
    Replaced,
    Answered(HopAnswer),
}

/// The state of a trace.
#[derive(Debug)]
pub struct TraceRun {
    options: TraceOptions,
    probes: Vec<ProbeState>,
    /// The last TTL of each flow that has to be probed.
    last: Vec<u8>,
    /// The longest round trip time by TTL.
    slowest: [Option<Duration>; 256],
    window: usize,
    length: u16,
    /// MTUs that hops named, by TTL.
    mtus: Vec<(u8, u16)>,
    reported: u8,
    paused_until: Duration,
    reached: bool,
}

impl TraceRun {
    /// A trace with these options, of which no probe is sent yet. `longest` is the length of the
    /// first probes of a search for MTUs.
    #[must_use]
    pub fn new(options: TraceOptions, longest: u16) -> Self {
        let options = options.bounded();
        let probes = (options.first..=options.max)
            .flat_map(|ttl| (0..options.flows).map(move |flow| (ttl, flow)))
            .flat_map(|probe| (0..options.queries).map(move |_| probe))
            .map(|(ttl, flow)| ProbeState {
                ttl,
                flow,
                sent: None,
                outcome: None,
                repeated: false,
            })
            .collect();
        Self {
            probes,
            last: vec![options.max; usize::from(options.flows)],
            slowest: [None; 256],
            window: usize::from(options.window),
            length: if options.mtu { longest } else { options.length },
            mtus: Vec::new(),
            reported: options.first - 1,
            paused_until: Duration::ZERO,
            reached: false,
            options,
        }
    }

    /// The next action. Probes whose timeout has passed count as lost.
    pub fn next(&mut self, now: Duration) -> TraceAction {
        let mut wake: Option<Duration> = None;
        let mut flying = 0;
        let mut expired = false;
        let waits = self.waits();
        for probe in &mut self.probes {
            let Some(sent) = probe.sent.filter(|_| probe.outcome.is_none()) else {
                continue;
            };
            // What lies behind the target is not waited for.
            let behind = probe.ttl > self.last[usize::from(probe.flow)];
            let expires = sent + waits[usize::from(probe.ttl)];
            if behind || now >= expires {
                probe.outcome = Some(ProbeResult::Lost);
                expired = true;
            } else {
                flying += 1;
                wake = Some(wake.map_or(expires, |wake| wake.min(expires)));
            }
        }
        if expired {
            self.repeat_silent_hops();
        }
        if flying < self.window
            && let Some(probe) = self.unsent()
        {
            if now >= self.paused_until {
                return TraceAction::Send(probe);
            }
            let until = self.paused_until;
            wake = Some(wake.map_or(until, |wake| wake.min(until)));
        }
        wake.map_or(TraceAction::Done, TraceAction::Wait)
    }

    /// Notes that a probe was sent.
    pub fn on_sent(&mut self, id: u16, now: Duration) {
        if let Some(probe) = self.probes.get_mut(usize::from(id)) {
            probe.sent = Some(now);
        }
    }

    /// Notes that a probe was not sent, as a queue of this machine is full: it is sent at `until`.
    pub(crate) fn postpone(&mut self, id: u16, until: Duration) {
        if let Some(probe) = self.probes.get_mut(usize::from(id)) {
            probe.sent = None;
        }
        self.paused_until = until;
    }

    /// Notes an answer. One to a probe that is answered or lost already changes nothing.
    pub fn on_answer(&mut self, answer: TraceReply) {
        let Some(number) = self.probe_of(&answer) else {
            return;
        };
        let probe = self.probes[number];
        let Some(sent) = probe.sent.filter(|_| probe.outcome.is_none()) else {
            return;
        };
        let meaning = answer.icmp.map(IcmpError::meaning);
        if meaning == Some(IcmpMeaning::TooBig) && self.options.mtu {
            self.shorten(number, answer.icmp.map_or(0, |icmp| icmp.mtu));
            return;
        }
        let reached = matches!(meaning, None | Some(IcmpMeaning::PortUnreachable));
        self.reached |= reached;
        let rtt = answer.at.saturating_sub(sent);
        let slowest = &mut self.slowest[usize::from(probe.ttl)];
        *slowest = (*slowest).max(Some(rtt));
        self.probes[number].outcome = Some(ProbeResult::Answered(HopAnswer {
            from: answer.from,
            rtt,
            reached,
            icmp: answer.icmp,
        }));
        if meaning != Some(IcmpMeaning::TimeExceeded) {
            let last = &mut self.last[usize::from(probe.flow)];
            *last = (*last).min(probe.ttl);
        }
    }

    /// Notes that the kernel of this machine refused a probe as too long for a link that has this
    /// MTU. Its errors name no probe: it is the only one under way.
    pub(crate) fn on_too_long(&mut self, id: Option<u16>, mtu: u32) {
        let number = match id {
            Some(id) => Some(usize::from(id)),
            None => self.only_one_under_way(),
        };
        if let Some(number) = number {
            self.shorten(number, mtu);
        }
    }

    /// The next hop, in the order of their TTLs, once all of its probes are answered or lost.
    pub fn take_hop(&mut self) -> Option<Hop> {
        let ttl = self.reported.checked_add(1)?;
        if ttl > self.last.iter().copied().max()? {
            return None;
        }
        let probes = self.probes.iter();
        let wanted = probes.filter(|probe| self.belongs_to(probe, ttl));
        let mut results = Vec::new();
        for probe in wanted {
            results.push(HopProbe {
                flow: probe.flow,
                answer: match probe.outcome? {
                    ProbeResult::Lost | ProbeResult::Replaced => None,
                    ProbeResult::Answered(answer) => Some(answer),
                },
            });
        }
        self.reported = ttl;
        let mtu = self.mtus.iter().rfind(|(hop, _)| *hop == ttl);
        Some(Hop {
            ttl,
            probes: results,
            mtu: mtu.map(|(_, mtu)| *mtu),
        })
    }

    /// Whether an answer to this probe is waited for.
    #[must_use]
    pub fn is_waiting(&self, id: u16) -> bool {
        let probe = self.probes.get(usize::from(id));
        probe.is_some_and(ProbeState::is_under_way)
    }

    /// The distance of the target, once it is known.
    #[must_use]
    pub fn distance(&self) -> Option<u8> {
        self.last.iter().copied().max().filter(|_| self.reached)
    }

    /// Whether the target answered.
    #[must_use]
    pub fn reached(&self) -> bool {
        self.reached
    }

    /// The different ways of the flows.
    #[must_use]
    pub fn paths(&self) -> Vec<TracePath> {
        paths::of(self)
    }

    /// Probes a hop once more that answered nothing while a farther one did. A burst of probes may
    /// overflow what a queue on the way holds, while a neighbour's link-layer address is asked for or
    /// a link comes up, and then the target would seem to be farther away than it is.
    fn repeat_silent_hops(&mut self) {
        // A round is repeated anyway, and its losses are counted.
        if self.options.rounds.is_some() {
            return;
        }
        let probes = self.probes.iter();
        let answered =
            probes.filter(|probe| matches!(probe.outcome, Some(ProbeResult::Answered(_))));
        let Some(farthest) = answered.map(|probe| probe.ttl).max() else {
            return;
        };
        for ttl in self.reported + 1..farthest {
            let wanted = self.probes.iter().enumerate();
            let wanted = wanted.filter(|(_, probe)| self.belongs_to(probe, ttl));
            let (numbers, hop): (Vec<_>, Vec<_>) = wanted.map(|(at, probe)| (at, *probe)).unzip();
            let silent = hop
                .iter()
                .all(|probe| matches!(probe.outcome, Some(ProbeResult::Lost)) && !probe.repeated);
            if !silent || self.probes.len() + hop.len() > usize::from(u16::MAX) {
                continue;
            }
            for number in numbers {
                self.probes[number].outcome = Some(ProbeResult::Replaced);
            }
            // Numbers of their own: the time of a late answer to the first attempt would be wrong.
            self.probes.extend(hop.iter().map(|probe| ProbeState {
                sent: None,
                outcome: None,
                repeated: true,
                ..*probe
            }));
        }
    }

    /// Whether a probe is one of a hop that is reported.
    fn belongs_to(&self, probe: &ProbeState, ttl: u8) -> bool {
        probe.ttl == ttl
            && ttl <= self.last[usize::from(probe.flow)]
            && !matches!(probe.outcome, Some(ProbeResult::Replaced))
    }

    /// The timeouts of the probes of each TTL.
    fn waits(&self) -> [Duration; 256] {
        let mut waits = [self.options.wait; 256];
        let mut farther = None;
        for (wait, slowest) in waits.iter_mut().zip(&self.slowest).rev() {
            let same = slowest.map(|rtt| rtt * SAME_HOP);
            let known = same.or(farther.map(|rtt: Duration| rtt * FARTHER_HOP));
            if let Some(known) = known {
                *wait = known.max(LEAST_WAIT).min(*wait);
            }
            farther = farther.max(*slowest);
        }
        waits
    }

    /// The next probe that was never sent.
    fn unsent(&self) -> Option<Probe> {
        let (id, probe) = self.probes.iter().enumerate().find(|(_, probe)| {
            probe.sent.is_none()
                && probe.outcome.is_none()
                && probe.ttl <= self.last[usize::from(probe.flow)]
        })?;
        Some(Probe {
            id: u16::try_from(id).ok()?,
            ttl: probe.ttl,
            flow: probe.flow,
            length: self.length,
        })
    }

    /// The probe that an answer is for. Without a number it is the only one under way; if there are
    /// several, all are sent again, one by one.
    fn probe_of(&mut self, answer: &TraceReply) -> Option<usize> {
        if let Some(id) = answer.id {
            return Some(usize::from(id)).filter(|id| *id < self.probes.len());
        }
        if let Some(number) = self.only_one_under_way() {
            return Some(number);
        }
        let under_way = self.probes.iter_mut().filter(|probe| probe.is_under_way());
        for probe in under_way {
            probe.sent = None;
            // With one probe at a time it does not come here again: a host cannot prolong the
            // pause.
            self.window = 1;
            self.paused_until = answer.at + PAUSE;
        }
        None
    }

    fn only_one_under_way(&self) -> Option<usize> {
        let mut under_way = (0..self.probes.len()).filter(|id| self.probes[*id].is_under_way());
        let first = under_way.next();
        first.filter(|_| under_way.next().is_none())
    }

    /// Sends a probe again, shorter. An MTU that is none says only that the probe was too long.
    fn shorten(&mut self, number: usize, mtu: u32) {
        let Some(probe) = self.probes.get_mut(number) else {
            return;
        };
        if probe.outcome.is_some() {
            return;
        }
        let named = u16::try_from(mtu).ok();
        let mtu = named.filter(|mtu| (LEAST_MTU..self.length).contains(mtu));
        let shorter =
            || Some(self.length - (self.length / 8).max(1)).filter(|mtu| *mtu > LEAST_MTU);
        let Some(mtu) = mtu.or_else(shorter) else {
            probe.outcome = Some(ProbeResult::Lost);
            return;
        };
        probe.sent = None;
        self.length = mtu;
        self.mtus.push((probe.ttl, mtu));
    }
}

#[cfg(test)]
mod tests;
