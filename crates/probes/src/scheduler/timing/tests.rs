//! Tests of `timing`.

use super::*;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[test]
fn the_initial_delay_counts_from_the_start_of_the_container() {
    let at = |second| Timestamp::from_second(second).unwrap();
    // Started at, delay, phase; wait at second 1000.
    for (started, delay, phase, wait) in [
        (1000, 0, 0, 0),
        (1000, 5_000, 0, 5_000),
        (997, 5_000, 0, 2_000),
        (900, 5_000, 0, 0),
        (900, 5_000, 700, 700),
        (997, 5_000, 700, 2_000),
        (997, 5_000, 3_000, 3_000),
        // The wall clock was set back by an hour.
        (4600, 5_000, 0, 5_000),
        (4600, 0, 0, 0),
    ] {
        let wait_now = first(at(1000), at(started), ms(delay), ms(phase));
        assert_eq!(wait_now, ms(wait), "{started} {delay} {phase}");
    }
}

#[test]
fn attempts_stay_on_the_grid_and_leave_out_what_they_missed() {
    for (since, period, wait) in [
        (0, 1_000, 1_000),
        (1, 1_000, 999),
        (999, 1_000, 1),
        (1_000, 1_000, 1_000),
        (1_500, 1_000, 500),
        (10_250, 1_000, 750),
        (5, 2_147_483_647_000, 2_147_483_646_995),
    ] {
        assert_eq!(next(ms(since), ms(period)), ms(wait), "{since} {period}");
    }
}

#[test]
fn phases_are_spread_evenly_and_stay_the_same() {
    let period = Duration::from_secs(10);
    let mut slots = [0; 10];
    for pod in 0..1000 {
        let uid = PodUid::from(format!("uid-{pod}"));
        let phase = phase(&uid, "app", ProbeKind::Liveness, period);
        slots[usize::try_from(phase.as_secs()).unwrap()] += 1;
    }
    assert!(
        slots.iter().all(|count| (70..=130).contains(count)),
        "{slots:?}"
    );
    let uid = PodUid::from("uid");
    let of = |kind| phase(&uid, "app", kind, period);
    assert_eq!(of(ProbeKind::Liveness), of(ProbeKind::Liveness));
    assert_ne!(of(ProbeKind::Liveness), of(ProbeKind::Readiness));
}

#[test]
fn a_failure_is_late_only_where_the_agent_was() {
    let bad = false;
    let none = true;
    // Waited, took, timeout, timed out; late.
    for (waited, took, timeout, timed_out, late) in [
        (0, 1_000, 1_000, none, false),
        (10, 1_050, 1_000, none, false),
        (1_000, 1_250, 1_000, none, false),
        // The process stood still during the attempt, whatever it found when it went on.
        (0, 1_251, 1_000, none, true),
        (0, 60_000, 1_000, none, true),
        (0, 60_000, 1_000, bad, true),
        (0, 60_000, 60_000, none, false),
        (0, 60_251, 60_000, none, true),
        // It began late. A bad answer is one all the same.
        (1_001, 1_000, 1_000, none, true),
        (30_000, 1_000, 1_000, none, true),
        (30_000, 1_000, 1_000, bad, false),
        (0, 3, 1_000, bad, false),
    ] {
        let failed = UnsuccessfulAttempt {
            waited: ms(waited),
            took: ms(took),
            timeout: ms(timeout),
            timed_out,
        };
        assert_eq!(failed.is_late(), late, "{failed:?}");
    }
}
