//! Connections of the host.

use std::{collections::HashSet, fs::read_to_string};

/// The kernel's number of the state TIME_WAIT, in which a closed connection stays for a minute.
const TIME_WAIT: &str = "06";

/// Connections of a host port, on either side, that began after a moment. An earlier owner of the port may
/// have left some.
pub(crate) struct Connections {
    port: u16,
    before: HashSet<[String; 2]>,
}

impl Connections {
    /// Those that begin from now on.
    pub(crate) fn from_now(port: u16) -> Self {
        let before = ends(port, |_| true);
        Self { port, before }
    }

    /// How many of them are in TIME_WAIT.
    pub(crate) fn in_time_wait(&self) -> usize {
        let now = ends(self.port, |state| state == TIME_WAIT);
        now.difference(&self.before).count()
    }
}

/// The two ends of each connection of the port in such a state.
fn ends(port: u16, is_meant: impl Fn(&str) -> bool) -> HashSet<[String; 2]> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let tables = tables.map(|table| read_to_string(table).unwrap_or_default());
    let ending = format!(":{port:04X}");
    let ends = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, local, remote, state, ..] = fields.as_slice() else {
            return None;
        };
        let is_of_port = local.ends_with(&ending) || remote.ends_with(&ending);
        (is_of_port && is_meant(state)).then(|| [(*local).to_owned(), (*remote).to_owned()])
    };
    tables.concat().lines().filter_map(ends).collect()
}
