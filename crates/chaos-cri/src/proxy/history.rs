//! Events that went by, for faults that send old ones.

use std::collections::VecDeque;

use bytes::Bytes;

/// How many events are kept.
const MOST: usize = 10_000;
/// How many bytes of events are kept.
const MOST_BYTES: usize = 16 * 1024 * 1024;

/// The events that went by last, each with its prefix, the oldest first.
#[derive(Debug, Default)]
pub(super) struct History {
    events: VecDeque<Bytes>,
    bytes: usize,
}

impl History {
    pub(super) fn push(&mut self, event: &[u8]) {
        self.bytes += event.len();
        // A copy, because the slice would hold the buffer that it was read into.
        self.events.push_back(Bytes::copy_from_slice(event));
        while self.events.len() > MOST || self.bytes > MOST_BYTES {
            let Some(oldest) = self.events.pop_front() else {
                return;
            };
            self.bytes -= oldest.len();
        }
    }

    /// `count` events, the oldest first, and again from the start when there are too few.
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
            history.push(&vec![0; MOST_BYTES / 2]);
        }
        assert!(history.bytes <= MOST_BYTES && history.events.len() <= 2);
    }
}
