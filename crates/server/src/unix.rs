//! The unix socket: created with the right owner before anybody can connect, taken over from an
//! agent that is gone, never from one that listens.

use std::{
    fs, io,
    os::unix::fs::{FileTypeExt as _, PermissionsExt as _, chown},
    path::{Path, PathBuf},
};

use tokio::net::{UnixListener, UnixSocket as TokioSocket, UnixStream};

use crate::group;

/// Path, owner and permissions of the socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnixSocket {
    /// Path of the socket; its directory is made if it is missing.
    pub path: PathBuf,
    /// Mode of the socket's file; writing is what permits connecting.
    pub mode: u32,
    /// Group that owns the socket, by its name in `/etc/group`. `None` leaves the group of the
    /// process.
    pub group: Option<String>,
}

impl UnixSocket {
    /// A socket for its owner and group: mode 0660.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            mode: 0o660,
            group: None,
        }
    }
}

/// Why a listener could not be made.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Another agent listens there.
    #[error(
        "another agent is listening on {}; stop it first, or give this one its own socket path",
        path.display()
    )]
    InUse {
        /// The socket.
        path: PathBuf,
    },
    /// The path exists and is not a socket.
    #[error("{} exists and is not a socket; remove it, or choose another path", path.display())]
    NotASocket {
        /// The path.
        path: PathBuf,
    },
    /// `/etc/group` has no such group.
    #[error(
        "group {name:?} for the socket {} is not in /etc/group; create it with `groupadd --system \
         {name}`, or choose another group",
        path.display()
    )]
    UnknownGroup {
        /// The requested group.
        name: String,
        /// The socket.
        path: PathBuf,
    },
    /// The system refused a step.
    #[error("cannot {step} {what}")]
    Io {
        /// The step: a verb.
        step: &'static str,
        /// Path or address.
        what: String,
        /// The system's error.
        #[source]
        source: io::Error,
    },
}

/// Creates the socket. Clients cannot connect before owner and mode are set.
///
/// # Errors
/// Another agent listens, the path exists and is not a socket, the group is unknown, or a system
/// call fails.
pub async fn bind_unix(socket: &UnixSocket) -> Result<UnixListener, BindError> {
    let path = &socket.path;
    let failed = |step: &'static str, path: &Path| {
        let what = path.display().to_string();
        move |source| BindError::Io { step, what, source }
    };
    let gid = group_id(socket)?;
    if let Some(directory) = path
        .parent()
        .filter(|directory| !directory.as_os_str().is_empty())
    {
        fs::create_dir_all(directory).map_err(failed("make the directory", directory))?;
    }
    remove_stale(path).await?;
    let unbound = TokioSocket::new_stream().map_err(failed("make the socket", path))?;
    unbound
        .bind(path)
        .map_err(failed("bind the socket", path))?;
    // Bound but not listening yet: connects are refused until the last step.
    fs::set_permissions(path, fs::Permissions::from_mode(socket.mode))
        .map_err(failed("set the mode of", path))?;
    chown(path, None, gid).map_err(failed("set the group of", path))?;
    unbound.listen(128).map_err(failed("listen on", path))
}

fn group_id(socket: &UnixSocket) -> Result<Option<u32>, BindError> {
    let Some(name) = &socket.group else {
        return Ok(None);
    };
    let groups = fs::read_to_string("/etc/group").map_err(|source| BindError::Io {
        step: "read",
        what: "/etc/group".to_owned(),
        source,
    })?;
    let unknown = || BindError::UnknownGroup {
        name: name.clone(),
        path: socket.path.clone(),
    };
    group::id_of(&groups, name).map(Some).ok_or_else(unknown)
}

/// Removes the socket of an agent that is gone.
async fn remove_stale(path: &Path) -> Result<(), BindError> {
    let owned = || path.to_owned();
    let failed = |step| {
        move |source| BindError::Io {
            step,
            what: path.display().to_string(),
            source,
        }
    };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed("look at")(error)),
        Ok(metadata) if !metadata.file_type().is_socket() => {
            return Err(BindError::NotASocket { path: owned() });
        }
        Ok(_) => {}
    }
    match UnixStream::connect(path).await {
        Ok(_) => Err(BindError::InUse { path: owned() }),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(failed("remove the stale socket"))
        }
        // A full backlog means that a process listens.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            Err(BindError::InUse { path: owned() })
        }
        Err(error) => Err(failed("probe the socket")(error)),
    }
}
