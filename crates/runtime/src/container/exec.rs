//! Commands in containers, `ExecSync`, and `ReopenContainerLog`.

use std::{os::fd::OwnedFd, sync::Arc, time::Duration};

use rubelet_cri::{CriErrorKind, v1};
use rubelet_oci::Spec;
use rubelet_runtime_plan::{exec_spec, state::ContainerCall};
use rubelet_shim::protocol::{Call, SignalTarget, StartExec, StreamFds};

use super::Container;
use crate::{
    engine::Engine,
    error::{Result, RuntimeError},
    identifier,
    output::{OutputBuffer, drain},
    sandbox::ExecEnd,
};

const SIGKILL: i32 = 9;
/// How long a command that was killed after its timeout is waited for.
const KILL_WAIT: Duration = Duration::from_secs(2);

/// Runs a command in a container and waits until it exits.
pub(crate) async fn exec_sync(
    engine: Arc<Engine>,
    request: v1::ExecSyncRequest,
) -> Result<v1::ExecSyncResponse> {
    let pipe = |error: std::io::Error| RuntimeError::because("cannot create a pipe", &error);
    let (mut stdout, stdout_end) = OutputBuffer::new().map_err(pipe)?;
    let (mut stderr, stderr_end) = OutputBuffer::new().map_err(pipe)?;
    let streams = StreamFds {
        stdin: false,
        stdout: true,
        stderr: true,
    };
    let command = ExecCommand {
        container: &request.container_id,
        args: &request.cmd,
        tty: false,
        streams,
        fds: vec![stdout_end, stderr_end],
    };
    let (waiting, _) = start(&engine, command).await?;

    let timeout = u64::try_from(request.timeout)
        .ok()
        .filter(|&seconds| seconds > 0);
    let timeout = timeout.map(Duration::from_secs);
    let exit_code = waiting.wait(&mut stdout, &mut stderr, timeout).await?;
    drain(&mut stdout, &mut stderr).await;
    Ok(v1::ExecSyncResponse {
        stdout: stdout.into_bytes(),
        stderr: stderr.into_bytes(),
        exit_code,
    })
}

/// A command for a running container.
pub(crate) struct ExecCommand<'a> {
    /// Identifier of the container, or the beginning of one.
    pub(crate) container: &'a str,
    pub(crate) args: &'a [String],
    pub(crate) tty: bool,
    /// The streams whose descriptors are in `fds`; the others are `/dev/null`. None with a
    /// terminal.
    pub(crate) streams: StreamFds,
    pub(crate) fds: Vec<OwnedFd>,
}

/// Starts a command, as the container's user with its capabilities, profile and cgroup. Returns the
/// descriptor of the terminal, if it has one.
pub(crate) async fn start(
    engine: &Engine,
    command: ExecCommand<'_>,
) -> Result<(PendingExec, Option<OwnedFd>)> {
    if command.args.is_empty() {
        return Err(RuntimeError::invalid("the request has no command"));
    }
    let id = command.container;
    let found = engine.container(ContainerCall::Exec, id)?;
    let container = found.ok_or_else(|| RuntimeError::container_not_found(id))?;
    container.decision(ContainerCall::Exec)?;
    let spec = spec(engine, &container).await?;
    let exec_id = identifier::random()
        .map_err(|error| RuntimeError::because("cannot generate an identifier", &error))?;
    // Before the call: the exit of a short command may be reported before the answer.
    let pending = PendingExec::new(&container, exec_id);
    let start = StartExec {
        id: container.id.clone(),
        exec_id: pending.exec_id.clone(),
        process: exec_spec::build(&spec, command.args, command.tty),
        streams: command.streams,
    };
    let link = container.sandbox.link()?;
    let call = Call::Exec(Box::new(start));
    let started = link.call_with(call, command.fds).await;
    let (_, mut fds) = started.map_err(|error| {
        // What tools look for in the text of containerd and runc. Without containerd's identifier of the
        // command, each failure of a probe has the same text, and so the same event.
        let text =
            format!("failed to exec in container: OCI runtime exec failed: exec failed: {error}");
        RuntimeError::new(error.kind, text)
    })?;
    Ok((pending, fds.pop()))
}

