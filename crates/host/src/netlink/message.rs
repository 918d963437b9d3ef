//! Netlink messages: serialized into one buffer, and parsed.
//!
//! The layout is that of `linux/netlink.h`: everything is in native byte order and aligned to four
//! bytes.

/// Length of `struct nlmsghdr`.
const HEADER: usize = 16;

/// Marks an attribute that holds attributes.
const NESTED: u16 = 0x8000;

/// Messages that are sent together; the kernel handles them in order.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    bytes: Vec<u8>,
    begin: usize,
    count: u32,
}

impl Messages {
    /// Starts a message; `header` is its family's header before the attributes. The sequence number
    /// is the message's index, from 0.
    pub(crate) fn begin(&mut self, kind: u16, flags: u16, header: &[u8]) -> &mut Self {
        self.begin = self.bytes.len();
        self.bytes.extend(0u32.to_ne_bytes());
        self.bytes.extend(kind.to_ne_bytes());
        self.bytes.extend(flags.to_ne_bytes());
        self.bytes.extend(self.count.to_ne_bytes());
        self.bytes.extend(0u32.to_ne_bytes());
        self.count += 1;
        self.bytes.extend(header);
        self.pad();
        self.measure();
        self
    }

    /// Adds an attribute.
    pub(crate) fn attribute(&mut self, kind: u16, value: &[u8]) -> &mut Self {
        let length = u16::try_from(value.len() + 4).expect("attributes are short");
        self.bytes.extend(length.to_ne_bytes());
        self.bytes.extend(kind.to_ne_bytes());
        self.bytes.extend(value);
        self.pad();
        self.measure();
        self
    }

    /// Adds an attribute with a number in the machine's byte order.
    pub(crate) fn number(&mut self, kind: u16, value: u32) -> &mut Self {
        self.attribute(kind, &value.to_ne_bytes())
    }

    /// Adds an attribute with a number in network byte order, as nfnetlink has them.
    pub(crate) fn network_number(&mut self, kind: u16, value: u32) -> &mut Self {
        self.attribute(kind, &value.to_be_bytes())
    }

    /// Adds a NUL-terminated text attribute.
    pub(crate) fn text(&mut self, kind: u16, value: &str) -> &mut Self {
        let mut bytes = value.as_bytes().to_vec();
        bytes.push(0);
        self.attribute(kind, &bytes)
    }

    /// Adds an attribute that contains what `fill` adds.
    pub(crate) fn nest(&mut self, kind: u16, fill: impl FnOnce(&mut Self)) -> &mut Self {
        self.nest_with(kind, &[], fill)
    }

    /// Like [`Self::nest`], with a structure before the attributes.
    pub(crate) fn nest_with(
        &mut self,
        kind: u16,
        structure: &[u8],
        fill: impl FnOnce(&mut Self),
    ) -> &mut Self {
        let start = self.bytes.len();
        self.attribute(kind | NESTED, structure);
        fill(self);
        let length = u16::try_from(self.bytes.len() - start).expect("nests are short");
        self.bytes[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        self
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn measure(&mut self) {
        let length = u32::try_from(self.bytes.len() - self.begin).expect("messages are short");
        self.bytes[self.begin..self.begin + 4].copy_from_slice(&length.to_ne_bytes());
    }

    /// Requests an acknowledgement of the last message and returns its sequence number.
    pub(crate) fn acknowledge_last(&mut self) -> u32 {
        let place = self.begin + 6;
        let flags = short(&self.bytes, place).unwrap_or(0) | 4;
        self.bytes[place..place + 2].copy_from_slice(&flags.to_ne_bytes());
        self.count.saturating_sub(1)
    }

    /// The messages in chunks, with the sequence number of the last one of each.
    pub(crate) fn chunks(&self, most: usize) -> impl Iterator<Item = (&[u8], u32)> {
        let mut bytes = &self.bytes[..];
        let mut sequence = 0;
        std::iter::from_fn(move || {
            let mut end = 0;
            for _ in 0..most {
                let Some(length) = number(bytes, end) else {
                    break;
                };
                end += (length as usize).next_multiple_of(4);
                sequence += 1;
            }
            let (chunk, rest) = bytes.split_at_checked(end)?;
            bytes = rest;
            (!chunk.is_empty()).then(|| (chunk, sequence - 1))
        })
    }

    /// The bytes to send.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// One message of a reply.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NetlinkMessage<'a> {
    pub(crate) kind: u16,
    pub(crate) flags: u16,
    pub(crate) sequence: u32,
    pub(crate) payload: &'a [u8],
}

/// Parses a received buffer. A truncated message ends the list.
pub(crate) fn answers(mut bytes: &[u8]) -> impl Iterator<Item = NetlinkMessage<'_>> {
    std::iter::from_fn(move || {
        let length = usize::try_from(number(bytes, 0)?).ok()?;
        let payload = bytes.get(HEADER..length)?;
        let answer = NetlinkMessage {
            kind: short(bytes, 4)?,
            flags: short(bytes, 6)?,
            sequence: number(bytes, 8)?,
            payload,
        };
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(answer)
    })
}

/// Parses attributes: type without flags, value. A truncated attribute ends the list.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(short(bytes, 0)?);
        let kind = short(bytes, 2)? & 0x3fff;
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// The first attribute of a kind.
pub(crate) fn attribute(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(bytes).find_map(|(found, value)| (found == kind).then_some(value))
}

/// The number at an offset.
pub(crate) fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

/// The 16-bit number at an offset.
pub(crate) fn short(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_ne_bytes(bytes.try_into().ok()?))
}

/// A text that may be NUL-terminated.
pub(crate) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0);
    String::from_utf8_lossy(&bytes[..end.unwrap_or(bytes.len())]).into_owned()
}

#[cfg(test)]
mod tests;
