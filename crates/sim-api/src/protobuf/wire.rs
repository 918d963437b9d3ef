//! The wire format of protobuf: varints, and fields by number.

/// One encoded value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// A fixed-length value, which no field of the schema has.
    Other,
}

/// The next field's number and value.
pub(super) fn next<'a>(bytes: &mut &'a [u8]) -> Option<(u64, Wire<'a>)> {
    let key = varint(bytes)?;
    let wire = match key & 7 {
        0 => Wire::Number(varint(bytes)?),
        1 => {
            take(bytes, 8)?;
            Wire::Other
        }
        2 => {
            let length = usize::try_from(varint(bytes)?).ok()?;
            Wire::Bytes(take(bytes, length)?)
        }
        5 => {
            take(bytes, 4)?;
            Wire::Other
        }
        _ => return None,
    };
    Some((key >> 3, wire))
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// Appends a varint.
fn put_varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Appends a varint field.
pub(super) fn put_number(bytes: &mut Vec<u8>, field: u64, number: u64) {
    put_varint(bytes, field << 3);
    put_varint(bytes, number);
}

/// Appends a length-delimited field: string, bytes or message.
pub(super) fn put_bytes(bytes: &mut Vec<u8>, field: u64, value: &[u8]) {
    put_varint(bytes, field << 3 | 2);
    put_varint(bytes, value.len() as u64);
    bytes.extend_from_slice(value);
}
