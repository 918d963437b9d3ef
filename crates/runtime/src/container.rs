//! One container: its record, and who waits for its end.

pub(crate) mod bundle;
pub(crate) mod create;
pub(crate) mod end;
pub(crate) mod exec;
pub(crate) mod filters;
mod image_volumes;
pub(crate) mod remove;
pub(crate) mod scope;
pub(crate) mod start;
pub(crate) mod stop;
pub(crate) mod update;
mod volumes;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use rubelet_base::cgroup::CgroupPath;
use rubelet_runtime_plan::{
    record::{ContainerRecord, ExitRecord},
    state::{ContainerCall, ContainerPhase, Verdict, container as verdict},
};
use tokio::sync::watch;

use crate::{
    events::lock,
    fault::{Fault, Outcome},
    sandbox::Sandbox,
    stats::Rate,
};

/// A container. Its record is the truth about it; locks are held for moments only, except `calls`.
#[derive(Debug)]
pub(crate) struct Container {
    pub(crate) id: String,
    pub(crate) sandbox: Arc<Sandbox>,
    record: Mutex<Arc<ContainerRecord>>,
    /// Held by a call that starts, changes or removes it. Not while waiting for its end.
    pub(crate) calls: tokio::sync::Mutex<()>,
    /// Held while the record is written, so that an older one can't come after a newer one.
    pub(crate) saving: tokio::sync::Mutex<()>,
    ended: watch::Sender<bool>,
    /// Processor use per second.
    pub(crate) rate: Mutex<Rate>,
}

impl Container {
    pub(crate) fn new(record: ContainerRecord, sandbox: &Arc<Sandbox>) -> Arc<Self> {
        let has_ended = record.exit.is_some();
        Arc::new(Self {
            id: record.id.clone(),
            sandbox: Arc::clone(sandbox),
            record: Mutex::new(Arc::new(record)),
            calls: tokio::sync::Mutex::new(()),
            saving: tokio::sync::Mutex::new(()),
            ended: watch::Sender::new(has_ended),
            rate: Mutex::new(Rate::default()),
        })
    }

    pub(crate) fn record(&self) -> Arc<ContainerRecord> {
        Arc::clone(&lock(&self.record))
    }

    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut ContainerRecord) -> T) -> T {
        change(Arc::make_mut(&mut lock(&self.record)))
    }

    pub(crate) fn phase(&self) -> ContainerPhase {
        lock(&self.record).phase
    }

    /// What a call does now.
    pub(crate) fn verdict(&self, call: ContainerCall) -> Outcome<Verdict> {
        let sandbox = self.sandbox.phase();
        Ok(verdict(call, &self.id, Some(self.phase()), Some(sandbox))?)
    }

    /// Takes down how it ended; false if that is known already.
    pub(crate) fn set_exit(&self, exit: ExitRecord) -> bool {
        let first = self.change(|record| note_exit(record, exit));
        self.ended.send_replace(true);
        first
    }

    pub(crate) fn has_ended(&self) -> bool {
        *self.ended.borrow()
    }

    /// Waits for the end, at most so long; whether it has ended.
    pub(crate) async fn wait_for_end(&self, within: Duration) -> bool {
        let mut ended = self.ended.subscribe();
        let ended = ended.wait_for(|ended| *ended);
        matches!(tokio::time::timeout(within, ended).await, Ok(Ok(_)))
    }

    /// Its cgroup.
    pub(crate) fn cgroup(&self) -> Outcome<CgroupPath> {
        let text = lock(&self.record).cgroup.clone();
        CgroupPath::parse(&text).map_err(|error| Fault::failed(error.to_string()))
    }
}

/// Notes in a record how its container ended; false if that is known already.
pub(crate) fn note_exit(record: &mut ContainerRecord, exit: ExitRecord) -> bool {
    if record.exit.is_some() {
        return false;
    }
    record.exit = Some(exit);
    record.pid = 0;
    if record.phase != ContainerPhase::Removing {
        record.phase = ContainerPhase::Exited;
    }
    true
}
