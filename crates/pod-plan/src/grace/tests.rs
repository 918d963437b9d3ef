//! Tables of ends.

use super::*;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn a_runtime_is_asked_for_whole_seconds_and_cut_short_where_they_are_too_long() {
    // Grace and the time used up before SIGTERM; the timeout, and when it is cut short.
    for (grace, used, timeout, cut) in [
        (30_000, 0, 30, None),
        (30_000, 10_000, 20, None),
        // A millisecond for the agent's own doings is nothing.
        (30_000, 1, 30, None),
        (30_000, 9, 30, None),
        (30_000, 3_007, 27, None),
        (30_000, 500, 30, Some(30_000)),
        (30_000, 989, 30, Some(30_000)),
        (30_000, 991, 29, None),
        (30_000, 27_300, 3, Some(30_000)),
        // Never less than two seconds.
        (0, 0, 2, None),
        (1_000, 0, 2, None),
        (2_000, 0, 2, None),
        (2_500, 0, 3, Some(2_500)),
        (30_000, 29_500, 2, None),
        (30_000, 30_000, 2, None),
        (30_000, 45_000, 2, None),
        // A trifle more than whole seconds.
        (5_008, 0, 5, None),
    ] {
        let mut clock = GraceDeadline::new(ms(grace));
        let asked = clock.term(ms(used));
        assert_eq!(
            (asked, clock.early_kill_at()),
            (timeout, cut.map(ms)),
            "{grace} ms, {used} ms used"
        );
    }
}

#[test]
fn a_grace_shrinks_and_never_grows() {
    // Grace; when another is asked for and which; the deadline.
    for (grace, now, asked, deadline) in [
        (30, 0, 30, 30),
        (30, 5, 10, 15),
        (30, 5, 25, 30),
        (30, 5, 60, 30),
        (30, 29, 2, 30),
        (30, 10, 0, 10),
        (5, 3, 1, 4),
    ] {
        let mut clock = GraceDeadline::new(ms(grace * 1000));
        clock.shrink(ms(now * 1000), ms(asked * 1000));
        assert_eq!(clock.deadline(), ms(deadline * 1000));
    }
}

#[test]
fn a_grace_that_shrinks_after_sigterm_is_cut_short_but_leaves_two_seconds() {
    // When SIGTERM was sent, when the grace shrank and to what; when SIGKILL is due.
    for (sigterm_at, now, asked, cut) in [
        (0, 5_000, 3_000, Some(8_000)),
        (0, 5_300, 3_000, Some(8_300)),
        (0, 5_000, 0, Some(5_000)),
        (0, 500, 0, Some(2_000)),
        (10_000, 10_400, 1_000, Some(12_000)),
        (0, 5_000, 25_000, None),
        (0, 5_000, 24_995, None),
        (0, 5_000, 600_000, None),
    ] {
        let mut clock = GraceDeadline::new(ms(30_000));
        clock.term(ms(sigterm_at));
        clock.shrink(ms(now), ms(asked));
        assert_eq!(
            clock.early_kill_at(),
            cut.map(ms),
            "{asked} ms from {now} ms on"
        );
    }
}

#[test]
fn what_the_agent_holds_up_is_not_taken_from_the_container() {
    let mut clock = GraceDeadline::new(ms(30_000));
    clock.extend(ms(700));
    assert_eq!((clock.term(ms(700)), clock.early_kill_at()), (30, None));
    clock.shrink(ms(1_000), ms(4_000));
    assert_eq!(clock.early_kill_at(), Some(ms(5_000)));
}

#[test]
fn an_endless_grace_does_not_overflow() {
    let mut clock = GraceDeadline::new(Duration::MAX);
    clock.extend(ms(1));
    clock.shrink(ms(1), Duration::MAX);
    assert_eq!((clock.term(ms(1)), clock.early_kill_at()), (i64::MAX, None));
}

#[test]
fn sidecars_wait_for_regular_containers_and_later_sidecars_and_nobody_else_waits() {
    let (free, regular) = (KillOrder::Free, KillOrder::Regular);
    let sidecar = KillOrder::Sidecar;
    for (order, other, waits) in [
        (free, free, false),
        (free, regular, false),
        (free, sidecar(0), false),
        (regular, free, false),
        (regular, regular, false),
        (regular, sidecar(0), false),
        (sidecar(1), free, false),
        (sidecar(1), regular, true),
        (sidecar(1), sidecar(0), false),
        (sidecar(1), sidecar(1), false),
        (sidecar(1), sidecar(2), true),
        (sidecar(0), sidecar(2), true),
    ] {
        assert_eq!(order.waits_for(other), waits, "{order:?} and {other:?}");
    }
}
