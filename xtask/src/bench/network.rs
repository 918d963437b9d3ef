//! Ping and trace, by examples of the crate that implements them, compared with Debian's ping.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use rubelet_testbed::{command::stdout_of, packages};

use super::{Request, example, progress, report::Results};

const PACKAGE: &str = "rubelet-netprobe";

/// Measures `ping_overhead_vs_iputils`, `ping_pps` and `trace_30_hops_ms`.
pub(super) fn measure(request: &Request<'_>, results: &mut Results) -> Result<()> {
    progress("ping and trace in network namespaces");
    if request.includes("ping_overhead_vs_iputils") {
        let own = example::number(PACKAGE, "ping_rtt_us")?;
        results.add("ping_overhead_vs_iputils", own / iputils_us()?);
    }
    for (name, example) in [
        ("ping_pps", "ping_pps"),
        ("trace_30_hops_ms", "trace_30_hops_ms"),
    ] {
        if request.includes(name) {
            results.add(name, example::number(PACKAGE, example)?);
        }
    }
    Ok(())
}

/// The median round trip that Debian's ping shows for the same requests as the example sends. They are far enough apart
/// that it sleeps between them: within 10 ms it keeps the processor busy instead, and its times are those of warm caches,
/// which nobody sees who pings once a second.
fn iputils_us() -> Result<f64> {
    let ping = packages::ensure_ping()?;
    let words = ["-n", "-c", "500", "-i", "0.02", "127.0.0.1"];
    median(&stdout_of(Command::new(ping).args(words))?)
}

/// The median of the times in the lines of ping, in microseconds.
fn median(text: &str) -> Result<f64> {
    let time = |line: &str| -> Option<f64> {
        let (_, rest) = line.split_once(" time=")?;
        let millis: f64 = rest.strip_suffix(" ms")?.parse().ok()?;
        Some(millis * 1e3)
    };
    let mut times: Vec<f64> = text.lines().filter_map(time).collect();
    ensure!(!times.is_empty(), "ping printed no times: {text}");
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().context("there is one")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_that_of_the_lines_with_times() {
        let text = "PING 127.0.0.1 (127.0.0.1) 56(84) bytes of data.
64 bytes from 127.0.0.1: icmp_seq=1 ttl=64 time=0.030 ms
64 bytes from 127.0.0.1: icmp_seq=2 ttl=64 time=0.010 ms
64 bytes from 127.0.0.1: icmp_seq=3 ttl=64 time=0.020 ms

rtt min/avg/max/mdev = 0.010/0.020/0.030/0.008 ms
";
        assert!((median(text).unwrap() - 20.0).abs() < 1e-9);
        assert!(median("").is_err());
    }
}
