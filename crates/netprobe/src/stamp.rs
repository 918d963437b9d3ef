//! The stamp in the data of an echo request: the number of the request, when it was sent, and a tag
//! that only the session can compute. A reply carries it back, so late, doubled and reordered replies
//! are matched without any memory of what was sent, and a forged one is recognized.

use std::{
    hash::{DefaultHasher, Hasher},
    time::Duration,
};

/// The length of a stamp in bytes. Requests with less data are sent without one, and their round trip
/// times are unknown.
pub const STAMP: usize = 24;

/// The secret of one session.
#[derive(Debug, Clone, Copy)]
pub struct SessionKey(u64);

/// The number of a request, and the time at which it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// The number of the request, from 0 without wrapping around.
    pub index: u64,
    /// When it was sent, since the start of the session.
    pub sent: Duration,
}

/// Why data is not that of a request of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StampError {
    /// The data has another length, or was changed behind the stamp.
    #[error("the data differs from what was sent")]
    Damaged,
    /// Not of this session, or forged.
    #[error("the reply belongs to another session")]
    Foreign,
}

impl SessionKey {
    /// A key from a random number.
    #[must_use]
    pub fn new(random: u64) -> Self {
        Self(random)
    }

    /// Replaces `data` with that of a request: `size` bytes, of which the first are the stamp if it
    /// fits.
    pub fn write(self, stamp: Stamp, size: usize, data: &mut Vec<u8>) {
        data.clear();
        if size >= STAMP {
            let sent = nanos(stamp.sent);
            data.extend(stamp.index.to_be_bytes());
            data.extend(sent.to_be_bytes());
            data.extend(self.tag(stamp.index, sent).to_be_bytes());
        }
        data.extend((data.len()..size).map(filler));
    }

    /// Reads the stamp in the data of a reply; `None` if the session's requests, which have `size`
    /// bytes, carry none.
    ///
    /// # Errors
    /// The data is not that of a request of this session.
    pub fn read(self, data: &[u8], size: usize) -> Result<Option<Stamp>, StampError> {
        if size < STAMP {
            let same = data.len() == size && is_filler(data, 0);
            return same.then_some(None).ok_or(StampError::Damaged);
        }
        let word = |at: usize| -> Option<u64> {
            Some(u64::from_be_bytes(*data.get(at..)?.first_chunk()?))
        };
        let (Some(index), Some(sent), Some(tag)) = (word(0), word(8), word(16)) else {
            return Err(StampError::Damaged);
        };
        if tag != self.tag(index, sent) {
            return Err(StampError::Foreign);
        }
        if data.len() != size || !is_filler(&data[STAMP..], STAMP) {
            return Err(StampError::Damaged);
        }
        let sent = Duration::from_nanos(sent);
        Ok(Some(Stamp { index, sent }))
    }

    fn tag(self, index: u64, sent: u64) -> u64 {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.0);
        hasher.write_u64(index);
        hasher.write_u64(sent);
        hasher.finish()
    }
}

/// The byte at a position behind the stamp: counted up, as ping fills its packets.
fn filler(position: usize) -> u8 {
    u8::try_from(position % 256).unwrap_or_default()
}

fn is_filler(bytes: &[u8], first: usize) -> bool {
    (first..).zip(bytes).all(|(at, byte)| *byte == filler(at))
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn short_data_has_no_stamp_and_must_be_whole() {
        let key = SessionKey::new(1);
        let stamp = Stamp {
            index: 5,
            sent: Duration::from_secs(1),
        };
        let mut data = Vec::new();
        key.write(stamp, STAMP - 1, &mut data);
        assert_eq!(data.len(), STAMP - 1);
        assert_eq!(key.read(&data, STAMP - 1), Ok(None));
        data[3] ^= 1;
        assert_eq!(key.read(&data, STAMP - 1), Err(StampError::Damaged));
        assert_eq!(key.read(&[], STAMP - 1), Err(StampError::Damaged));
        assert_eq!(key.read(&[], 0), Ok(None));
    }

    proptest! {
        #[test]
        fn a_stamp_is_read_again_by_its_own_session(
            random: u64, index: u64, sent: u64, size in STAMP..200,
        ) {
            let key = SessionKey::new(random);
            let stamp = Stamp { index, sent: Duration::from_nanos(sent) };
            let mut data = vec![7];
            key.write(stamp, size, &mut data);
            prop_assert_eq!(data.len(), size);
            prop_assert_eq!(key.read(&data, size), Ok(Some(stamp)));
            let other = SessionKey::new(random.wrapping_add(1));
            prop_assert_eq!(other.read(&data, size), Err(StampError::Foreign));
        }

        #[test]
        fn a_changed_byte_is_noticed(
            index: u64, size in STAMP..100, at: proptest::sample::Index, bit in 0_u32..8,
        ) {
            let key = SessionKey::new(3);
            let stamp = Stamp { index, sent: Duration::from_secs(9) };
            let mut data = Vec::new();
            key.write(stamp, size, &mut data);
            data[at.index(size)] ^= 1 << bit;
            prop_assert!(key.read(&data, size).is_err());
            data.truncate(at.index(size));
            prop_assert!(key.read(&data, size).is_err());
        }

        #[test]
        fn any_bytes_are_refused(
            bytes in proptest::collection::vec(any::<u8>(), 0..100), size in STAMP..100,
        ) {
            prop_assert!(SessionKey::new(77).read(&bytes, size).is_err());
        }
    }
}
