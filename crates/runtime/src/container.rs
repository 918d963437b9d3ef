//! One container: its record, and the callers that wait for its exit.

pub(crate) mod bundle;
pub(crate) mod create;
mod creation;
pub(crate) mod exec;
pub(crate) mod exit;
pub(crate) mod filters;
mod image_volumes;
pub(crate) mod orphan;
pub(crate) mod record_exit;
pub(crate) mod remove;
pub(crate) mod scope;
pub(crate) mod start;
pub(crate) mod stop;
pub(crate) mod update;
mod volumes;

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use rubelet_cgroup_plan::CgroupPath;
use rubelet_runtime_plan::{
    record::{ContainerRecord, ExitRecord},
    state::{CallDecision, ContainerCall, ContainerPhase, container as decision},
};
use tokio::sync::watch;

use crate::{
    error::{Result, RuntimeError},
    rates::CpuRate,
    sandbox::Sandbox,
};

/// A container. Its record is authoritative. Locks are held briefly, except `calls`.
#[derive(Debug)]
pub(crate) struct Container {
    pub(crate) id: String,
    pub(crate) sandbox: Arc<Sandbox>,
    record: Mutex<Arc<ContainerRecord>>,
    /// Held by a call that starts, changes or removes it, but not while waiting for its exit.
    pub(crate) calls: tokio::sync::Mutex<()>,
    /// Held while the record is written, so that an older version can't overwrite a newer one.
    pub(crate) saving: tokio::sync::Mutex<()>,
    ended: watch::Sender<bool>,
    /// Processor use per second.
    pub(crate) rate: Mutex<CpuRate>,
}

impl Container {
    pub(crate) fn new(record: ContainerRecord, sandbox: &Arc<Sandbox>) -> Arc<Self> {
        let has_exited = record.exit.is_some();
        Arc::new(Self {
            id: record.id.clone(),
            sandbox: Arc::clone(sandbox),
            record: Mutex::new(Arc::new(record)),
            calls: tokio::sync::Mutex::new(()),
            saving: tokio::sync::Mutex::new(()),
            ended: watch::Sender::new(has_exited),
            rate: Mutex::new(CpuRate::default()),
        })
    }

    pub(crate) fn record(&self) -> Arc<ContainerRecord> {
        Arc::clone(&self.record.lock())
    }

    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut ContainerRecord) -> T) -> T {
        change(Arc::make_mut(&mut self.record.lock()))
    }

    pub(crate) fn phase(&self) -> ContainerPhase {
        self.record.lock().phase
    }

    /// The action of a call in the present state.
    pub(crate) fn decision(&self, call: ContainerCall) -> Result<CallDecision> {
        let sandbox = self.sandbox.phase();
        Ok(decision(call, &self.id, Some(self.phase()), Some(sandbox))?)
    }

    /// Records its start, in nanoseconds since 1970; false if it is nothing new.
    pub(crate) fn set_start(&self, at: i64) -> bool {
        self.change(|record| record.note_start(at))
    }

    /// Records its exit; false if one is recorded already.
    pub(crate) fn set_exit(&self, exit: ExitRecord) -> bool {
        let first = self.change(|record| record.note_exit(exit));
        // After the record: a waiter that wakes finds the exit in it.
        self.ended.send_replace(true);
        first
    }

    pub(crate) fn has_exited(&self) -> bool {
        *self.ended.borrow()
    }

    /// Turns true when the container exits.
    pub(crate) fn exited(&self) -> watch::Receiver<bool> {
        self.ended.subscribe()
    }

    /// Waits for the exit for at most `within`; returns whether it has exited.
    pub(crate) async fn wait_for_exit(&self, within: Duration) -> bool {
        let mut ended = self.ended.subscribe();
        let ended = ended.wait_for(|ended| *ended);
        matches!(tokio::time::timeout(within, ended).await, Ok(Ok(_)))
    }

    /// Its cgroup.
    pub(crate) fn cgroup(&self) -> Result<CgroupPath> {
        let text = self.record.lock().cgroup.clone();
        CgroupPath::parse(&text).map_err(|error| RuntimeError::failed(error.to_string()))
    }
}
