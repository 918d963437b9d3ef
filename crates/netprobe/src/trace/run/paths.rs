//! The ways that flows took.

use std::net::IpAddr;

use super::{ProbeResult, TraceRun};
use crate::trace::event::TracePath;

/// The different ways, in the order of their first flows.
pub(super) fn of(run: &TraceRun) -> Vec<TracePath> {
    let mut paths: Vec<TracePath> = Vec::new();
    for flow in 0..run.options.flows {
        let hops = way(run, flow);
        match paths.iter_mut().find(|path| fits(&path.hops, &hops)) {
            Some(path) => {
                path.flows.push(flow);
                // A hop that did not answer one flow may have answered the other.
                for (known, hop) in path.hops.iter_mut().zip(hops) {
                    *known = known.or(hop);
                }
            }
            None => paths.push(TracePath {
                flows: vec![flow],
                hops,
            }),
        }
    }
    paths
}

/// The first address that answered at each hop.
fn way(run: &TraceRun, flow: u8) -> Vec<Option<IpAddr>> {
    let last = run.last[usize::from(flow)];
    let answered = |ttl: u8| {
        run.probes
            .iter()
            .filter(|probe| (probe.ttl, probe.flow) == (ttl, flow))
            .find_map(|probe| match probe.outcome {
                Some(ProbeResult::Answered(answer)) => Some(answer.from),
                _ => None,
            })
    };
    (run.options.first..=last).map(answered).collect()
}

/// Whether two ways may be the same one.
fn fits(a: &[Option<IpAddr>], b: &[Option<IpAddr>]) -> bool {
    a.len() == b.len()
        && a.iter()
            .zip(b)
            .all(|(a, b)| a.is_none() || b.is_none() || a == b)
}
