//! Prints the median round trip time of 500 echo requests on loopback, 20 ms apart, in microseconds.
//! Needs root.

use std::{
    error::Error,
    net::{Ipv4Addr, SocketAddr},
    ops::ControlFlow,
    os::fd::AsFd as _,
    time::Duration,
};

use rubelet_netprobe::{
    ping::{PingEvent, PingOptions, PingTarget, ping},
    sockets::OwnNamespace,
    wait::stop_pair,
};

#[expect(clippy::print_stdout, reason = "its result")]
fn main() -> Result<(), Box<dyn Error>> {
    let options = PingOptions {
        count: Some(500),
        interval: Duration::from_millis(20),
        ..PingOptions::default()
    };
    let target = PingTarget {
        name: "loopback".to_owned(),
        address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
    };
    let (_running, stop) = stop_pair()?;
    let mut times = Vec::new();
    let mut report = |event| {
        if let PingEvent::Reply(reply) = event {
            times.extend(reply.rtt);
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
    times.sort_unstable();
    let median = times.get(times.len() / 2).ok_or("nothing was answered")?;
    println!("{}", median.as_nanos() as f64 / 1e3);
    Ok(())
}
