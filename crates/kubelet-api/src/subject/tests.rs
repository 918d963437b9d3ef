//! Tests of `subject`.

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
