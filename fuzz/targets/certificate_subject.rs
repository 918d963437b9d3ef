//! The subject of a client certificate: who is let in at port 10250.
//!
//! With an odd first byte the rest is a certificate; with an even one it is the content of the
//! subject, in a certificate made around it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use x509_parser::prelude::{FromDer, X509Name};

#[path = "../../crates/kubelet-api/src/subject.rs"]
mod subject;

const INTEGER: u8 = 0x02;
const SEQUENCE: u8 = 0x30;

fuzz_target!(|data: &[u8]| {
    let Some((choice, rest)) = data.split_first() else {
        return;
    };
    if choice % 2 == 1 {
        let _ = subject::subject(rest);
        return;
    }
    let name = element(SEQUENCE, rest);
    let Ok(found) = subject::subject(&certificate(&name)) else {
        return;
    };
    let groups = found.organizations.iter().map(String::len);
    let uid = found.uid.as_deref().unwrap_or_default();
    // A byte of Latin-1 becomes at most two, two of a BMPString at most three.
    let size = found.common_name.len() + uid.len() + groups.sum::<usize>();
    assert!(size <= 2 * rest.len(), "{size} bytes out of {}", rest.len());
    // The other reader stops without a word at what it does not know.
    if let Ok((_, reference)) = X509Name::from_der(&name)
        && Some(reference.iter_rdn().count()) == elements(rest)
    {
        assert_agrees(&found, &reference);
    }
});

/// Another reader that accepts the name finds the same user and the same groups in it.
fn assert_agrees(found: &subject::Subject, reference: &X509Name<'_>) {
    let texts = |attributes: Vec<&x509_parser::x509::AttributeTypeAndValue<'_>>| {
        let texts = attributes.iter().map(|one| one.as_str().map(str::to_owned));
        texts.collect::<Result<Vec<_>, _>>().ok()
    };
    if let Some(names) = texts(reference.iter_common_name().collect()) {
        let last = names.last().map(String::as_str);
        assert_eq!(last.unwrap_or_default(), found.common_name);
    }
    if let Some(groups) = texts(reference.iter_organization().collect()) {
        assert_eq!(groups, found.organizations);
    }
}

/// How many elements there are, if nothing but elements with short lengths.
fn elements(mut rest: &[u8]) -> Option<usize> {
    let mut count = 0;
    while let [_, length @ 0..0x80, more @ ..] = rest {
        rest = more.get(usize::from(*length)..)?;
        count += 1;
    }
    rest.is_empty().then_some(count)
}

/// A certificate that has nothing but what is read.
fn certificate(name: &[u8]) -> Vec<u8> {
    let empty = element(SEQUENCE, &[]);
    let body = [&element(INTEGER, &[1]), &empty, &empty, &empty, name].map(|part| part.to_vec());
    element(SEQUENCE, &element(SEQUENCE, &body.concat()))
}

fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let mut bytes = vec![tag];
    match u8::try_from(length) {
        Ok(short @ 0..0x80) => bytes.push(short),
        _ => {
            let digits = u32::try_from(length)
                .expect("inputs are short")
                .to_be_bytes();
            let skip = digits.iter().take_while(|digit| **digit == 0).count();
            bytes.push(0x84 - u8::try_from(skip).expect("four digits"));
            bytes.extend(&digits[skip..]);
        }
    }
    bytes.extend(content);
    bytes
}
