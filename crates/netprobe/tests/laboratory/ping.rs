//! Pings, and what the network did to them.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    ops::ControlFlow,
    os::fd::{AsFd as _, OwnedFd},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use rubelet_netprobe::{
    echo_socket::{EchoSocket, SocketError},
    packet::Family,
    ping::{
        MtuEvent, PingEvent, PingOptions, PingTarget,
        mtu::{MtuResult, PathMtu},
        ping, search_mtu,
    },
    sockets::{OpenSocket, SocketKind},
    wait::stop_pair,
};

use crate::{
    relay::{Dice, Fate, RelayedLink, untouched},
    world::{Chain, Node, flood},
};

const FAMILIES: [Family; 2] = [Family::V4, Family::V6];

fn counter() -> (Arc<AtomicU64>, Arc<AtomicU64>) {
    let counter = Arc::new(AtomicU64::new(0));
    (Arc::clone(&counter), counter)
}

fn loopback(family: Family) -> IpAddr {
    match family {
        Family::V4 => Ipv4Addr::LOCALHOST.into(),
        Family::V6 => Ipv6Addr::LOCALHOST.into(),
    }
}

#[test]
fn both_kinds_of_sockets_reach_both_families() {
    if !rubelet_needs::root() {
        return;
    }
    // With an empty range the kernel allows raw sockets only.
    for range in ["0 2147483647", "1 0"] {
        let node = Node::new();
        node.set("ipv4/ping_group_range", range);
        for family in FAMILIES {
            for size in [0, 23, 24, 56, 1400, 30_000] {
                let options = PingOptions { size, ..flood(3) };
                let pinged = node.ping(loopback(family), &options);
                let received = pinged.summary.received;
                assert_eq!(
                    received, 3,
                    "{range} {family:?} {size}: {:?}",
                    pinged.events
                );
                assert_eq!(pinged.summary.rtt.is_some(), size >= 24);
                assert_eq!(pinged.summary.duplicates + pinged.summary.damaged, 0);
                let ttls = pinged.events.iter().filter_map(|event| match event {
                    PingEvent::Reply(reply) => Some(reply.ttl),
                    _ => None,
                });
                assert!(ttls.collect::<Vec<_>>().iter().all(|ttl| *ttl == Some(64)));
            }
        }
    }
}

#[test]
fn a_raw_socket_gets_no_replies_to_others() {
    if !rubelet_needs::root() {
        return;
    }
    let node = Node::new();
    node.set("ipv4/ping_group_range", "1 0");
    for family in FAMILIES {
        let open = || {
            let target = SocketAddr::new(loopback(family), 0);
            EchoSocket::open(&node.sockets(), target, None, None).unwrap()
        };
        let (mut quiet, mut busy) = (open(), open());
        // Loopback has answered before the call returns.
        for sequence in 0..10 {
            busy.send(sequence, b"data").unwrap();
        }
        let mut patience = 20;
        while busy.receive(&mut patience).is_some() {}
        assert_eq!(patience, 9, "{family:?}: ten replies, and the end");
        // Not even one that would have to be looked at.
        let mut patience = 20;
        assert!(quiet.receive(&mut patience).is_none());
        assert_eq!(patience, 19, "{family:?}");
    }
}

/// Is allowed nothing.
struct Denied;

impl OpenSocket for Denied {
    fn open(&self, kind: SocketKind) -> io::Result<OwnedFd> {
        Err(match kind {
            SocketKind::EchoDatagram(_) => io::Error::from_raw_os_error(libc::EACCES),
            _ => io::Error::from_raw_os_error(libc::EPERM),
        })
    }
}

