//! Replies that somebody forges: none of them counts, and none of them disturbs those that do.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use rubelet_netprobe::{
    packet::{Family, checksum},
    ping::PingEvent,
};

use crate::{
    relay::{ETHERNET, Fate, RelayedLink, icmp_at, untouched},
    world::{Node, flood},
};

/// The reply to a request in a frame, for IPv4.
fn reply_to(request: &[u8]) -> Vec<u8> {
    let mut reply = request.to_vec();
    reply[..6].copy_from_slice(&request[6..12]);
    reply[6..12].copy_from_slice(&request[..6]);
    let (from, to) = (ETHERNET + 12, ETHERNET + 16);
    reply[from..from + 4].copy_from_slice(&request[to..to + 4]);
    reply[to..to + 4].copy_from_slice(&request[from..from + 4]);
    reply[icmp_at(Family::V4)] = 0;
    sign(&mut reply);
    reply
}

/// Writes the lengths and the checksums of a frame.
fn sign(frame: &mut [u8]) {
    let length = u16::try_from(frame.len() - ETHERNET).unwrap();
    frame[ETHERNET + 2..ETHERNET + 4].copy_from_slice(&length.to_be_bytes());
    let icmp = icmp_at(Family::V4);
    for (from, to, at) in [
        (ETHERNET, icmp, ETHERNET + 10),
        (icmp, frame.len(), icmp + 2),
    ] {
        frame[at..at + 2].fill(0);
        let sum = checksum(&frame[from..to]);
        frame[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    }
}

/// Replies to a request that are all forged.
fn forgeries(request: &[u8]) -> Vec<Vec<u8>> {
    let icmp = icmp_at(Family::V4);
    let good = reply_to(request);
    let signed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut frame = good.clone();
        change(&mut frame);
        sign(&mut frame);
        frame
    };
    let mut bad_checksum = good.clone();
    bad_checksum[icmp + 2] ^= 0x40;
    vec![
        bad_checksum,
        // Another identifier, another sequence number.
        signed(&|frame| frame[icmp + 4] ^= 0x40),
        signed(&|frame| frame[icmp + 7] ^= 0x40),
        // Another number, another time, another tag.
        signed(&|frame| frame[icmp + 8 + 7] ^= 1),
        signed(&|frame| frame[icmp + 8 + 12] ^= 1),
        signed(&|frame| frame[icmp + 8 + 20] ^= 1),
        // Cut off in the stamp, in the header, before the header.
        signed(&|frame| frame.truncate(icmp + 8 + 10)),
        signed(&|frame| frame.truncate(icmp + 8)),
        // A request that comes back as it was, and an answer to something else.
        signed(&|frame| frame[icmp] = 14),
        // An error that quotes a request of somebody else.
        error_with_quote(request, &|quote| quote[24] ^= 0x40),
        // One that quotes nothing, and one that quotes nonsense.
        error_with_quote(request, &|quote| quote.truncate(10)),
        error_with_quote(request, &|quote| quote.fill(0xff)),
    ]
}

/// "Host unreachable" with a changed quote of the request.
fn error_with_quote(request: &[u8], change: &dyn Fn(&mut Vec<u8>)) -> Vec<u8> {
    let icmp = icmp_at(Family::V4);
    let mut quote = request[ETHERNET..].to_vec();
    change(&mut quote);
    let mut frame = reply_to(request)[..icmp].to_vec();
    frame.extend([3, 1, 0, 0, 0, 0, 0, 0]);
    frame.extend(quote);
    sign(&mut frame);
    frame
}

#[test]
fn forged_replies_count_nowhere() {
    if !rubelet_needs::root() {
        return;
    }
    // With an empty range the socket is raw: it sees everything.
    for range in ["0 2147483647", "1 0"] {
        let link = RelayedLink::new(
            Box::new(|frame| match frame[ETHERNET] >> 4 {
                4 => Fate {
                    back: forgeries(frame),
                    ..Fate::onward(&[frame])
                },
                _ => Fate::onward(&[frame]),
            }),
            untouched(),
        );
        link.client.set("ipv4/ping_group_range", range);
        // However late the relay is on a busy machine.
        let patient = rubelet_netprobe::ping::PingOptions {
            interval: std::time::Duration::from_secs(60),
            ..flood(50)
        };
        let pinged = link.client.ping(RelayedLink::server(Family::V4), &patient);
        let summary = &pinged.summary;
        assert_eq!((summary.sent, summary.received), (50, 50), "{range}");
        assert_eq!(summary.duplicates + summary.errors + summary.reordered, 0);
        // Two of them are cut off: a broken router could have done that to a real one. They show as
        // damaged, and the real ones behind them still count.
        assert_eq!(summary.damaged, 100, "{range}");
    }
}

#[test]
fn a_flood_of_foreign_replies_delays_nothing_for_good() {
    if !rubelet_needs::root() {
        return;
    }
    let mut requests = 0;
    let link = RelayedLink::new(
        Box::new(move |frame| {
            requests += 1;
            // What is lost is lost in the buffer of the socket, which forged replies fill: on a busy
            // machine all that arrives meanwhile.
            let count = if requests <= 20 { 500 } else { 0 };
            Fate {
                back: forgeries(frame).into_iter().cycle().take(count).collect(),
                ..Fate::onward(&[frame])
            }
        }),
        untouched(),
    );
    link.client.set("ipv4/ping_group_range", "1 0");
    let pinged = link
        .client
        .ping(RelayedLink::server(Family::V4), &flood(2000));
    let summary = &pinged.summary;
    assert!(
        summary.sent == 2000 && summary.received >= 1000,
        "{summary:?}"
    );
    assert_eq!(summary.duplicates + summary.errors, 0, "{summary:?}");
}

#[test]
fn changed_data_is_damaged_and_not_received() {
    if !rubelet_needs::root() {
        return;
    }
    let replies = Arc::new(AtomicU64::new(0));
    let number = Arc::clone(&replies);
    let link = RelayedLink::new(
        untouched(),
        Box::new(move |frame| {
            let mut changed = frame.to_vec();
            // Behind the stamp, and with the right checksum.
            if number.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
                changed[icmp_at(Family::V4) + 8 + 30] ^= 1;
                sign(&mut changed);
            }
            Fate::onward(&[&changed])
        }),
    );
    let options = rubelet_netprobe::ping::PingOptions {
        timeout: std::time::Duration::from_secs(1),
        ..flood(10)
    };
    let pinged = link.client.ping(RelayedLink::server(Family::V4), &options);
    let summary = &pinged.summary;
    assert_eq!((summary.received, summary.damaged), (5, 5));
    let damaged = pinged.events.iter();
    let damaged = damaged.filter(|event| matches!(event, PingEvent::Damaged { .. }));
    assert_eq!(damaged.count(), 5);
}

#[test]
fn pings_side_by_side_do_not_take_the_replies_of_each_other() {
    if !rubelet_needs::root() {
        return;
    }
    let node = Node::new();
    node.set("ipv4/ping_group_range", "1 0");
    let target = "127.0.0.1".parse().unwrap();
    // Raw sockets get all replies, and the buffer of one that is not read holds those of all of them.
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| node.ping(target, &flood(40)).summary))
            .collect();
        for thread in running {
            let summary = thread.join().unwrap();
            assert_eq!((summary.received, summary.duplicates), (40, 0));
        }
    });
}
