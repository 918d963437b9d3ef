//! Tests of `user_ranges`.

use super::*;

fn uid(name: &str) -> PodUid {
    name.into()
}

#[test]
fn pods_never_share_users_and_keep_theirs() {
    let mut ranges = UserRanges::new(UserSettings::standard(UNIT, 3));
    let one = ranges.take(&uid("one")).unwrap();
    assert_eq!((one.first, one.length), (UNIT, UNIT));
    let two = ranges.take(&uid("two")).unwrap();
    assert!(!overlap(one, two));
    assert_eq!(ranges.take(&uid("one")), Ok(one));
    ranges.take(&uid("three")).unwrap();
    assert!(ranges.take(&uid("four")).is_err());
    ranges.release(&uid("one"));
    assert_eq!(ranges.take(&uid("four")), Ok(one));
}

#[test]
fn ranges_of_an_earlier_run_are_not_given_again() {
    let settings = UserSettings::standard(2 * UNIT, 4);
    let mut ranges = UserRanges::new(settings);
    let old = UserRange {
        first: 2 * UNIT,
        length: UNIT,
    };
    ranges.adopt(uid("old"), old);
    assert_eq!(ranges.take(&uid("old")), Ok(old));
    for name in ["a", "b", "c"] {
        assert!(!overlap(old, ranges.take(&uid(name)).unwrap()));
    }
}

#[test]
fn what_is_delegated_to_the_kubelet_is_used() {
    let text = "root:1:2\nkubelet:131072:655360\n";
    let found = UserSettings::delegated(UNIT, text, text).unwrap().unwrap();
    assert_eq!((found.first, found.total), (131_072, 655_360));
    assert_eq!(UserSettings::delegated(UNIT, "", "root:1:2"), Ok(None));
    for (uids, gids) in [
        (text, ""),
        (text, "kubelet:131072:65536"),
        ("kubelet:5:65536", "kubelet:5:65536"),
        ("kubelet:65536:100", "kubelet:65536:100"),
        ("kubelet:0:65536", "kubelet:0:65536"),
    ] {
        assert!(UserSettings::delegated(UNIT, uids, gids).is_err(), "{uids}");
    }
}

#[test]
fn many_pods_fit_into_what_a_number_can_be() {
    let settings = UserSettings::standard(UNIT * 1000, u32::MAX);
    assert!(settings.first.checked_add(settings.total - 1).is_some());
}