#[test]
fn without_any_socket_the_error_says_what_to_do() {
    let target = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let error = EchoSocket::open(&Denied, target, None, None).unwrap_err();
    assert!(matches!(error, SocketError::NotAllowed { .. }));
    let text = error.to_string();
    for part in ["net.ipv4.ping_group_range (", "CAP_NET_RAW", "sysctl -w"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn loss_is_what_the_link_lost() {
    if !rubelet_needs::root() {
        return;
    }
    for family in FAMILIES {
        let (count, counted) = counter();
        let mut dice = Dice::new(1);
        let link = RelayedLink::new(
            Box::new(move |frame| match dice.percent(20) {
                true => {
                    count.fetch_add(1, Ordering::Relaxed);
                    Fate::dropped()
                }
                false => Fate::onward(&[frame]),
            }),
            untouched(),
        );
        let options = PingOptions {
            timeout: Duration::from_secs(1),
            ..flood(300)
        };
        let pinged = link.client.ping(RelayedLink::server(family), &options);
        let summary = pinged.summary;
        let lost = counted.load(Ordering::Relaxed);
        assert_eq!((summary.sent, summary.sent - summary.received), (300, lost));
        // Five deviations of a binomial distribution of 300 with a fifth: 60 and 35.
        assert!((25..=95).contains(&lost), "{lost}");
        let reported = pinged.events.iter();
        let reported = reported.filter(|event| matches!(event, PingEvent::Lost { .. }));
        assert!(
            reported.count() as u64 <= lost,
            "{family:?}, {lost} lost: {:?}",
            pinged.events
        );
    }
}

#[test]
fn doubled_and_swapped_replies_are_counted() {
    if !rubelet_needs::root() {
        return;
    }
    let (doubled, doubles) = counter();
    let (swapped, swaps) = counter();
    let mut dice = Dice::new(2);
    let mut held: Option<Vec<u8>> = None;
    let mut number = 0;
    let link = RelayedLink::new(
        untouched(),
        Box::new(move |frame| {
            number += 1;
            // The last one must not be held: nothing would come behind it.
            if number < 200 && held.is_none() && dice.percent(10) {
                held = Some(frame.to_vec());
                return Fate::dropped();
            }
            if let Some(first) = held.take() {
                swapped.fetch_add(1, Ordering::Relaxed);
                return Fate::onward(&[frame, &first]);
            }
            if dice.percent(10) {
                doubled.fetch_add(1, Ordering::Relaxed);
                return Fate::onward(&[frame, frame]);
            }
            Fate::onward(&[frame])
        }),
    );
    let pinged = link
        .client
        .ping(RelayedLink::server(Family::V4), &flood(200));
    let summary = pinged.summary;
    assert_eq!((summary.sent, summary.received), (200, 200));
    assert_eq!(summary.reordered, swaps.load(Ordering::Relaxed));
    assert!(summary.reordered > 0);
    // The copy of the last reply may come behind the end.
    let sent = doubles.load(Ordering::Relaxed);
    assert!((sent - 1..=sent).contains(&summary.duplicates), "{sent}");
}

#[test]
fn a_slow_link_shows_in_the_round_trip_times() {
    if !rubelet_needs::root() {
        return;
    }
    let delay = Duration::from_millis(15);
    let link = RelayedLink::new(
        untouched(),
        Box::new(move |frame| Fate::later(delay, &[frame])),
    );
    let options = PingOptions {
        interval: Duration::from_millis(20),
        flood: false,
        // Without one, the last reply has twice the longest round trip time, and a relay that waits for a
        // processor takes longer.
        deadline: Some(Duration::from_secs(60)),
        ..flood(10)
    };
    let pinged = link.client.ping(RelayedLink::server(Family::V6), &options);
    assert_eq!(pinged.summary.received, 10);
    let rtt = pinged.summary.rtt.unwrap();
    assert!(rtt.min >= delay, "{rtt:?}");
}

#[test]
fn an_error_on_the_way_is_named_with_its_sender() {
    if !rubelet_needs::root() {
        return;
    }
    let chain = Chain::new(&[1500, 1500]);
    let expired = PingOptions {
        ttl: Some(1),
        flood: false,
        ..flood(1)
    };
    let rejecting = [
        (Family::V4, "Time to live exceeded", "Packet filtered"),
        (
            Family::V6,
            "Time exceeded: Hop limit",
            "Destination unreachable: Administratively prohibited",
        ),
    ];
    for (family, text, _) in rejecting {
        let pinged = chain.client().ping(chain.server(family), &expired);
        let router = Some(Chain::hop(family, 1));
        assert_eq!(pinged.errors(), [(router, text.to_owned())]);
        assert_eq!((pinged.summary.received, pinged.summary.errors), (0, 1));
        assert_eq!(pinged.events.len(), 4);
    }
    chain.nodes[1].filter("forward", &["reject with icmpx type admin-prohibited"]);
    for (family, _, text) in rejecting {
        let options = PingOptions {
            ttl: None,
            ..expired.clone()
        };
        let pinged = chain.client().ping(chain.server(family), &options);
        let router = Some(Chain::hop(family, 1));
        assert_eq!(pinged.errors(), [(router, text.to_owned())]);
    }
}

#[test]
fn several_targets_are_pinged_side_by_side() {
    if !rubelet_needs::root() {
        return;
    }
    let chain = Chain::new(&[1500]);
    let addresses = [
        loopback(Family::V4),
        chain.server(Family::V4),
        chain.server(Family::V6),
        // Nobody has it.
        crate::world::address(Family::V4, 0, 77),
    ];
    let targets = addresses.map(|address| PingTarget {
        name: address.to_string(),
        address: SocketAddr::new(address, 0),
    });
    let options = PingOptions {
        count: Some(3),
        interval: Duration::from_millis(10),
        timeout: Duration::from_secs(4),
        quiet: true,
        ..PingOptions::default()
    };
    let (_running, stop) = stop_pair().unwrap();
    let mut received = Vec::new();
    let mut report = |event| {
        if let PingEvent::Summary {
            target, summary, ..
        } = event
        {
            received.push((target, summary.received));
        }
        ControlFlow::Continue(())
    };
    let sockets = chain.client().sockets();
    ping(&targets, &options, &sockets, stop.as_fd(), &mut report).unwrap();
    for (target, answers) in targets.iter().zip([3, 3, 3, 0]) {
        assert!(
            received.contains(&(target.name.clone(), answers)),
            "{received:?}"
        );
    }
    assert_eq!(received.len(), 4);
}

#[test]
fn a_ping_that_is_stopped_reports_what_it_knows() {
    if !rubelet_needs::root() {
        return;
    }
    let node = Node::new();
    let target = PingTarget {
        name: "lo".to_owned(),
        address: SocketAddr::new(loopback(Family::V4), 0),
    };
    let (running, stop) = stop_pair().unwrap();
    let mut running = Some(running);
    let mut summary = None;
    let mut report = |event| {
        match event {
            PingEvent::Reply(_) => running = None,
            PingEvent::Summary { summary: found, .. } => summary = Some(found),
            _ => {}
        }
        ControlFlow::Continue(())
    };
    let options = PingOptions::default();
    ping(
        &[target],
        &options,
        &node.sockets(),
        stop.as_fd(),
        &mut report,
    )
    .unwrap();
    assert_eq!(summary.unwrap().received, 1);
}

fn found_mtu(chain: &Chain, family: Family) -> (Vec<MtuResult>, Option<PathMtu>) {
    let target = PingTarget {
        name: "server".to_owned(),
        address: SocketAddr::new(chain.server(family), 0),
    };
    let (_running, stop) = stop_pair().unwrap();
    let (mut results, mut found) = (Vec::new(), None);
    let mut report = |event| {
        match event {
            MtuEvent::Tried { result, .. } => results.push(result),
            MtuEvent::PathMtu { found: last, .. } => found = last,
        }
        ControlFlow::Continue(())
    };
    let timeout = Duration::from_millis(200);
    let sockets = chain.client().sockets();
    search_mtu(&target, timeout, &sockets, stop.as_fd(), &mut report).unwrap();
    (results, found)
}

#[test]
fn the_path_mtu_is_found_with_and_without_the_help_of_routers() {
    if !rubelet_needs::root() {
        return;
    }
    let chain = Chain::new(&[1500, 1400, 1500]);
    for family in FAMILIES {
        let (results, found) = found_mtu(&chain, family);
        let expected = PathMtu {
            mtu: 1400,
            black_hole: false,
        };
        assert_eq!(found, Some(expected), "{family:?} {results:?}");
        assert!(
            results.contains(&MtuResult::TooLongHere(1500)),
            "{results:?}"
        );
        assert!(results.contains(&MtuResult::TooLong(1400)), "{results:?}");
    }
    chain.nodes[1].filter(
        "output",
        &[
            "icmp type destination-unreachable drop",
            "icmpv6 type packet-too-big drop",
        ],
    );
    for family in FAMILIES {
        let (results, found) = found_mtu(&chain, family);
        let expected = PathMtu {
            mtu: 1400,
            black_hole: true,
        };
        assert_eq!(found, Some(expected), "{family:?} {results:?}");
    }
    chain.nodes[2].filter("forward", &["drop"]);
    assert_eq!(found_mtu(&chain, Family::V4).1, None);
}
