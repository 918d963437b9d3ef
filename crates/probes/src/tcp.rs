//! A tcpSocket probe: a connection that opens is success.

use rubelet_api::probe::TcpSocket;
use tokio::time::{Instant, timeout_at};

use crate::{
    dial::dial,
    report::{ProbeFailure, ProbeOutcome},
    target, words,
};

/// One attempt.
///
/// # Errors
/// Nothing listens, or the port has no number.
pub(crate) async fn attempt(
    socket: &TcpSocket,
    default_host: &str,
    deadline: Instant,
) -> Result<(ProbeOutcome, String), ProbeFailure> {
    let host = target::host(socket.host.as_deref(), default_host)?;
    let port = target::port(&socket.port)?;
    match timeout_at(deadline, dial(host, port, deadline)).await {
        Ok(opened) => opened.map(|_| (ProbeOutcome::Passed, String::new())),
        Err(_) => {
            let address = words::joined(host, port);
            Err(ProbeFailure::timed_out(format!(
                "dial tcp {address}: i/o timeout"
            )))
        }
    }
}
