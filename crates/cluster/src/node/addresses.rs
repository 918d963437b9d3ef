//! The current addresses of the machine. The node's name is resolved only if it determines the
//! address, and the caller never waits longer than a moment for it.

use std::{net::IpAddr, time::Duration};

use rubelet_host::address;
use rubelet_node_plan::node_status::{
    NodeSettings,
    addresses::{HostAddresses, needs_lookup},
};
use tokio::{
    net::lookup_host,
    task::JoinSet,
    time::{Instant, timeout},
};

/// Deadline for resolving a name.
const LOOKUP: Duration = Duration::from_secs(10);
/// Longest time the first status waits for that.
const FIRST: Duration = Duration::from_secs(1);
/// A name is resolved again after this time.
const REFRESH: Duration = Duration::from_secs(300);

/// Finds the machine's addresses.
#[derive(Debug)]
pub(super) struct Addresses {
    /// The result of the last lookup of the name.
    resolved: Vec<IpAddr>,
    /// The time of that lookup.
    asked: Option<Instant>,
    lookup: JoinSet<Vec<IpAddr>>,
}

impl Addresses {
    pub(super) fn new() -> Self {
        Self {
            resolved: Vec::new(),
            asked: None,
            lookup: JoinSet::new(),
        }
    }

    /// The addresses now.
    pub(super) async fn find(&mut self, settings: &NodeSettings) -> HostAddresses {
        if needs_lookup(settings) {
            self.resolve(&settings.name).await;
        }
        HostAddresses {
            resolved: self.resolved.clone(),
            ..self.without_lookup(settings)
        }
    }

    /// The same without the name.
    pub(super) fn without_lookup(&self, settings: &NodeSettings) -> HostAddresses {
        let given = settings.node_ips.iter().copied();
        HostAddresses {
            absent: given
                .filter(|ip| !ip.is_unspecified() && !address::is_local(*ip))
                .collect(),
            resolved: Vec::new(),
            outward: address::outward(),
        }
    }

    async fn resolve(&mut self, name: &str) {
        self.resolved.retain(|ip| address::is_local(*ip));
        let due = self.asked.is_none_or(|at| at.elapsed() >= REFRESH);
        let first = self.asked.is_none();
        if due && self.lookup.is_empty() {
            self.asked = Some(Instant::now());
            let name = name.to_owned();
            self.lookup.spawn(async move {
                let found = timeout(LOOKUP, lookup_host((name, 0))).await;
                let found = found.into_iter().flatten().flatten();
                found
                    .map(|socket| socket.ip())
                    .filter(|ip| address::is_local(*ip))
                    .collect()
            });
        }
        let answer = match first {
            true => timeout(FIRST, self.lookup.join_next()).await.ok().flatten(),
            false => self.lookup.try_join_next(),
        };
        // No answer is no news: what it resolved to before is still an address of this machine.
        if let Some(Ok(resolved)) = answer
            && !resolved.is_empty()
        {
            self.resolved = resolved;
        }
    }
}
