//! Callers that wait for a shim's events of execs and attachments.

use std::collections::HashMap;

use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};

/// The waiters of one pod, by the identifiers of execs and attachments.
#[derive(Debug, Default)]
pub(crate) struct SessionWaiters {
    execs: Mutex<HashMap<String, ExecWaiter>>,
    attachments: Mutex<HashMap<String, oneshot::Sender<()>>>,
}

#[derive(Debug)]
struct ExecWaiter {
    code: oneshot::Sender<i32>,
    /// Dropped with the exit.
    _running: watch::Sender<bool>,
}

/// The end of an exec.
#[derive(Debug)]
pub(crate) struct ExecEnd {
    /// The exit code; fails if it is lost with the shim.
    pub(crate) code: oneshot::Receiver<i32>,
    /// Closed when the command exits.
    pub(crate) ended: watch::Receiver<bool>,
}

impl SessionWaiters {
    /// Must be called before the command is started.
    pub(crate) fn await_exec(&self, exec_id: &str) -> ExecEnd {
        let (code, wait) = oneshot::channel();
        let (running, ended) = watch::channel(false);
        let waiter = ExecWaiter {
            code,
            _running: running,
        };
        self.execs.lock().insert(exec_id.to_owned(), waiter);
        ExecEnd { code: wait, ended }
    }

    /// The shim reports the exit of an exec.
    pub(crate) fn exec_exited(&self, exec_id: &str, exit_code: i32) {
        let waiter = self.execs.lock().remove(exec_id);
        if let Some(waiter) = waiter {
            // The receiver is gone if the caller gave up.
            let _ = waiter.code.send(exit_code);
        }
    }

    pub(crate) fn forget_exec(&self, exec_id: &str) {
        self.execs.lock().remove(exec_id);
    }

    /// Forgets all execs: their exits will not be reported any more.
    pub(crate) fn forget_execs(&self) {
        self.execs.lock().clear();
    }

    /// Must be called before attaching. Resolves when the shim has closed the attachment early.
    pub(crate) fn await_overrun(&self, attach_id: &str) -> oneshot::Receiver<()> {
        let (closed, wait) = oneshot::channel();
        self.attachments.lock().insert(attach_id.to_owned(), closed);
        wait
    }

    /// The shim reports that it has closed an attachment early.
    pub(crate) fn overrun(&self, attach_id: &str) {
        let waiter = self.attachments.lock().remove(attach_id);
        if let Some(waiter) = waiter {
            // The receiver is gone if the session has ended.
            let _ = waiter.send(());
        }
    }

    pub(crate) fn forget_attachment(&self, attach_id: &str) {
        self.attachments.lock().remove(attach_id);
    }
}
