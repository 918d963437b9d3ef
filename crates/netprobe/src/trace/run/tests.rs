//! Traces of networks that the tests invent.

use std::net::Ipv4Addr;

use proptest::prelude::*;

use super::*;
use crate::packet::Family;

const MS: Duration = Duration::from_millis(1);

fn router(ttl: u8, branch: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, branch, ttl).into()
}

fn icmp(kind: u8, code: u8, mtu: u32) -> Option<IcmpError> {
    Some(IcmpError {
        family: Family::V4,
        kind,
        code,
        mtu,
    })
}

/// The answer of a chain of routers to a probe; the target is `distance` away.
fn answer(probe: Probe, distance: u8, at: Duration) -> TraceReply {
    let (ttl, error) = match probe.ttl < distance {
        true => (probe.ttl, icmp(11, 0, 0)),
        false => (distance, icmp(3, 3, 0)),
    };
    TraceReply {
        id: Some(probe.id),
        from: router(ttl, 0),
        at,
        icmp: error,
    }
}

fn options(queries: u8) -> TraceOptions {
    TraceOptions {
        queries,
        ..TraceOptions::default()
    }
}

/// Sends all that may be sent.
fn send(run: &mut TraceRun, now: Duration) -> Vec<Probe> {
    let mut sent = Vec::new();
    while let TraceAction::Send(probe) = run.next(now) {
        run.on_sent(probe.id, now);
        sent.push(probe);
    }
    sent
}

fn hops(run: &mut TraceRun) -> Vec<Hop> {
    std::iter::from_fn(|| run.take_hop()).collect()
}

#[test]
fn probes_go_out_together_and_end_at_the_target() {
    let mut run = TraceRun::new(options(3), 1500);
    let sent = send(&mut run, Duration::ZERO);
    assert_eq!(sent.len(), 48);
    assert_eq!(sent[0].ttl, 1);
    assert_eq!(sent[47].ttl, 16);
    for probe in &sent {
        run.on_answer(answer(*probe, 4, 7 * MS));
    }
    assert_eq!(run.next(7 * MS), TraceAction::Done);
    let hops = hops(&mut run);
    assert_eq!(hops.len(), 4);
    for (ttl, hop) in (1..).zip(&hops) {
        assert_eq!((hop.ttl, hop.probes.len()), (ttl, 3));
        for probe in &hop.probes {
            let answer = probe.answer.unwrap();
            assert_eq!((answer.from, answer.rtt), (router(ttl, 0), 7 * MS));
            assert_eq!(answer.reached, ttl == 4);
        }
    }
    assert!(run.reached());
}

#[test]
fn a_hop_is_reported_when_those_before_it_are() {
    let mut run = TraceRun::new(options(1), 1500);
    let sent = send(&mut run, Duration::ZERO);
    run.on_answer(answer(sent[1], 9, MS));
    assert_eq!(run.take_hop(), None);
    run.on_answer(answer(sent[0], 9, MS));
    assert_eq!(hops(&mut run).len(), 2);
}

#[test]
fn a_silent_hop_is_waited_for_by_what_farther_ones_need() {
    let mut run = TraceRun::new(options(1), 1500);
    let sent = send(&mut run, Duration::ZERO);
    for probe in &sent[1..] {
        run.on_answer(answer(*probe, 3, 100 * MS));
    }
    assert_eq!(run.next(100 * MS), TraceAction::Wait(1000 * MS));
    // A silent hop is asked twice.
    assert_eq!(send(&mut run, 1000 * MS).len(), 1);
    assert_eq!(run.next(2000 * MS), TraceAction::Done);
    let hops = hops(&mut run);
    assert_eq!(hops[0].probes[0].answer, None);
    assert_eq!(hops.len(), 3);
    let mut alone = TraceRun::new(options(1), 1500);
    send(&mut alone, Duration::ZERO);
    assert_eq!(alone.next(MS), TraceAction::Wait(5000 * MS));
}

#[test]
fn a_burst_that_is_lost_does_not_move_the_target_away() {
    let mut run = TraceRun::new(options(3), 1500);
    let sent = send(&mut run, Duration::ZERO);
    // A queue behind the first router held the last probes only.
    for probe in sent.iter().filter(|probe| !(2..10).contains(&probe.ttl)) {
        run.on_answer(answer(*probe, 2, MS));
    }
    assert_eq!(run.distance(), Some(10));
    let again = send(&mut run, 500 * MS);
    let ttls: Vec<u8> = again.iter().map(|probe| probe.ttl).collect();
    assert_eq!(ttls.len(), 24);
    assert!(ttls.iter().all(|ttl| (2..10).contains(ttl)), "{ttls:?}");
    // What is late is an answer to no probe: its time would be wrong.
    run.on_answer(answer(sent[3], 2, 501 * MS));
    for probe in again {
        run.on_answer(answer(probe, 2, 502 * MS));
    }
    assert_eq!(run.next(502 * MS), TraceAction::Done);
    let hops = hops(&mut run);
    assert_eq!(hops.len(), 2);
    for probe in &hops[1].probes {
        assert_eq!(probe.answer.unwrap().rtt, 2 * MS);
    }
}

#[test]
fn unreachable_ends_it_without_the_target() {
    let mut run = TraceRun::new(options(1), 1500);
    let sent = send(&mut run, Duration::ZERO);
    for probe in &sent {
        let mut answer = answer(*probe, 2, MS);
        if probe.ttl >= 2 {
            answer.icmp = icmp(3, 13, 0);
        }
        run.on_answer(answer);
    }
    assert_eq!(run.next(MS), TraceAction::Done);
    let hops = hops(&mut run);
    assert_eq!(hops.len(), 2);
    assert_eq!(hops[1].probes[0].answer.unwrap().icmp.unwrap().mark(), "!X");
    assert!(!run.reached());
}