/// The specification of a container. Read from disk for each command, so that an idle container
/// needs no memory for it.
async fn spec(engine: &Engine, container: &Container) -> Result<Spec> {
    let dir = engine
        .layout
        .sandbox(&container.sandbox.id)
        .bundle(&container.id);
    engine
        .blocking(move || {
            let file = dir.join("config.json");
            let text = std::fs::read(&file).map_err(|error| {
                RuntimeError::because(format!("cannot read {}", file.display()), &error)
            })?;
            serde_json::from_slice(&text).map_err(|error| {
                RuntimeError::because(format!("cannot read {}", file.display()), &error)
            })
        })
        .await
}

/// A command that was started, or is about to be. Killed when this is dropped, as when the caller
/// goes away.
pub(crate) struct PendingExec {
    container: Arc<Container>,
    exec_id: String,
    end: Option<ExecEnd>,
}

impl PendingExec {
    fn new(container: &Arc<Container>, exec_id: String) -> Self {
        Self {
            end: Some(container.sandbox.waiters.await_exec(&exec_id)),
            container: Arc::clone(container),
            exec_id,
        }
    }

    /// Its exit. From now on, dropping this does not kill the command.
    pub(crate) fn detach(mut self) -> Option<ExecEnd> {
        self.end.take()
    }

    /// Kills the command; `None` if its shim is gone, and the command with it.
    fn kill(&self) -> Option<impl Future<Output = ()> + Send + use<>> {
        let link = self.container.sandbox.live_link()?;
        let call = Call::Signal {
            id: self.container.id.clone(),
            signal: SIGKILL,
            target: SignalTarget::Exec(self.exec_id.clone()),
        };
        Some(async move {
            if let Err(error) = link.call(call).await {
                tracing::debug!(%error, "Failed to kill a command");
            }
        })
    }

    async fn wait(
        mut self,
        stdout: &mut OutputBuffer,
        stderr: &mut OutputBuffer,
        timeout: Option<Duration>,
    ) -> Result<i32> {
        let Some(end) = self.end.as_mut() else {
            return Err(RuntimeError::failed(
                "another call already waited for the exit of the command",
            ));
        };
        let ended = async {
            let output = async {
                // Read meanwhile: a command that has filled a pipe would not exit.
                tokio::join!(stdout.read(), stderr.read());
                std::future::pending::<()>().await;
            };
            tokio::select! {
                ended = &mut end.code => ended,
                () = output => unreachable!("it never returns"),
            }
        };
        let ended = match timeout {
            Some(timeout) => tokio::time::timeout(timeout, ended).await,
            None => Ok(ended.await),
        };
        match ended {
            Ok(Ok(exit_code)) => {
                // Without an `end`, the drop kills nothing.
                self.end = None;
                Ok(exit_code)
            }
            // The exit code is lost: the container or its shim has exited.
            Ok(Err(_)) => {
                self.end = None;
                Err(exit_code_lost())
            }
            // The kubelet checks the code and shows the message.
            Err(_) => {
                // As containerd does: when the call returns, the command is gone, unless it waits in
                // the kernel.
                let kill = self.kill();
                if let Some((kill, end)) = kill.zip(self.end.as_mut()) {
                    let gone = async {
                        kill.await;
                        (&mut end.code).await.is_ok()
                    };
                    if tokio::time::timeout(KILL_WAIT, gone).await == Ok(true) {
                        self.end = None;
                    }
                }
                let timeout = timeout.unwrap_or_default();
                Err(RuntimeError::new(
                    CriErrorKind::DeadlineExceeded(timeout),
                    format!(
                        "timeout {}s exceeded: context deadline exceeded",
                        timeout.as_secs()
                    ),
                ))
            }
        }
    }
}

/// The error where the exit of a command is not reported.
pub(crate) fn exit_code_lost() -> RuntimeError {
    RuntimeError::failed("the shim of the pod exited before the command")
}

impl Drop for PendingExec {
    fn drop(&mut self) {
        if self.end.is_none() {
            return;
        }
        self.container.sandbox.waiters.forget_exec(&self.exec_id);
        // There is no async runtime only while the process exits.
        if let (Some(kill), Ok(runtime)) = (self.kill(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(kill);
        }
    }
}

/// Reopens the log of a running container.
pub(crate) async fn reopen_log(engine: Arc<Engine>, id: String) -> Result<()> {
    let found = engine.container(ContainerCall::ReopenLog, &id)?;
    let container = found.ok_or_else(|| RuntimeError::container_not_found(&id))?;
    container.decision(ContainerCall::ReopenLog)?;
    let call = Call::ReopenLog {
        id: container.id.clone(),
    };
    container.sandbox.link()?.call(call).await.map(|_| ())
}
