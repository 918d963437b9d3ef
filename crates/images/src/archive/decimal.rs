//! Numbers in records of archives.

/// Parses decimal digits; `None` for anything else, and for more than 64 bits.
pub(super) fn decimal(text: &[u8]) -> Option<u64> {
    let is_number = !text.is_empty() && text.len() <= 20 && text.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(text).ok().filter(|_| is_number)?;
    text.parse().ok()
}
