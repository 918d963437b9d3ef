//! Connects to a shim that is already running.

use std::{
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use rubelet_shim::{
    protocol::{Call, ShimReply, ShimState},
    spawn,
};

use crate::{
    blocking::unbounded,
    error::{Result, RuntimeError},
    shim_client::{ShimClient, ShimEventHandler, process_handle},
};

/// Timeout for a shim's report of its pod. One that takes longer hangs.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A shim that responds.
pub(crate) struct LiveShim {
    pub(crate) link: Arc<ShimClient>,
    pub(crate) state: ShimState,
}

/// Connects to the shim of a directory, if there is one.
pub(crate) async fn connect(dir: PathBuf, on_event: ShimEventHandler) -> Result<Option<LiveShim>> {
    let reached = unbounded(move || reach(&dir)).await?;
    let Some((socket, pid, handle)) = reached else {
        return Ok(None);
    };
    let link = ShimClient::open(socket, pid, handle, on_event)
        .map_err(|error| RuntimeError::because("cannot communicate with the shim", &error))?;
    match link.call(Call::State).await? {
        ShimReply::State(state) => Ok(Some(LiveShim {
            link,
            state: *state,
        })),
        other => Err(RuntimeError::failed(format!(
            "unexpected reply from the shim: {other:?}"
        ))),
    }
}

type ShimConnection = (std::os::unix::net::UnixStream, i32, OwnedFd);

fn reach(dir: &Path) -> Result<Option<ShimConnection>> {
    let socket = match spawn::connect(dir) {
        Ok(socket) => socket,
        Err(error) if error.is_gone() => return Ok(None),
        Err(error) => return Err(RuntimeError::because("cannot connect to the shim", &error)),
    };
    // The peer's PID stays valid while the pidfd is opened, because the peer holds the other end of
    // the connection.
    let peer = rustix::net::sockopt::socket_peercred(&socket).map_err(|error| {
        RuntimeError::because(
            "cannot identify the process of the shim",
            &std::io::Error::from(error),
        )
    })?;
    let pid = peer.pid.as_raw_nonzero().get();
    let handle = process_handle(pid).map_err(|error| {
        RuntimeError::because("cannot identify the process of the shim", &error)
    })?;
    Ok(Some((socket, pid, handle)))
}
