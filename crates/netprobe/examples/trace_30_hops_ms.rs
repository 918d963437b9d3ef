//! Prints how long a trace of 30 hops takes with three probes to each, in milliseconds: network
//! namespaces whose answers come 10 ms later from each hop. Needs root.

#![allow(
    clippy::unwrap_used,
    dead_code,
    reason = "it is a part of the tests' laboratory, and a measurement that can't go on fails"
)]

#[path = "../tests/laboratory/relay.rs"]
mod relay;
#[path = "../tests/laboratory/world.rs"]
mod world;

use std::time::Duration;

use rubelet_netprobe::{
    clock::SessionClock,
    packet::Family,
    trace::{TraceEvent, TraceMethod, TraceOptions},
};

use self::relay::DelayedChain;

#[expect(clippy::print_stdout, reason = "its result")]
fn main() {
    let laboratory = DelayedChain::new(Duration::from_millis(10));
    let options = TraceOptions {
        // The relay forwards no checksum that a network card would have to compute.
        method: TraceMethod::Icmp,
        ..TraceOptions::default()
    };
    let clock = SessionClock::start();
    let delayed = &laboratory.chain;
    let events = delayed.client().trace(delayed.server(Family::V4), &options);
    let elapsed = clock.now();
    let hops: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            TraceEvent::Hop(hop) => Some(hop),
            _ => None,
        })
        .collect();
    let answered = hops.iter().flat_map(|hop| &hop.probes);
    let answered = answered.filter(|probe| probe.answer.is_some()).count();
    assert_eq!((hops.len(), answered), (30, 90), "some probes were lost");
    println!("{}", elapsed.as_nanos() as f64 / 1e6);
}
