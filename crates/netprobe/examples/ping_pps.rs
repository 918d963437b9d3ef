//! Prints how many echo requests per second one core sends and has answered on loopback, in a network
//! namespace of its own. Needs root.

use std::{
    error::Error,
    net::{Ipv4Addr, SocketAddr},
    ops::ControlFlow,
    os::fd::AsFd as _,
    time::Duration,
};

use rubelet_host::{
    netlink::{Changes, RouteSocket},
    netns,
};
use rubelet_netprobe::{
    ping::{PingEvent, PingOptions, PingTarget, ping},
    sockets::OwnNamespace,
    wait::stop_pair,
};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

const REQUESTS: u64 = 500_000;

#[expect(clippy::print_stdout, reason = "its result")]
fn main() -> Result<(), Box<dyn Error>> {
    let namespace = netns::create()?;
    let measured = netns::within(&namespace, || measure().map_err(|error| error.to_string()))?;
    println!("{}", measured?);
    Ok(())
}

fn measure() -> Result<f64, Box<dyn Error>> {
    let mut changes = Changes::default();
    changes.set_up("lo");
    RouteSocket::open()?.apply(changes, || "switch lo on".to_owned())?;
    stay_on_one_core()?;
    let options = PingOptions {
        count: Some(REQUESTS),
        interval: Duration::ZERO,
        quiet: true,
        ..PingOptions::default()
    };
    let target = PingTarget {
        name: "loopback".to_owned(),
        address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
    };
    let (_running, stop) = stop_pair()?;
    let mut result = None;
    let mut report = |event| {
        if let PingEvent::Summary {
            elapsed, summary, ..
        } = event
        {
            result = Some((elapsed, summary.received));
        }
        ControlFlow::Continue(())
    };
    ping(
        &[target],
        &options,
        &OwnNamespace,
        stop.as_fd(),
        &mut report,
    )?;
    let (elapsed, received) = result.ok_or("it reported no result")?;
    if received != REQUESTS {
        return Err(format!("{received} of {REQUESTS} requests were answered").into());
    }
    Ok(received as f64 / elapsed.as_secs_f64())
}

/// Keeps this thread on the first of its cores.
fn stay_on_one_core() -> rustix::io::Result<()> {
    let allowed = sched_getaffinity(None)?;
    let first = (0..CpuSet::MAX_CPU).find(|core| allowed.is_set(*core));
    let mut one = CpuSet::new();
    one.set(first.unwrap_or_default());
    sched_setaffinity(None, &one)
}
