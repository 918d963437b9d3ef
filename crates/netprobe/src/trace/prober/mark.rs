//! The mark in the data of a probe: by it an answer that quotes the data is matched with its probe.

/// The length of a mark in bytes.
pub const MARK: usize = 10;

/// The identification of a probe in quoted data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuotedProbe {
    /// The probe with this number.
    Probe(u16),
    /// It is too short to tell, and may be of any probe of the round.
    TooShort,
    /// It is none of this round.
    Foreign,
}

/// Replaces `data` with that of a probe: `size` bytes, at least those of the mark.
pub fn write(nonce: u64, id: u16, size: usize, data: &mut Vec<u8>) {
    data.clear();
    data.extend(nonce.to_be_bytes());
    data.extend(id.to_be_bytes());
    data.resize(size.max(MARK), b'@');
}

/// Reads the mark in quoted data.
#[must_use]
pub fn read(nonce: u64, data: &[u8]) -> QuotedProbe {
    let nonce = nonce.to_be_bytes();
    match data.split_first_chunk::<8>() {
        Some((found, rest)) if *found == nonce => match rest.first_chunk() {
            Some(id) => QuotedProbe::Probe(u16::from_be_bytes(*id)),
            None => QuotedProbe::TooShort,
        },
        None if nonce.starts_with(data) => QuotedProbe::TooShort,
        _ => QuotedProbe::Foreign,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_quote_names_its_probe_or_is_too_short(
            nonce: u64, id: u16, size in 0_usize..60, end in 0_usize..70,
        ) {
            let mut data = vec![1];
            write(nonce, id, size, &mut data);
            prop_assert_eq!(data.len(), size.max(MARK));
            let quote = &data[..end.min(data.len())];
            let expected = match quote.len() >= MARK {
                true => QuotedProbe::Probe(id),
                false => QuotedProbe::TooShort,
            };
            prop_assert_eq!(read(nonce, quote), expected);
            if quote.len() >= 8 {
                prop_assert_eq!(read(!nonce, quote), QuotedProbe::Foreign);
            }
        }

        #[test]
        fn a_forged_quote_is_foreign(
            bytes in proptest::collection::vec(any::<u8>(), 8..40),
        ) {
            let nonce = 0x0123_4567_89ab_cdef;
            prop_assume!(!bytes.starts_with(&u64::to_be_bytes(nonce)));
            prop_assert_eq!(read(nonce, &bytes), QuotedProbe::Foreign);
        }
    }
}
