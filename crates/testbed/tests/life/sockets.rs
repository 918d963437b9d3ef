//! Sockets of the host.

use std::fs::read_to_string;

/// How the kernel shows the state of a connection that one side closed and that it remembers for a
/// minute.
const TIME_WAIT: &str = "06";

/// How many connections of this port of the host, on either side, are in TIME_WAIT.
pub(crate) fn time_wait(port: u16) -> usize {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let tables = tables.map(|table| read_to_string(table).unwrap_or_default());
    let ending = format!(":{port:04X}");
    let is_meant = |line: &&str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, local, remote, state, ..] = fields.as_slice() else {
            return false;
        };
        *state == TIME_WAIT && (local.ends_with(&ending) || remote.ends_with(&ending))
    };
    tables.concat().lines().filter(is_meant).count()
}
