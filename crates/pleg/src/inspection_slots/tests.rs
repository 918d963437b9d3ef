//! Tests of `inspection_slots`.

use std::{cell::Cell, future::pending};

use tokio::time::sleep;

use super::*;

fn slot(slots: &mut InspectionSlots, uid: &str, latency: LatencyClass) -> Option<InspectionSlot> {
    slots.push(uid.into(), latency, Priority::Change, Instant::now());
    slots.next().map(|(_, slot)| slot)
}

#[tokio::test(start_paused = true)]
async fn a_slow_inspection_frees_its_fast_slot_or_is_cancelled() {
    let mut slots = InspectionSlots::new();
    let (freed, began) = (Cell::new(0), Instant::now());
    let count = || freed.set(freed.get() + 1);
    let soon = slot(&mut slots, "soon", LatencyClass::Fast).unwrap();
    assert_eq!(soon.wait(async { 1 }, count).await, Some(1));
    let late = slot(&mut slots, "late", LatencyClass::Fast).unwrap();
    let long = async {
        sleep(SLOW * 5).await;
        2
    };
    assert_eq!(late.wait(long, count).await, Some(2));
    assert_eq!(freed.get(), 1);

    let slow: Vec<_> = (0..SLOW_SLOTS)
        .map(|number| slot(&mut slots, &format!("slow-{number}"), LatencyClass::Slow).unwrap())
        .collect();
    let began = began + SLOW * 5;
    let one_more = slot(&mut slots, "one-more", LatencyClass::Fast).unwrap();
    assert_eq!(one_more.wait(pending::<()>(), count).await, None);
    assert_eq!((freed.get(), began.elapsed()), (1, SLOW));
    assert!(slot(&mut slots, "waits", LatencyClass::Slow).is_none());
    drop(slow);
    assert!(slots.next().is_some(), "it is its turn");
}

#[test]
fn pods_of_one_latency_class_do_not_take_the_slots_of_another() {
    let mut slots = InspectionSlots::new();
    let mut held = Vec::new();
    for (latency, most) in [
        (LatencyClass::Hung, HUNG_SLOTS),
        (LatencyClass::Slow, SLOW_SLOTS),
        (LatencyClass::Fast, FAST_SLOTS),
    ] {
        for number in 0..2 * most {
            held.extend(slot(&mut slots, &format!("{latency:?}-{number}"), latency));
        }
    }
    assert_eq!(held.len(), MAX_INSPECTIONS);
    assert!(slots.hung_pods_wait());
}
