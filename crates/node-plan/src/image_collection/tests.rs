//! Tests of `image_collection`.

use proptest::prelude::*;

use super::*;

const MINUTE: Duration = Duration::from_secs(60);

const POLICY: ImageCollectionPolicy = ImageCollectionPolicy {
    high_percent: 85,
    low_percent: 80,
    min_age: Duration::from_secs(120),
    max_age: None,
};

fn images(ids: &[&str], in_use: &[&str]) -> Vec<ListedImage> {
    ids.iter()
        .map(|id| ListedImage {
            id: (*id).to_owned(),
            bytes: 100,
            in_use: in_use.contains(id),
            pinned: id.starts_with("pinned"),
        })
        .collect()
}

fn ids(unused: &[UnusedImage]) -> Vec<&str> {
    unused.iter().map(|image| &*image.id).collect()
}

#[test]
fn a_disk_is_cleared_from_the_high_threshold_down_to_the_low_one() {
    let free = |available, capacity| POLICY.bytes_to_free(available, capacity);
    assert_eq!(free(160, 1000), None);
    assert_eq!(free(150, 1000), Some(50));
    assert_eq!(free(0, 1000), Some(200));
    assert_eq!(free(0, 0), None, "a disk of no size is not full");
    let off = ImageCollectionPolicy {
        high_percent: 100,
        ..POLICY
    };
    assert_eq!(off.bytes_to_free(0, 1000), None);
    assert!(off.is_off() && !POLICY.is_off());
    let by_age = ImageCollectionPolicy {
        max_age: Some(MINUTE),
        ..off
    };
    assert!(!by_age.is_off());
    let always = ImageCollectionPolicy {
        high_percent: 0,
        low_percent: 0,
        ..POLICY
    };
    assert_eq!(always.bytes_to_free(1000, 1000), None, "nothing is used");
    assert_eq!(always.bytes_to_free(900, 1000), Some(100));
}

#[test]
fn the_image_that_was_not_used_for_longest_goes_first() {
    let mut history = ImageHistory::default();
    let all = ["a", "b", "c", "pinned"];
    let mut look = |in_use: &[&str], minute: u32| {
        let unused = history.observe(&images(&all, in_use), &POLICY, MINUTE * minute);
        ids(&unused).join(" ")
    };
    assert_eq!(
        look(&["b", "c"], 0),
        "",
        "what is there at the start is new"
    );
    assert_eq!(look(&["b", "c"], 2), "a");
    assert_eq!(look(&["a", "c"], 3), "b");
    assert_eq!(look(&["a"], 4), "b c");
    assert_eq!(look(&[], 5), "b c a");
    assert_eq!(look(&["b"], 6), "c a");
    assert_eq!(look(&[], 7), "c a b");
}

#[test]
fn a_new_image_stays_for_a_while() {
    let mut history = ImageHistory::default();
    let mut look = |all: &[&str], seconds: u64| {
        let now = Duration::from_secs(seconds);
        let unused = history.observe(&images(all, &[]), &POLICY, now);
        ids(&unused).join(" ")
    };
    assert_eq!(look(&[], 0), "");
    assert_eq!(look(&["new"], 10), "");
    assert_eq!(look(&["new"], 129), "");
    assert_eq!(look(&["new"], 130), "new");
    // It was removed and pulled again.
    assert_eq!(look(&[], 131), "");
    assert_eq!(look(&["new"], 132), "");
}

#[test]
fn it_is_known_when_the_next_image_comes_of_age() {
    let mut history = ImageHistory::default();
    let until = |history: &ImageHistory, seconds| {
        let left = history.until_of_age(&POLICY, Duration::from_secs(seconds));
        left.map(|left| left.as_secs())
    };
    assert_eq!(until(&history, 0), None);
    history.observe(&images(&["a"], &[]), &POLICY, Duration::ZERO);
    history.observe(&images(&["a", "b"], &[]), &POLICY, MINUTE);
    assert_eq!(until(&history, 60), Some(60));
    assert_eq!(until(&history, 120), Some(60));
    assert_eq!(until(&history, 180), None);
}

#[test]
fn an_image_unused_for_long_is_removed_regardless_of_the_disk() {
    let policy = ImageCollectionPolicy {
        max_age: Some(MINUTE * 60),
        ..POLICY
    };
    let mut history = ImageHistory::default();
    let mut look = |in_use: &[&str], minute: u32| {
        let unused = history.observe(&images(&["a", "b"], in_use), &policy, MINUTE * minute);
        let old = unused.into_iter().filter(|image| image.too_old);
        old.map(|image| image.id).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(look(&["a"], 0), "");
    assert_eq!(look(&["a"], 60), "", "unused for as long as the agent runs");
    assert_eq!(look(&["a"], 61), "b");
    assert_eq!(look(&[], 121), "b");
    assert_eq!(look(&[], 122), "b a");
}

proptest! {
    #[test]
    fn nothing_that_is_used_or_pinned_is_ever_named(
        looks in proptest::collection::vec(
            proptest::collection::vec((0u8..8, any::<bool>(), any::<bool>()), 0..8),
            1..8,
        ),
    ) {
        let mut history = ImageHistory::default();
        for (number, look) in looks.iter().enumerate() {
            let listed: Vec<ListedImage> = look
                .iter()
                .map(|(id, in_use, pinned)| ListedImage {
                    id: format!("{id}{in_use}{pinned}"),
                    bytes: 1,
                    in_use: *in_use,
                    pinned: *pinned,
                })
                .collect();
            let now = MINUTE * u32::try_from(number).unwrap();
            for unused in history.observe(&listed, &POLICY, now) {
                let image = listed.iter().find(|image| image.id == unused.id).unwrap();
                prop_assert!(!image.in_use && !image.pinned);
            }
        }
    }
}
