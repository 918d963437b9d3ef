//! Echo messages: what is written is read again, and nothing else is.

use proptest::prelude::*;

use super::*;

/// The reply to a request, as a host writes it.
fn reply_to(family: Family, request: &[u8]) -> Vec<u8> {
    let mut reply = request.to_vec();
    reply[0] = family.echo_reply();
    if family == Family::V4 {
        reply[2..4].fill(0);
        let sum = checksum(&reply);
        reply[2..4].copy_from_slice(&sum.to_be_bytes());
    }
    reply
}

fn families() -> impl Strategy<Value = Family> {
    prop_oneof![Just(Family::V4), Just(Family::V6)]
}

#[test]
fn a_request_has_the_bytes_of_the_rfc() {
    let mut message = vec![1];
    write_echo_request(Family::V4, 0x1234, 1, b"abc", &mut message);
    // 0x0800 + 0x1234 + 0x0001 + 0x6162 + 0x6300 = 0xde97, and its complement.
    assert_eq!(message, b"\x08\x00\x21\x68\x12\x34\x00\x01abc");
    write_echo_request(Family::V6, 0x1234, 1, b"abc", &mut message);
    assert_eq!(message, b"\x80\x00\x00\x00\x12\x34\x00\x01abc");
}

#[test]
fn the_checksum_of_the_rfc_is_computed() {
    let example = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
    assert_eq!(checksum(&example), !0xddf2);
    assert_eq!(checksum(&[]), 0xffff);
}

#[test]
fn what_is_no_reply_is_refused() {
    let mut request = Vec::new();
    write_echo_request(Family::V4, 7, 9, b"data", &mut request);
    assert_eq!(
        read_echo_reply(Family::V4, &request),
        Err(PacketError::OtherType(8))
    );
    let mut reply = reply_to(Family::V4, &request);
    for end in 0..ECHO_HEADER {
        let found = read_echo_reply(Family::V4, &reply[..end]);
        assert_eq!(found, Err(PacketError::Truncated), "{end}");
    }
    // The data is cut off within a word that isn't zero.
    let cut = read_echo_reply(Family::V4, &reply[..9]);
    assert_eq!(cut, Err(PacketError::Checksum));
    reply[10] ^= 1;
    let damaged = read_echo_reply(Family::V4, &reply);
    assert_eq!(damaged, Err(PacketError::Checksum));
}

#[test]
fn only_an_ipv4_header_is_skipped() {
    let mut packet = vec![0x46; 24];
    packet.extend(b"icmp");
    assert_eq!(behind_ipv4_header(&packet), Some(&b"icmp"[..]));
    for packet in [&b""[..], &[0x45; 19], &[0x44; 40], &[0x65; 40]] {
        assert_eq!(behind_ipv4_header(packet), None, "{packet:?}");
    }
}

proptest! {
    #[test]
    fn a_reply_repeats_the_request(
        family in families(),
        id: u16,
        sequence: u16,
        data in proptest::collection::vec(any::<u8>(), 0..100),
    ) {
        let mut request = Vec::new();
        write_echo_request(family, id, sequence, &data, &mut request);
        let reply = reply_to(family, &request);
        let found = read_echo_reply(family, &reply);
        prop_assert_eq!(found, Ok(EchoReply { id, sequence, data: &data }));
        prop_assert_eq!(quoted_echo_request(family, &request[..8]), Some((id, sequence)));
        prop_assert_eq!(quoted_echo_request(family, &reply), None);
        prop_assert_eq!(quoted_echo_request(family, &request[..7]), None);
    }

    #[test]
    fn a_changed_bit_is_noticed(
        data in proptest::collection::vec(any::<u8>(), 0..100),
        bit: proptest::sample::Index,
    ) {
        let mut request = Vec::new();
        write_echo_request(Family::V4, 1, 2, &data, &mut request);
        let mut reply = reply_to(Family::V4, &request);
        let bit = bit.index(reply.len() * 8);
        reply[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(read_echo_reply(Family::V4, &reply).is_err());
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(
        family in families(),
        bytes in proptest::collection::vec(any::<u8>(), 0..64),
    ) {
        let _ = read_echo_reply(family, &bytes);
        let _ = quoted_echo_request(family, &bytes);
        let _ = behind_ipv4_header(&bytes);
    }
}
