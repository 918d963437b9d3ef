//! The subject of a certificate: only the fields that identify the holder.
//!
//! Parses certificates whose signature was verified before; anything unexpected is an error, never
//! a guess.

/// The holder of a certificate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Subject {
    /// Common name: the user; empty if missing.
    pub(super) common_name: String,
    /// Organisations: the groups.
    pub(super) organizations: Vec<String>,
    /// Attribute 1.3.6.1.4.1.57683.2: the UID of the user.
    pub(super) uid: Option<String>,
}

const COMMON_NAME: &[u8] = &[0x55, 4, 3];
const ORGANIZATION: &[u8] = &[0x55, 4, 10];
const UID: &[u8] = &[0x2b, 6, 1, 4, 1, 0x83, 0xc2, 0x53, 2];

const INTEGER: u8 = 0x02;
const OBJECT_IDENTIFIER: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
/// `[0]` of a certificate: its version.
const VERSION: u8 = 0xa0;

const BROKEN: &str = "the certificate is not well-formed";

/// Reads the subject of a certificate in DER.
pub(super) fn subject(certificate: &[u8]) -> Result<Subject, &'static str> {
    let mut certificate = Der(certificate).expect(SEQUENCE)?;
    let mut body = certificate.expect(SEQUENCE)?;
    if body.0.first() == Some(&VERSION) {
        body.expect(VERSION)?;
    }
    body.expect(INTEGER)?;
    // Signature algorithm, issuer, validity.
    for _ in 0..3 {
        body.expect(SEQUENCE)?;
    }
    let mut names = body.expect(SEQUENCE)?;
    let mut subject = Subject::default();
    while !names.0.is_empty() {
        let mut set = names.expect(SET)?;
        while !set.0.is_empty() {
            subject.take(set.expect(SEQUENCE)?)?;
        }
    }
    Ok(subject)
}

impl Subject {
    fn take(&mut self, mut attribute: Der<'_>) -> Result<(), &'static str> {
        let kind = attribute.expect(OBJECT_IDENTIFIER)?;
        let (tag, value) = attribute.next()?;
        match kind.0 {
            // If there are several, the last one counts, as in the kubelet.
            COMMON_NAME => self.common_name = text(tag, value.0)?,
            ORGANIZATION => self.organizations.push(text(tag, value.0)?),
            UID => {
                let uid = text(tag, value.0)?;
                if uid.is_empty() {
                    return Err("UID cannot be an empty string");
                }
                if self.uid.replace(uid).is_some() {
                    return Err("expected 1 UID, but found multiple");
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// The string types of ASN.1 that names are written in.
fn text(tag: u8, value: &[u8]) -> Result<String, &'static str> {
    let unreadable = "a name in the certificate is not text";
    match tag {
        // UTF8String, NumericString, PrintableString and IA5String: the last three are ASCII.
        0x0c | 0x12 | 0x13 | 0x16 => String::from_utf8(value.to_vec()).map_err(|_| unreadable),
        // T61String, in practice Latin-1.
        0x14 => Ok(value.iter().copied().map(char::from).collect()),
        // BMPString.
        0x1e if value.len().is_multiple_of(2) => {
            let units = value
                .chunks_exact(2)
                .map(|two| u16::from_be_bytes([two[0], two[1]]));
            let text: Result<String, _> = char::decode_utf16(units).collect();
            text.map_err(|_| unreadable)
        }
        _ => Err(unreadable),
    }
}

/// The remaining input.
#[derive(Clone, Copy)]
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// Reads the next element: its tag and its content.
    fn next(&mut self) -> Result<(u8, Der<'a>), &'static str> {
        let [tag, length, rest @ ..] = self.0 else {
            return Err(BROKEN);
        };
        let (length, rest) = match *length {
            short @ 0..0x80 => (usize::from(short), rest),
            long => {
                let bytes = usize::from(long & 0x7f);
                // Four bytes of length are enough for any certificate.
                if !(1..=4).contains(&bytes) || rest.len() < bytes {
                    return Err(BROKEN);
                }
                let (digits, rest) = rest.split_at(bytes);
                let length = digits
                    .iter()
                    .fold(0usize, |length, digit| length << 8 | usize::from(*digit));
                (length, rest)
            }
        };
        if rest.len() < length {
            return Err(BROKEN);
        }
        let (content, rest) = rest.split_at(length);
        self.0 = rest;
        Ok((*tag, Der(content)))
    }

    /// Reads the next element, which must be of that type.
    fn expect(&mut self, tag: u8) -> Result<Der<'a>, &'static str> {
        match self.next()? {
            (found, content) if found == tag => Ok(content),
            _ => Err(BROKEN),
        }
    }
}

#[cfg(test)]
mod tests;