#[test]
fn answers_that_quote_too_little_are_matched_one_by_one() {
    let mut run = TraceRun::new(options(1), 1500);
    let anonymous = |probe, at| TraceReply {
        id: None,
        ..answer(probe, 3, at)
    };
    let sent = send(&mut run, Duration::ZERO);
    run.on_answer(anonymous(sent[0], MS));
    // Answers to the other probes pass by.
    run.on_answer(anonymous(sent[1], 2 * MS));
    assert_eq!(run.next(2 * MS), TraceAction::Wait(1001 * MS));
    let mut now = 1001 * MS;
    for ttl in 1..=3 {
        let again = send(&mut run, now);
        assert_eq!(
            again.iter().map(|probe| probe.ttl).collect::<Vec<_>>(),
            [ttl]
        );
        now += MS;
        run.on_answer(anonymous(again[0], now));
    }
    assert_eq!(run.next(now), TraceAction::Done);
    let hops = hops(&mut run);
    assert_eq!(hops.len(), 3);
    assert_eq!(hops[2].probes[0].answer.unwrap().rtt, MS);
}

#[test]
fn second_and_foreign_answers_change_nothing() {
    let mut run = TraceRun::new(options(1), 1500);
    let sent = send(&mut run, Duration::ZERO);
    run.on_answer(answer(sent[0], 9, MS));
    let mut second = answer(sent[0], 9, 2 * MS);
    second.icmp = icmp(3, 3, 0);
    second.from = router(1, 66);
    run.on_answer(second);
    run.on_answer(TraceReply {
        id: Some(9999),
        ..second
    });
    let hop = run.take_hop().unwrap();
    assert_eq!(hop.probes[0].answer.unwrap().from, router(1, 0));
    assert!(!run.reached());
}

#[test]
fn flows_that_part_are_different_paths() {
    let mut run = TraceRun::new(
        TraceOptions {
            flows: 3,
            queries: 1,
            ..TraceOptions::default()
        },
        1500,
    );
    for probe in send(&mut run, Duration::ZERO) {
        let mut answer = answer(probe, 3, MS);
        if probe.ttl == 2 {
            answer.from = router(2, probe.flow % 2);
        }
        run.on_answer(answer);
    }
    let paths = run.paths();
    let flows: Vec<_> = paths.iter().map(|path| path.flows.clone()).collect();
    assert_eq!(flows, [vec![0, 2], vec![1]]);
    assert_eq!(paths[1].hops[1], Some(router(2, 1)));
}

#[test]
fn a_search_for_mtus_shortens_the_probe_that_is_too_long() {
    let options = TraceOptions {
        mtu: true,
        ..TraceOptions::default()
    };
    let mut run = TraceRun::new(options, 1500);
    let mut lengths = Vec::new();
    let mut now = Duration::ZERO;
    while let TraceAction::Send(probe) = run.next(now) {
        run.on_sent(probe.id, now);
        lengths.push((probe.ttl, probe.length));
        now += MS;
        let mut answer = answer(probe, 3, now);
        if probe.ttl == 2 && probe.length > 1400 {
            answer.icmp = icmp(3, 4, 1400);
        }
        run.on_answer(answer);
    }
    assert_eq!(lengths, [(1, 1500), (2, 1500), (2, 1400), (3, 1400)]);
    let mtus: Vec<_> = hops(&mut run).iter().map(|hop| hop.mtu).collect();
    assert_eq!(mtus, [None, Some(1400), None]);
}

proptest! {
    /// Whatever answers say, a trace ends, sends no more than it may, and reports each hop once.
    #[test]
    fn it_ends_whatever_is_answered(
        answers in proptest::collection::vec((any::<u16>(), 0_u8..20, 0_u8..5, any::<u32>()), 200),
        queries in 1_u8..4, flows in 1_u8..4, mtu: bool,
    ) {
        let options = TraceOptions { queries, flows, mtu, max: 6, ..TraceOptions::default() };
        let mut run = TraceRun::new(options, 1500);
        let mut answers = answers.into_iter();
        let (mut now, mut sent) = (Duration::ZERO, 0);
        let mut ttls = Vec::new();
        loop {
            match run.next(now) {
                TraceAction::Send(probe) => {
                    run.on_sent(probe.id, now);
                    sent += 1;
                    prop_assert!(sent < 2000);
                }
                TraceAction::Wait(until) => {
                    prop_assert!(until > now);
                    match answers.next() {
                        Some((id, kind, code, mtu)) => {
                            now += MS;
                            run.on_answer(TraceReply {
                                id: (id % 5 != 0).then_some(id % 64),
                                from: router(code, 0),
                                at: now,
                                icmp: icmp(kind, code, mtu % 2000),
                            });
                        }
                        None => now = until,
                    }
                }
                TraceAction::Done => break,
            }
            ttls.extend(run.take_hop().map(|hop| hop.ttl));
        }
        ttls.extend(hops(&mut run).into_iter().map(|hop| hop.ttl));
        let expected: Vec<u8> = (1..).take(ttls.len()).collect();
        prop_assert_eq!(&ttls, &expected);
        prop_assert!(!ttls.is_empty() && ttls.len() <= 6);
    }
}
