//! What comes back to `rubelet net`, or passes by: echo replies, control messages of error queues, quotes, answers of
//! nameservers, and the answers that they are for the courses of pings, of searches for MTUs and of
//! traces.
//!
//! The first byte chooses what the rest is.

#![no_main]

use std::{net::Ipv4Addr, time::Duration};

use libfuzzer_sys::fuzz_target;
use rubelet_netprobe::{
    check::dns::{self, DnsAnswer},
    control::ControlData,
    icmp_error::IcmpError,
    packet::{Family, behind_ipv4_header, quoted_echo_request, read_echo_reply},
    path::sighting::sighting,
    ping::{
        PingOptions,
        mtu::{MtuNext, MtuResult, MtuSearch},
        run::{PingRun, ReplyOutcome},
    },
    stamp::SessionKey,
    trace::{
        TraceOptions,
        prober::mark::{self, QuotedProbe},
        run::{self, TraceRun},
    },
};

fuzz_target!(|data: &[u8]| {
    let Some((choice, rest)) = data.split_first() else {
        return;
    };
    match choice % 7 {
        0 => {
            let _data = ControlData::read(rest);
        }
        1 => packets(rest),
        2 => replies(rest),
        3 => lengths(rest),
        4 => answers(rest),
        5 => {
            // Nobody who does not know the key can make one.
            assert_eq!(sighting(rest, SessionKey::new(77), 56), None);
        }
        _ => {
            if let Some(DnsAnswer::Addresses(found)) = dns::read(rest, 7, "web.example") {
                assert!(!found.is_empty());
            }
        }
    }
});

fn packets(bytes: &[u8]) {
    for family in [Family::V4, Family::V6] {
        if let Ok(reply) = read_echo_reply(family, bytes) {
            assert_eq!(reply.data.len() + 8, bytes.len());
            assert_eq!(quoted_echo_request(family, bytes), None);
        }
    }
    if let Some(message) = behind_ipv4_header(bytes) {
        assert!(message.len() + 20 <= bytes.len());
    }
    if let QuotedProbe::Probe(_) = mark::read(0x5eed_5eed_5eed_5eed, bytes) {
        assert!(bytes.starts_with(&[0x5e, 0xed]));
    }
}

/// Nobody who does not know the key can answer.
fn replies(mut bytes: &[u8]) {
    let mut run = PingRun::new(PingOptions::default(), SessionKey::new(77), Duration::ZERO);
    for index in 0..4 {
        run.on_sent(index, Duration::ZERO);
    }
    while let Some(([high, low, length], more)) = bytes.split_first_chunk() {
        let (data, more) = more.split_at(usize::from(*length).min(more.len()));
        bytes = more;
        let sequence = u16::from_be_bytes([*high, *low]);
        let answer = run.on_reply(sequence, data, Duration::from_secs(1));
        assert!(!matches!(answer, ReplyOutcome::Reply { .. }));
        run.on_error(Some(sequence));
    }
    let summary = run.summary();
    assert_eq!((summary.received, summary.duplicates), (0, 0));
}

/// A search ends, whatever routers say, and finds nothing that was not answered.
fn lengths(bytes: &[u8]) {
    let mut search = MtuSearch::new(Family::V4);
    let mut longest = 0;
    for chunk in bytes
        .chunks_exact(3)
        .chain(std::iter::repeat_n(&[3; 3][..], 300))
    {
        let MtuNext::Try(length) = search.next() else {
            break;
        };
        let mtu = usize::from(u16::from_be_bytes([chunk[1], chunk[2]]));
        let result = match chunk[0] % 4 {
            0 => MtuResult::Answered,
            1 => MtuResult::TooLong(mtu),
            2 => MtuResult::TooLongHere(mtu),
            _ => MtuResult::Silence,
        };
        if result == MtuResult::Answered {
            longest = longest.max(length);
        }
        search.on_result(length, result);
    }
    match search.next() {
        MtuNext::Try(_) => panic!("it does not end"),
        MtuNext::Found(found) => assert_eq!(found.mtu, longest),
        MtuNext::Unanswered => assert_eq!(longest, 0),
    }
}

/// A trace ends, whatever is answered, and reports its hops in order.
fn answers(bytes: &[u8]) {
    let flags = bytes.first().copied().unwrap_or_default();
    let options = TraceOptions {
        queries: 1 + flags % 3,
        flows: 1 + flags / 3 % 3,
        mtu: flags & 0x80 != 0,
        max: 8,
        ..TraceOptions::default()
    };
    let mut trace = TraceRun::new(options, 1500);
    let mut chunks = bytes.chunks_exact(6);
    let (mut now, mut hops, mut sent) = (Duration::ZERO, 0_u8, 0);
    loop {
        match trace.next(now) {
            run::TraceAction::Send(probe) => {
                sent += 1;
                assert!(sent < 10_000);
                trace.on_sent(probe.id, now);
            }
            run::TraceAction::Wait(until) => {
                let Some(chunk) = chunks.next() else {
                    now = until;
                    continue;
                };
                now += Duration::from_millis(1);
                let icmp = IcmpError {
                    family: if chunk[1] & 1 == 0 {
                        Family::V4
                    } else {
                        Family::V6
                    },
                    kind: chunk[2],
                    code: chunk[3],
                    mtu: u32::from(u16::from_be_bytes([chunk[4], chunk[5]])),
                };
                trace.on_answer(run::TraceReply {
                    id: (chunk[0] != 0).then(|| u16::from(chunk[0]) - 1),
                    from: Ipv4Addr::new(10, 0, 0, chunk[1]).into(),
                    at: now,
                    icmp: (chunk[1] & 0x40 == 0).then_some(icmp),
                });
            }
            run::TraceAction::Done => break,
        }
        while let Some(hop) = trace.take_hop() {
            hops += 1;
            assert_eq!(hop.ttl, hops);
        }
    }
    while let Some(hop) = trace.take_hop() {
        hops += 1;
        assert_eq!(hop.ttl, hops);
    }
    assert!((1..=8).contains(&hops));
    let _paths = trace.paths();
}
