//! The table of a repeated trace: for each hop who answered, and its statistics.

use std::net::IpAddr;

use super::event::{Hop, HopSummary};
use crate::statistics::Statistics;

/// The most addresses that are remembered for a hop: one may answer with any number of them.
const MOST_ADDRESSES: usize = 16;

/// The hops of a repeated trace, from TTL 1 or the first one.
#[derive(Debug, Default)]
pub(crate) struct TraceTable {
    hops: Vec<HopState>,
}

#[derive(Debug)]
struct HopState {
    ttl: u8,
    addresses: Vec<IpAddr>,
    statistics: Statistics,
}

impl TraceTable {
    /// Adds the results of a round for one hop.
    pub(crate) fn add(&mut self, hop: &Hop) {
        let place = self
            .hops
            .iter()
            .position(|known| known.ttl == hop.ttl)
            .unwrap_or_else(|| {
                self.hops.push(HopState {
                    ttl: hop.ttl,
                    addresses: Vec::new(),
                    statistics: Statistics::default(),
                });
                self.hops.len() - 1
            });
        let known = &mut self.hops[place];
        for probe in &hop.probes {
            known.statistics.on_sent();
            let Some(answer) = probe.answer else { continue };
            known.statistics.on_reply(Some(answer.rtt), false);
            known.addresses.retain(|address| *address != answer.from);
            known.addresses.push(answer.from);
            if known.addresses.len() > MOST_ADDRESSES {
                known.addresses.remove(0);
            }
        }
    }

    /// Forgets the hops behind the target.
    pub(crate) fn truncate(&mut self, distance: u8) {
        self.hops.retain(|hop| hop.ttl <= distance);
    }

    /// The table, without the silent hops at its end but one.
    #[must_use]
    pub(crate) fn summary(&self) -> Vec<HopSummary> {
        let answered = self.hops.iter().rposition(|hop| !hop.addresses.is_empty());
        let shown = answered.map_or(1, |last| last + 2);
        let hops = self.hops.iter().take(shown);
        hops.map(|hop| HopSummary {
            ttl: hop.ttl,
            addresses: hop.addresses.clone(),
            summary: hop.statistics.summary(),
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::{net::Ipv4Addr, time::Duration};

    use super::*;
    use crate::trace::event::{HopAnswer, HopProbe};

    fn hop(ttl: u8, from: Option<u8>) -> Hop {
        let answer = from.map(|from| HopAnswer {
            from: Ipv4Addr::new(10, 0, 0, from).into(),
            rtt: Duration::from_millis(1),
            reached: false,
            icmp: None,
        });
        Hop {
            ttl,
            probes: vec![HopProbe { flow: 0, answer }],
            mtu: None,
        }
    }

    #[test]
    fn hops_collect_their_addresses_and_their_losses() {
        let mut table = TraceTable::default();
        for (first, second) in [(Some(1), Some(2)), (None, Some(3)), (Some(1), Some(2))] {
            table.add(&hop(1, first));
            table.add(&hop(2, second));
            table.add(&hop(3, None));
            table.add(&hop(4, None));
        }
        let rows = table.summary();
        assert_eq!(rows.len(), 3);
        assert_eq!((rows[0].summary.sent, rows[0].summary.received), (3, 2));
        let addresses: Vec<_> = rows[1].addresses.iter().map(ToString::to_string).collect();
        assert_eq!(addresses, ["10.0.0.3", "10.0.0.2"]);
        table.truncate(1);
        assert_eq!(table.summary().len(), 1);
    }

    #[test]
    fn a_hop_that_answers_with_many_addresses_fills_nothing() {
        let mut table = TraceTable::default();
        for from in 0..=255 {
            table.add(&hop(1, Some(from)));
        }
        let row = &table.summary()[0];
        assert_eq!(
            (row.addresses.len(), row.summary.received),
            (MOST_ADDRESSES, 256)
        );
    }
}
