//! Names of the addresses that a trace found, looked up beside it.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    thread,
    time::Duration,
};

use rubelet_host::reverse_name::reverse_name;
use tokio::sync::oneshot;

/// Time that a line waits for its names.
const PATIENCE: Duration = Duration::from_secs(2);
/// The most addresses of one line that are looked up.
const AT_ONCE: usize = 8;

/// The names that are known.
#[derive(Debug, Default)]
pub(super) struct Names {
    known: BTreeMap<IpAddr, Option<String>>,
}

impl Names {
    /// Looks up names that are not known yet. An address whose resolver is slow has none.
    pub(super) async fn look_up(&mut self, addresses: impl IntoIterator<Item = IpAddr>) {
        let missing: BTreeSet<IpAddr> = addresses
            .into_iter()
            .filter(|address| !self.known.contains_key(address))
            .collect();
        let running: Vec<_> = missing
            .into_iter()
            .take(AT_ONCE)
            .map(|address| (address, start(address)))
            .collect();
        let deadline = tokio::time::Instant::now() + PATIENCE;
        for (address, name) in running {
            let name = match name {
                Some(name) => tokio::time::timeout_at(deadline, name).await,
                None => continue,
            };
            let name = name.ok().and_then(Result::ok).flatten();
            self.known.insert(address, name);
        }
    }

    /// The name of an address, if it is known.
    pub(super) fn of(&self, address: IpAddr) -> Option<String> {
        self.known.get(&address).cloned().flatten()
    }
}

/// Asks the resolver in a detached thread: it may take longer than the program runs.
fn start(address: IpAddr) -> Option<oneshot::Receiver<Option<String>>> {
    let (sender, name) = oneshot::channel();
    let ask = move || {
        // The line may have been printed without the name.
        let _ = sender.send(reverse_name(address));
    };
    let started = thread::Builder::new()
        .name("resolver".to_owned())
        .spawn(ask);
    started.is_ok().then_some(name)
}
