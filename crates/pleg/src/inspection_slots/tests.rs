//! Tests of `inspection_slots`.

use std::{cell::Cell, future::pending};

use tokio::time::sleep;

use super::*;

fn slot(slots: &mut InspectionSlots, uid: &str, pace: Pace) -> Option<InspectionSlot> {
    slots.push(uid.into(), pace, Urgency::Change, Instant::now());
    slots.next().map(|(_, slot)| slot)
}

#[tokio::test(start_paused = true)]
async fn what_becomes_slow_frees_its_quick_place_or_is_cancelled() {
    let mut slots = InspectionSlots::new();
    let (freed, began) = (Cell::new(0), Instant::now());
    let count = || freed.set(freed.get() + 1);
    let soon = slot(&mut slots, "soon", Pace::Quick).unwrap();
    assert_eq!(soon.wait(async { 1 }, count).await, Some(1));
    let late = slot(&mut slots, "late", Pace::Quick).unwrap();
    let long = async {
        sleep(SLOW * 5).await;
        2
    };
    assert_eq!(late.wait(long, count).await, Some(2));
    assert_eq!(freed.get(), 1);

    let slow: Vec<_> = (0..SLOW_AT_ONCE)
        .map(|number| slot(&mut slots, &format!("slow-{number}"), Pace::Slow).unwrap())
        .collect();
    let began = began + SLOW * 5;
    let one_more = slot(&mut slots, "one-more", Pace::Quick).unwrap();
    assert_eq!(one_more.wait(pending::<()>(), count).await, None);
    assert_eq!((freed.get(), began.elapsed()), (1, SLOW));
    assert!(slot(&mut slots, "waits", Pace::Slow).is_none());
    drop(slow);
    assert!(slots.next().is_some(), "it is its turn");
}

#[test]
fn pods_of_one_pace_do_not_take_the_places_of_another() {
    let mut slots = InspectionSlots::new();
    let mut held = Vec::new();
    for (pace, most) in [
        (Pace::Hangs, HANGING_AT_ONCE),
        (Pace::Slow, SLOW_AT_ONCE),
        (Pace::Quick, QUICK_AT_ONCE),
    ] {
        for number in 0..2 * most {
            held.extend(slot(&mut slots, &format!("{pace:?}-{number}"), pace));
        }
    }
    assert_eq!(held.len(), AT_ONCE);
    assert!(slots.many_hang());
}
