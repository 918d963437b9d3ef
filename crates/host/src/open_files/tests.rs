//! Tests of `open_files`.

use super::*;

fn limits(soft: u64, hard: u64) -> Rlimit {
    Rlimit {
        current: Some(soft),
        maximum: Some(hard),
    }
}

#[test]
fn the_soft_limit_becomes_what_is_wanted_and_the_hard_one_is_never_lowered() {
    let most = 1_048_576;
    for (wanted, now, chosen) in [
        // As systemd starts services.
        (1_000_000, (1024, 524_288), (1_000_000, 1_000_000)),
        (1_000_000, (1024, 1024), (1_000_000, 1_000_000)),
        (4096, (1024, 524_288), (4096, 524_288)),
        // A limit is a limit: it is lowered too.
        (4096, (65_536, 524_288), (4096, 524_288)),
        (2_000_000, (1024, 4096), (most, most)),
        // fs.nr_open was lowered after this hard limit was given.
        (4096, (1024, 2_000_000), (4096, most)),
        (0, (1024, 4096), (LEAST, 4096)),
    ] {
        let (soft, hard) = now;
        let found = choose(wanted, limits(soft, hard), most);
        assert_eq!(found, limits(chosen.0, chosen.1), "{wanted} of {now:?}");
    }
    let unlimited = Rlimit {
        current: Some(1024),
        maximum: None,
    };
    assert_eq!(choose(5000, unlimited, most), limits(5000, most));
}

#[test]
fn without_the_right_to_raise_the_hard_limit_it_bounds_the_soft_one() {
    let now = limits(1024, 4096);
    let chosen = choose(1_000_000, now, 1_048_576);
    assert_eq!(within(chosen, now), limits(4096, 4096));
    let chosen = choose(2000, now, 1_048_576);
    assert_eq!(within(chosen, now), limits(2000, 4096));
}

#[test]
fn only_a_number_that_is_not_the_wanted_one_is_reported() {
    let now = limits(1024, 4096);
    let told = |wanted, most| bounded(wanted, choose(wanted, now, most), most);
    assert_eq!(told(1_000_000, 1_048_576), None);
    let text = told(1_000_000, 65_536).unwrap();
    assert_eq!(
        text,
        "the limit of open files is 65536 and not 1000000: fs.nr_open is 65536"
    );
    let text = told(3, 65_536).unwrap();
    assert!(
        text.ends_with("256 and not 3: fewer are not enough for an agent"),
        "{text}"
    );
}
