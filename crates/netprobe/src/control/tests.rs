//! Control messages, valid ones from the kernel and malformed ones.

use std::net::Ipv4Addr;

use proptest::prelude::*;

use super::*;

fn message(level: i32, kind: i32, data: &[u8]) -> Vec<u8> {
    let mut bytes = (HEADER + data.len()).to_ne_bytes().to_vec();
    bytes.extend(level.to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(data);
    bytes.resize(bytes.len().next_multiple_of(size_of::<usize>()), 0);
    bytes
}

fn error(origin: u8, kind: u8, code: u8, info: u32) -> Vec<u8> {
    let mut data = 113_u32.to_ne_bytes().to_vec();
    data.extend([origin, kind, code, 0]);
    data.extend(info.to_ne_bytes());
    data.extend([0; 4]);
    data.extend(2_u16.to_ne_bytes());
    data.extend([0, 0, 10, 0, 0, 1]);
    data.extend([0; 8]);
    data
}

#[test]
fn all_that_is_asked_for_is_found_beside_what_is_not() {
    let mut time = 7_i64.to_ne_bytes().to_vec();
    time.extend(9_i64.to_ne_bytes());
    let bytes = [
        message(libc::SOL_SOCKET, SO_TIMESTAMPNS_NEW, &time),
        message(99, 1, b"else"),
        message(libc::IPPROTO_IP, libc::IP_TTL, &64_i32.to_ne_bytes()),
        message(
            libc::IPPROTO_IP,
            libc::IP_RECVERR,
            &error(ORIGIN_ICMP, 3, 4, 1400),
        ),
    ];
    let found = ControlData::read(&bytes.concat());
    let expected = ControlData {
        ttl: Some(64),
        received: Some(Duration::new(7, 9)),
        error: Some(QueuedError {
            errno: 113,
            origin: ErrorOrigin::Icmp {
                v6: false,
                kind: 3,
                code: 4,
                from: Some(Ipv4Addr::new(10, 0, 0, 1).into()),
            },
            info: 1400,
        }),
    };
    assert_eq!(found, expected);
}

#[test]
fn values_out_of_range_are_not_there() {
    let mut time = (-1_i64).to_ne_bytes().to_vec();
    time.extend(1_000_000_000_i64.to_ne_bytes());
    let bytes = [
        message(libc::SOL_SOCKET, SO_TIMESTAMPNS_NEW, &time),
        message(
            libc::IPPROTO_IPV6,
            libc::IPV6_HOPLIMIT,
            &256_i32.to_ne_bytes(),
        ),
        message(libc::IPPROTO_IPV6, libc::IPV6_RECVERR, &[0; 15]),
    ];
    assert_eq!(ControlData::read(&bytes.concat()), ControlData::default());
}

#[test]
fn an_error_without_the_address_of_its_sender_is_an_error() {
    let data = &error(ORIGIN_ICMP6, 1, 4, 0)[..EXTENDED_ERROR];
    let bytes = message(libc::IPPROTO_IPV6, libc::IPV6_RECVERR, data);
    let found = ControlData::read(&bytes).error.unwrap();
    let expected = ErrorOrigin::Icmp {
        v6: true,
        kind: 1,
        code: 4,
        from: None,
    };
    assert_eq!(found.origin, expected);
}

#[test]
fn a_length_of_nothing_or_of_too_much_ends_the_reading() {
    let good = message(libc::IPPROTO_IP, libc::IP_TTL, &64_i32.to_ne_bytes());
    for length in [0, 1, HEADER - 1, 1000, usize::MAX, usize::MAX - 7] {
        let mut bad = good.clone();
        bad[..size_of::<usize>()].copy_from_slice(&length.to_ne_bytes());
        let bytes = [bad, good.clone()].concat();
        assert_eq!(ControlData::read(&bytes).ttl, None, "{length}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_to_an_end(bytes in proptest::collection::vec(any::<u8>(), 0..256)) {
        let _ = ControlData::read(&bytes);
    }

    #[test]
    fn messages_that_are_cut_off_are_read_to_an_end(cut in 0_usize..100) {
        let whole = message(libc::IPPROTO_IP, libc::IP_RECVERR, &error(ORIGIN_ICMP, 11, 0, 0));
        let cut = cut.min(whole.len());
        let _ = ControlData::read(&whole[..cut]);
    }
}
