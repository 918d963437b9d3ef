//! The course of a ping to one target: when to send, what an answer means, when it ends. It reads no
//! clock and no socket: the time is an argument, since the start of the session.

use std::{collections::VecDeque, time::Duration};

use super::{
    answered::{AnsweredRequests, WINDOW},
    options::PingOptions,
};
use crate::{
    stamp::{SessionKey, Stamp, StampError},
    statistics::{Statistics, Summary},
};

/// In a flood, a request without an answer delays the next one by this.
const FLOOD_INTERVAL: Duration = Duration::from_millis(10);

/// Time for a full queue of this machine to drain.
const POSTPONE: Duration = Duration::from_millis(1);

/// The state of a ping to one target.
#[derive(Debug)]
pub struct PingRun {
    options: PingOptions,
    key: SessionKey,
    started: Duration,
    next_send: Duration,
    next_index: u64,
    /// Requests that are neither answered nor lost, with the times at which they were sent.
    pending: VecDeque<(u64, Duration)>,
    answered: AnsweredRequests,
    highest: Option<u64>,
    last_sent: Duration,
    statistics: Statistics,
}

/// The next action of a ping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PingAction {
    /// Send the request with this number, then call [`PingRun::on_sent`].
    Send(u64),
    /// Wait until this time, or until something arrives.
    Wait(Duration),
    /// It is over.
    Done,
}

/// The classification of a received datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyOutcome {
    /// One to a request of this run.
    Reply {
        /// The number of the request, from 0.
        index: u64,
        /// The round trip time, if requests carry their times.
        rtt: Option<Duration>,
        /// The request was answered before.
        duplicate: bool,
        /// A later request was answered before.
        reordered: bool,
    },
    /// It has other data than what was sent.
    Damaged,
    /// It answers nothing that was sent, and counts nowhere.
    Foreign,
}

impl PingRun {
    /// A run whose first request is sent at `started`.
    #[must_use]
    pub fn new(options: PingOptions, key: SessionKey, started: Duration) -> Self {
        Self {
            options,
            key,
            started,
            next_send: started,
            next_index: 0,
            pending: VecDeque::new(),
            answered: AnsweredRequests::default(),
            highest: None,
            last_sent: started,
            statistics: Statistics::default(),
        }
    }

    /// The next action.
    #[must_use]
    pub fn next(&self, now: Duration) -> PingAction {
        let deadline = self.options.deadline.map(|after| self.started + after);
        if deadline.is_some_and(|deadline| now >= deadline) || self.is_complete() {
            return PingAction::Done;
        }
        if self.sends_more() {
            if now >= self.next_send {
                return PingAction::Send(self.next_index);
            }
            return PingAction::Wait(earlier(self.next_send, deadline));
        }
        // Without a deadline nothing is sent any more: what is under way may still arrive.
        let until = self.last_sent + self.linger();
        match now >= until {
            true => PingAction::Done,
            false => PingAction::Wait(earlier(until, deadline)),
        }
    }

    /// Notes that the request with this number was sent.
    pub fn on_sent(&mut self, index: u64, now: Duration) {
        self.next_index = index + 1;
        self.answered.clear(index);
        self.pending.push_back((index, now));
        self.last_sent = now;
        self.statistics.on_sent();
        let step = match self.options.flood {
            true => FLOOD_INTERVAL,
            false => self.options.interval,
        };
        // A late request does not bring the following ones closer together.
        self.next_send = (self.next_send + step).max(now + step / 2);
        if self.options.flood {
            self.next_send = now + step;
        }
    }

    /// Notes that the next request can't be sent now, as a queue is full.
    pub(crate) fn postpone(&mut self, now: Duration) {
        self.next_send = now + POSTPONE;
    }

    /// Looks at the data of an echo reply with this sequence number, which arrived at `now`.
    pub fn on_reply(&mut self, sequence: u16, data: &[u8], now: Duration) -> ReplyOutcome {
        let stamp = match self.key.read(data, self.options.size) {
            Ok(stamp) => stamp,
            Err(StampError::Foreign) => return ReplyOutcome::Foreign,
            Err(StampError::Damaged) if self.index_of(sequence).is_none() => {
                return ReplyOutcome::Foreign;
            }
            Err(StampError::Damaged) => {
                self.statistics.on_damaged();
                return ReplyOutcome::Damaged;
            }
        };
        let index = match stamp {
            // The header is not protected by the tag.
            Some(Stamp { index, .. }) if index & 0xffff != u64::from(sequence.wrapping_sub(1)) => {
                return ReplyOutcome::Foreign;
            }
            Some(Stamp { index, .. }) if self.was_sent(index) => index,
            None => match self.index_of(sequence) {
                Some(index) => index,
                None => return ReplyOutcome::Foreign,
            },
            Some(_) => return ReplyOutcome::Foreign,
        };
        let rtt = stamp.map(|stamp| now.saturating_sub(stamp.sent));
        self.answered(index, rtt, now)
    }

