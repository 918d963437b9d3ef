//! What is asked, and what counts as an answer.

use super::*;

const NAME: &str = "web.example";

fn reply(change: impl FnOnce(&mut Packet<'_>)) -> Vec<u8> {
    let query = question(7, NAME, Family::V4).unwrap();
    let mut packet = Packet::parse(&query).unwrap().into_reply();
    change(&mut packet);
    packet.build_bytes_vec().unwrap()
}

#[test]
fn codes_have_the_names_that_people_know() {
    for (code, name) in [
        (RCODE::NoError, "without an address"),
        (RCODE::NameError, "NXDOMAIN"),
        (RCODE::ServerFailure, "SERVFAIL"),
        (RCODE::Refused, "REFUSED"),
    ] {
        let bytes = reply(|packet| *packet.rcode_mut() = code);
        let answer = read(&bytes, 7, "WEB.example");
        assert_eq!(answer, Some(DnsAnswer::Code(name.to_owned())));
    }
}

#[test]
fn what_is_no_answer_to_the_question_is_none() {
    let good = reply(|_| ());
    assert!(read(&good, 7, NAME).is_some());
    assert_eq!(read(&good, 8, NAME), None);
    assert_eq!(read(&good, 7, "db.example"), None);
    let query = question(7, NAME, Family::V4).unwrap();
    assert_eq!(read(&query, 7, NAME), None);
    let none = reply(|packet| packet.questions.clear());
    assert_eq!(read(&none, 7, NAME), None);
    for length in 0..good.len() {
        assert_eq!(read(&good[..length], 7, NAME), None, "{length}");
    }
}

#[test]
fn names_that_cannot_be_are_refused() {
    let long = "a".repeat(64);
    for name in ["", ".", "a..b", ".a", "a..", &long] {
        assert!(!is_name(name), "{name}");
    }
    for name in ["a", "a.b", "a.b."] {
        assert!(is_name(name), "{name}");
    }
    let error = question(1, &long, Family::V4).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
}
