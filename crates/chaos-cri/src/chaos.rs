//! The handle on a running proxy.

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
    proxy::{self, Shared},
};

/// How long the look at what is at the front socket may take.
const LOOK: Duration = Duration::from_secs(1);

/// A running proxy. Dropping it cuts its connections and removes its socket.
#[derive(Debug)]
pub struct Chaos {
    front: PathBuf,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

/// Why a proxy could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Somebody listens there already.
    #[error("{0} is in use: another program listens there")]
    InUse(PathBuf),
    /// There is something that is no socket.
    #[error("{0} exists and is not a socket; choose another path to listen on")]
    NoSocket(PathBuf),
    /// The socket cannot be made.
    #[error("cannot listen on {path}")]
    Listen {
        /// The front socket.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl Chaos {
    /// Listens on `front` and hands calls on to the runtime at `back`, which need not be there yet.
    /// A socket at `front` that nobody listens on any more is replaced.
    ///
    /// # Errors
    /// The front socket cannot be made.
    pub async fn start(front: &Path, back: &Path, rules: Rules) -> Result<Self, StartError> {
        let front = front.to_owned();
        remove_stale(&front).await?;
        let listener = UnixListener::bind(&front).map_err(|source| StartError::Listen {
            path: front.clone(),
            source,
        })?;
        let shared = Arc::new(Shared::new(back.to_owned(), rules));
        let task = tokio::spawn(proxy::serve(listener, shared.clone()));
        Ok(Self {
            front,
            shared,
            task,
        })
    }

    /// From now on these rules decide, also for streams that are open. What was injected before
    /// continues: a call that hangs does so until its client cancels it. [`Chaos::cut`] ends that.
    pub fn set_rules(&self, rules: Rules) {
        self.shared.set_rules(rules);
    }

    /// How often each rule hit since the start, also those that were replaced.
    #[must_use]
    pub fn injected(&self) -> Vec<Injected> {
        self.shared.journal.counts()
    }

    /// The faults injected last, the newest at the end: a line for each, with its seed and rule.
    #[must_use]
    pub fn recent(&self) -> Vec<String> {
        self.shared.journal.lines()
    }

    /// Cuts all connections that are there now, as the death of a runtime does.
    pub fn cut(&self) {
        self.shared.cut();
    }

    /// How many connections clients have now.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.connections()
    }
}

impl Drop for Chaos {
    fn drop(&mut self) {
        // With it go the connections.
        self.task.abort();
        // Who starts the next one replaces a socket that was left.
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
        return Err(StartError::NoSocket(front.to_owned()));
    }
    // A listener whose queue is full doesn't take the connection, and is there all the same.
    match tokio::time::timeout(LOOK, UnixStream::connect(front)).await {
        Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(front).map_err(listen)
        }
        _ => Err(StartError::InUse(front.to_owned())),
    }
}
