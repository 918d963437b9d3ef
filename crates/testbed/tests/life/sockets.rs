//! Sockets of the host.

use std::fs::read_to_string;

/// The kernel's number of the state TIME_WAIT, in which a closed connection stays for a minute.
const TIME_WAIT: &str = "06";

/// Number of connections of this host port, on either side, in TIME_WAIT.
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
