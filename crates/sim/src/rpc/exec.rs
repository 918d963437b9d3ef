//! Commands in containers.

use std::{sync::Arc, time::Duration};

use rubelet_cri::v1;

use super::seconds;
use crate::{EntryKind, Exec, Instance, Sim, behavior::Exit, state::RuntimeError};

/// Runs a command until it exits, its timeout is exceeded, or its container exits.
pub(super) async fn run(
    sim: &Sim,
    request: v1::ExecSyncRequest,
) -> Result<v1::ExecSyncResponse, RuntimeError> {
    let v1::ExecSyncRequest {
        container_id: id,
        cmd: command,
        timeout,
    } = request;
    let limit = seconds(timeout);
    let (instance, exec, now) = sim.with(|state| {
        let (instance, exec) = state.exec(&id, &command)?;
        Ok((instance, exec, state.clock.now()))
    })?;
    let mut running = Running {
        sim,
        instance,
        command,
        code: None,
    };
    let Exec {
        takes,
        exit_code,
        stdout,
        stderr,
    } = exec;
    let runs = if limit == Duration::ZERO {
        takes
    } else {
        takes.min(limit)
    };
    let alive = sim.wait(|state| state.exec_ended(&id, now + runs)).await;
    if alive && runs < takes {
        return Err(RuntimeError::exec_timeout(limit));
    }
    let exit_code = if alive { exit_code } else { Exit::KILLED };
    running.code = Some(exit_code);
    Ok(v1::ExecSyncResponse {
        stdout: stdout.into(),
        stderr: stderr.into(),
        exit_code,
    })
}

/// Records the end of a command, also if its caller cancels it.
struct Running<'a> {
    sim: &'a Sim,
    instance: Arc<Instance>,
    command: Vec<String>,
    code: Option<i32>,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let what = EntryKind::ExecEnded {
            instance: Arc::clone(&self.instance),
            command: std::mem::take(&mut self.command),
            code: self.code,
        };
        self.sim.with(|state| state.record(what));
    }
}
