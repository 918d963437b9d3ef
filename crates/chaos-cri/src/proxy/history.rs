//! Past events, for faults that send old ones.

use std::collections::VecDeque;

use bytes::Bytes;

/// Maximum number of events.
const MAX_EVENTS: usize = 10_000;
/// Maximum size of all events, in bytes.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// The latest events, each with its prefix, the oldest first.
#[derive(Debug, Default)]
pub(super) struct History {
    events: VecDeque<Bytes>,
    bytes: usize,
}

impl History {
    pub(super) fn push(&mut self, event: &[u8]) {
        self.bytes += event.len();
        // A copy, because the slice would keep the whole read buffer alive.
        self.events.push_back(Bytes::copy_from_slice(event));
        while self.events.len() > MAX_EVENTS || self.bytes > MAX_BYTES {
            let Some(oldest) = self.events.pop_front() else {
                return;
            };
            self.bytes -= oldest.len();
        }
    }

    /// `count` events, the oldest first, repeated if there are fewer.
    pub(super) fn replay(&self, count: u64) -> Vec<Bytes> {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        self.events.iter().cycle().take(count).cloned().collect()
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &Bytes> {
        self.events.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_events_are_sent_again_and_their_memory_is_bounded() {
        let mut history = History::default();
        assert!(history.replay(5).is_empty());
        for number in 0..3_u8 {
            history.push(&[number]);
        }
        let sent: Vec<u8> = history.replay(5).iter().map(|event| event[0]).collect();
        assert_eq!(sent, [0, 1, 2, 0, 1]);
        for _ in 0..3 {
            history.push(&vec![0; MAX_BYTES / 2]);
        }
        assert!(history.bytes <= MAX_BYTES && history.events.len() <= 2);
    }
}
