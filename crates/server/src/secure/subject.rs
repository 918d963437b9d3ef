//! The subject of a certificate: only what tells who the holder is.
//!
//! Reads certificates whose signature was verified before; anything unexpected is an error, never a
//! guess.

/// Who a certificate was made for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Subject {
    /// Common name: the user. Empty if there is none.
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
            // Of several, the last one counts, as with the kubelet.
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

/// What is left to be read.
#[derive(Clone, Copy)]
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// Takes the next element: its tag and its content.
    fn next(&mut self) -> Result<(u8, Der<'a>), &'static str> {
        let [tag, length, rest @ ..] = self.0 else {
            return Err(BROKEN);
        };
        let (length, rest) = match *length {
            short @ 0..0x80 => (usize::from(short), rest),
            long => {
                let bytes = usize::from(long & 0x7f);
                // No certificate is longer than four bytes of length can tell.
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

    /// Takes the next element, which must be of that type.
    fn expect(&mut self, tag: u8) -> Result<Der<'a>, &'static str> {
        match self.next()? {
            (found, content) if found == tag => Ok(content),
            _ => Err(BROKEN),
        }
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, DnValue, KeyPair};

    use super::*;

    fn certificate(names: Vec<(DnType, DnValue)>) -> Vec<u8> {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        for (kind, value) in names {
            params.distinguished_name.push(kind, value);
        }
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    }

    fn uid() -> DnType {
        DnType::CustomDnType(vec![1, 3, 6, 1, 4, 1, 57683, 2])
    }

    #[test]
    fn the_common_name_is_the_user_and_organisations_are_groups() {
        let der = certificate(vec![
            (DnType::OrganizationName, "system:nodes".into()),
            (DnType::CommonName, "system:node:ünit".into()),
            (DnType::CountryName, "XY".into()),
        ]);
        let subject = subject(&der).unwrap();
        assert_eq!(subject.common_name, "system:node:ünit");
        assert_eq!(subject.organizations, ["system:nodes"]);
        assert_eq!(subject.uid, None);
    }

    #[test]
    fn the_uid_is_read_and_must_not_be_empty() {
        let with = |value: &str| {
            subject(&certificate(vec![
                (DnType::CommonName, "a".into()),
                (uid(), value.into()),
            ]))
        };
        assert_eq!(with("7").unwrap().uid.as_deref(), Some("7"));
        assert!(with("").is_err());
    }

    /// An element of up to 127 bytes.
    fn element(tag: u8, content: &[u8]) -> Vec<u8> {
        let length = u8::try_from(content.len()).unwrap();
        assert!(length < 0x80);
        [&[tag, length][..], content].concat()
    }

    /// A certificate that has nothing but what is read.
    fn bare(attributes: &[(&[u8], u8, &[u8])]) -> Vec<u8> {
        let sets = attributes.iter().map(|(kind, tag, value)| {
            let attribute = [element(OBJECT_IDENTIFIER, kind), element(*tag, value)].concat();
            element(SET, &element(SEQUENCE, &attribute))
        });
        let subject = element(SEQUENCE, &sets.collect::<Vec<_>>().concat());
        let empty = element(SEQUENCE, &[]);
        let body = [element(INTEGER, &[1]), empty.repeat(3), subject].concat();
        element(SEQUENCE, &element(SEQUENCE, &body))
    }

    #[test]
    fn each_organisation_is_a_group_and_the_last_common_name_counts() {
        let der = bare(&[
            (COMMON_NAME, 0x0c, b"first"),
            (ORGANIZATION, 0x0c, b"ops"),
            (ORGANIZATION, 0x13, b"dev"),
            (COMMON_NAME, 0x0c, b"ann"),
        ]);
        let subject = subject(&der).unwrap();
        assert_eq!(subject.common_name, "ann");
        assert_eq!(subject.organizations, ["ops", "dev"]);
    }

    #[test]
    fn two_uids_and_names_that_are_no_text_are_refused() {
        let two = bare(&[(UID, 0x0c, b"1"), (UID, 0x0c, b"2")]);
        assert_eq!(subject(&two), Err("expected 1 UID, but found multiple"));
        for (tag, value) in [(0x0c, &b"\xff"[..]), (0x02, b"1"), (0x1e, b"odd")] {
            let der = bare(&[(COMMON_NAME, tag, value)]);
            assert_eq!(subject(&der), Err("a name in the certificate is not text"));
        }
    }

    #[test]
    fn other_string_types_are_read() {
        let bmp: rcgen::string::BmpString = "ann".try_into().unwrap();
        let printable: rcgen::string::PrintableString = "ops".try_into().unwrap();
        let der = certificate(vec![
            (DnType::CommonName, DnValue::BmpString(bmp)),
            (
                DnType::OrganizationName,
                DnValue::PrintableString(printable),
            ),
        ]);
        let subject = subject(&der).unwrap();
        assert_eq!(
            (&*subject.common_name, &*subject.organizations[0]),
            ("ann", "ops")
        );
    }

    #[test]
    fn no_piece_of_a_certificate_and_no_flipped_byte_makes_it_panic() {
        let der = certificate(vec![
            (DnType::CommonName, "ann".into()),
            (uid(), "1".into()),
        ]);
        for end in 0..der.len() {
            let _ = subject(&der[..end]);
        }
        for at in 0..der.len() {
            let mut other = der.clone();
            other[at] ^= 0xff;
            let _ = subject(&other);
        }
    }
}
