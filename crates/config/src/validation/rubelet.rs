//! Rubelet's own options.

use super::{Check, Verdict, broken, not_zero};

/// Longest path of a unix socket that Linux takes.
const MAX_SOCKET_PATH: usize = 107;

pub(super) fn validate(check: &Check<'_>) -> Verdict {
    let options = check.rubelet;
    let socket = options.socket.as_str();
    if !socket.starts_with('/') || socket.ends_with('/') || socket.len() > MAX_SOCKET_PATH {
        let message = format!(
            "must be the absolute path of a unix socket of at most {MAX_SOCKET_PATH} bytes, is \
             {socket:?}"
        );
        return broken(["rubelet.socket"], message);
    }
    let group = options.socket_group.as_str();
    if group.contains(|c: char| c.is_whitespace() || c == ':') {
        return broken(
            ["rubelet.socketGroup"],
            format!("must be a group's name, is {group:?}"),
        );
    }
    not_zero("rubelet.relistPeriod", options.relist_period)
}
