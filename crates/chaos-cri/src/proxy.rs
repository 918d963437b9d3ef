//! Sockets, connections, calls and streams, with the faults that rules inject.

mod body;
mod call;
mod connection;
mod freeze_state;
mod history;
mod runtime_connection;
mod stream;

use std::{io, path::PathBuf, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{net::UnixListener, sync::watch, task::JoinSet};

use crate::{
    decide::{Decision, Rules},
    journal::Journal,
    rpc::Rpc,
    rule::Stage,
    subject::{KnownPods, Subject},
};
use history::History;

/// Pause after a failed accept, which usually means that no file descriptor is free.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// State that all connections of a proxy share.
#[derive(Debug)]
pub(crate) struct ProxyState {
    back: PathBuf,
    rules: Mutex<Rules>,
    known: Mutex<KnownPods>,
    history: Mutex<History>,
    pub(crate) journal: Journal,
    /// Counts calls of `cut`, each of which closes all connections. Its receivers are the
    /// connections.
    cuts: watch::Sender<u64>,
}

impl ProxyState {
    pub(crate) fn new(back: PathBuf, rules: Rules) -> Self {
        Self {
            back,
            rules: Mutex::new(rules),
            known: Mutex::default(),
            history: Mutex::default(),
            journal: Journal::default(),
            cuts: watch::Sender::new(0),
        }
    }

    pub(crate) fn set_rules(&self, rules: Rules) {
        *self.rules.lock() = rules;
    }

    pub(crate) fn cut(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }

    pub(crate) fn connections(&self) -> usize {
        self.cuts.receiver_count()
    }

    /// The fault to inject here, recorded as injected.
    fn decide(&self, stage: Stage, rpc: &Rpc, subject: &Subject) -> Option<Decision> {
        let decision = self.rules.lock().decide(stage, rpc, subject)?;
        self.journal.note(&decision, rpc.name, subject);
        Some(decision)
    }
}

/// Accepts clients until the future is dropped, which closes their connections.
pub(crate) async fn serve(listener: UnixListener, shared: Arc<ProxyState>) {
    let mut connections = JoinSet::new();
    loop {
        // Cancel safety: both branches wait for something that stays available until it is taken.
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection::run(stream, shared.clone()));
                }
                Err(error) => pause(&error).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn pause(error: &io::Error) {
    if error.kind() != io::ErrorKind::ConnectionAborted {
        tracing::warn!(%error, "Cannot accept a connection");
        tokio::time::sleep(ACCEPT_PAUSE).await;
    }
}
