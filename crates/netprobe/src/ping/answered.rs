//! The answered ones of the last requests, as a ring of bits.

/// Number of requests that are tracked: all that 16 bits of a sequence number distinguish.
pub const WINDOW: u64 = 65_536;

/// One bit for each of the last [`WINDOW`] requests.
#[derive(Debug, Clone)]
pub(crate) struct AnsweredRequests {
    bits: Vec<u64>,
}

impl Default for AnsweredRequests {
    fn default() -> Self {
        let words = usize::try_from(WINDOW / 64).unwrap_or_default();
        Self {
            bits: vec![0; words],
        }
    }
}

impl AnsweredRequests {
    /// Forgets the request that had the place of this one before.
    pub(crate) fn clear(&mut self, index: u64) {
        let (word, bit) = place(index);
        self.bits[word] &= !bit;
    }

    /// Notes an answer; false if there was one already.
    pub(crate) fn insert(&mut self, index: u64) -> bool {
        let (word, bit) = place(index);
        let first = self.bits[word] & bit == 0;
        self.bits[word] |= bit;
        first
    }

    /// Whether the request was answered.
    #[must_use]
    pub(crate) fn contains(&self, index: u64) -> bool {
        let (word, bit) = place(index);
        self.bits[word] & bit != 0
    }
}

fn place(index: u64) -> (usize, u64) {
    let index = index % WINDOW;
    (
        usize::try_from(index / 64).unwrap_or_default(),
        1 << (index % 64),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_answered_once_until_its_place_is_used_again() {
        let mut answered = AnsweredRequests::default();
        for index in [0, 63, 64, WINDOW - 1] {
            assert!(answered.insert(index) && !answered.insert(index), "{index}");
        }
        assert!(!answered.contains(65));
        answered.clear(WINDOW + 64);
        assert!(!answered.contains(64) && answered.contains(63));
    }
}
