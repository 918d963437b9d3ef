//! Handle of a running proxy.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use tokio::{
    net::{UnixListener, UnixStream},
    task::JoinHandle,
};

use crate::{
    Injected, Rules,
    proxy::{self, ProxyState},
};

/// Timeout of the check whether another program listens on the front socket.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);

/// A running proxy. Dropping it closes its connections and removes its socket.
#[derive(Debug)]
pub struct Chaos {
    front: PathBuf,
    shared: Arc<ProxyState>,
    task: JoinHandle<()>,
}

/// Why a proxy can't be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Another program listens there.
    #[error("{0} is in use: another program listens there")]
    InUse(PathBuf),
    /// The path exists and is not a socket.
    #[error("{0} exists and is not a socket; choose another path to listen on")]
    NotASocket(PathBuf),
    /// The socket can't be created.
    #[error("cannot listen on {path}")]
    Listen {
        /// The front socket.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl Chaos {
    /// Listens on `front` and forwards calls to the runtime at `back`, which need not exist yet. A
    /// socket at `front` without a listener is replaced.
    ///
    /// # Errors
    /// The front socket can't be created.
    pub async fn start(front: &Path, back: &Path, rules: Rules) -> Result<Self, StartError> {
        let front = front.to_owned();
        remove_stale(&front).await?;
        let listener = UnixListener::bind(&front).map_err(|source| StartError::Listen {
            path: front.clone(),
            source,
        })?;
        let shared = Arc::new(ProxyState::new(back.to_owned(), rules));
        let task = tokio::spawn(proxy::serve(listener, shared.clone()));
        Ok(Self {
            front,
            shared,
            task,
        })
    }

    /// Replaces the rules, also for open streams. Faults in progress continue: a call that hangs
    /// does so until its client cancels it. [`Chaos::cut`] ends them.
    pub fn set_rules(&self, rules: Rules) {
        self.shared.set_rules(rules);
    }

    /// Number of faults per rule since the start, including replaced rules.
    #[must_use]
    pub fn injected(&self) -> Vec<Injected> {
        self.shared.journal.counts()
    }

    /// The latest injected faults, the newest last: a line for each, with its seed and rule.
    #[must_use]
    pub fn recent(&self) -> Vec<String> {
        self.shared.journal.lines()
    }

    /// Closes all current connections, as the death of a runtime does.
    pub fn cut(&self) {
        self.shared.cut();
    }

    /// Number of current connections of clients.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.connections()
    }
}

impl Drop for Chaos {
    fn drop(&mut self) {
        // This closes the connections too.
        self.task.abort();
        // The next proxy replaces a socket that was left behind.
        let _ = std::fs::remove_file(&self.front);
    }
}

async fn remove_stale(front: &Path) -> Result<(), StartError> {
    use std::os::unix::fs::FileTypeExt;
    let listen = |source| StartError::Listen {
        path: front.to_owned(),
        source,
    };
    let kind = match std::fs::symlink_metadata(front) {
        Ok(found) => found.file_type(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(listen(error)),
    };
    if !kind.is_socket() {
        return Err(StartError::NotASocket(front.to_owned()));
    }
    // A listener whose queue is full doesn't accept the connection, but exists.
    match tokio::time::timeout(PROBE_TIMEOUT, UnixStream::connect(front)).await {
        Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(front).map_err(listen)
        }
        _ => Err(StartError::InUse(front.to_owned())),
    }
}