    /// Counts an ICMP error or an error of this machine. Returns the number of the request, from 0, if
    /// the quoted sequence number is that of one.
    pub fn on_error(&mut self, sequence: Option<u16>) -> Option<u64> {
        self.statistics.on_error();
        sequence.and_then(|sequence| self.index_of(sequence))
    }

    /// The next request that counts as lost now.
    pub(crate) fn take_lost(&mut self, now: Duration) -> Option<u64> {
        while let Some((index, sent)) = self.pending.front().copied() {
            let answered = self.answered.contains(index);
            // Beyond the window its place is needed for another request.
            let expired = now >= sent + self.options.timeout || self.next_index - index >= WINDOW;
            if !answered && !expired {
                return None;
            }
            self.pending.pop_front();
            if !answered {
                return Some(index);
            }
        }
        None
    }

    /// The data of the request with this number.
    pub fn write_data(&self, index: u64, now: Duration, data: &mut Vec<u8>) {
        let stamp = Stamp { index, sent: now };
        self.key.write(stamp, self.options.size, data);
    }

    /// The result so far.
    #[must_use]
    pub fn summary(&self) -> Summary {
        self.statistics.summary()
    }

    /// The time since the start.
    #[must_use]
    pub fn elapsed(&self, now: Duration) -> Duration {
        now.saturating_sub(self.started)
    }

    fn answered(&mut self, index: u64, rtt: Option<Duration>, now: Duration) -> ReplyOutcome {
        let duplicate = !self.answered.insert(index);
        let reordered = !duplicate && self.highest.is_some_and(|highest| index < highest);
        if duplicate {
            self.statistics.on_duplicate();
        } else {
            self.statistics.on_reply(rtt, reordered);
            self.highest = self.highest.max(Some(index));
            if self.options.flood && index + 1 == self.next_index {
                self.next_send = now;
            }
        }
        ReplyOutcome::Reply {
            index,
            rtt,
            duplicate,
            reordered,
        }
    }

    fn was_sent(&self, index: u64) -> bool {
        index < self.next_index && self.next_index - index <= WINDOW
    }

    /// The latest request with this sequence number, which counts from 1.
    fn index_of(&self, sequence: u16) -> Option<u64> {
        let last = self.next_index.checked_sub(1)?;
        let wanted = u64::from(sequence.wrapping_sub(1));
        let back = last.wrapping_sub(wanted) & 0xffff;
        last.checked_sub(back)
    }

    fn sends_more(&self) -> bool {
        self.options.deadline.is_some()
            || self
                .options
                .count
                .is_none_or(|count| self.next_index < count)
    }

    /// Whether nothing more is waited for.
    fn is_complete(&self) -> bool {
        let Some(count) = self.options.count else {
            return false;
        };
        match self.options.deadline {
            Some(_) => self.statistics.received() >= count || self.statistics.errors() > 0,
            None => {
                let settled = self.statistics.received() + self.statistics.errors();
                self.next_index >= count && settled >= count
            }
        }
    }

    /// Time to wait for replies after the last request: twice the longest round trip time, if there
    /// was any reply.
    fn linger(&self) -> Duration {
        match self.statistics.received() {
            0 => self.options.timeout,
            _ => (self.statistics.longest() * 2)
                .max(self.options.interval)
                .min(self.options.timeout),
        }
    }
}

fn earlier(time: Duration, other: Option<Duration>) -> Duration {
    other.map_or(time, |other| time.min(other))
}

/// The sequence number of the request with this number: it counts from 1, and wraps around.
#[must_use]
pub fn sequence_of(index: u64) -> u16 {
    u16::try_from(index & 0xffff)
        .unwrap_or_default()
        .wrapping_add(1)
}

#[cfg(test)]
mod tests;
