//! `ExecSync`, and `ReopenContainerLog`.

use std::{sync::Arc, time::Duration};

use rubelet_cri::{CriErrorKind, v1};
use rubelet_oci::Spec;
use rubelet_runtime_plan::{exec_spec, state::ContainerCall};
use rubelet_shim::protocol::{Call, SignalTarget, StartExec, StreamFds};
use tokio::sync::oneshot;

use super::Container;
use crate::{
    engine::Engine,
    fault::{Fault, Outcome},
    identifier,
    output::{Output, drain},
};

const SIGKILL: i32 = 9;

/// Runs a command in a container and waits for its end.
pub(crate) async fn exec_sync(
    engine: Arc<Engine>,
    request: v1::ExecSyncRequest,
) -> Outcome<v1::ExecSyncResponse> {
    if request.cmd.is_empty() {
        return Err(Fault::invalid("the request has no command"));
    }
    let id = &request.container_id;
    let found = engine.container(ContainerCall::Exec, id)?;
    let container =
        found.ok_or_else(|| Fault::not_found(format!("there is no container {id:?}")))?;
    container.verdict(ContainerCall::Exec)?;
    let spec = spec(&engine, &container).await?;
    let process = exec_spec::build(&spec, &request.cmd, false);
    let exec_id = identifier::random().map_err(|error| Fault::because("no identifier", &error))?;

    let pipe = |error: std::io::Error| Fault::because("cannot make a pipe", &error);
    let (mut stdout, stdout_end) = Output::new().map_err(pipe)?;
    let (mut stderr, stderr_end) = Output::new().map_err(pipe)?;
    let waiting = Waiting::new(&container, exec_id);
    let start = StartExec {
        id: container.id.clone(),
        exec_id: waiting.exec_id.clone(),
        process,
        streams: StreamFds {
            stdin: false,
            stdout: true,
            stderr: true,
        },
    };
    let link = container.sandbox.link()?;
    let fds = vec![stdout_end, stderr_end];
    link.call_with(Call::Exec(Box::new(start)), fds)
        .await
        .map_err(|fault| Fault::new(fault.kind, format!("cannot execute the command: {fault}")))?;

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

/// What a container was made from. Read anew for each command: an idle container holds no memory.
async fn spec(engine: &Engine, container: &Container) -> Outcome<Spec> {
    let dir = engine
        .layout
        .sandbox(&container.sandbox.id)
        .bundle(&container.id);
    engine
        .blocking(move || {
            let file = dir.join("config.json");
            let text = std::fs::read(&file).map_err(|error| {
                Fault::because(format!("cannot read {}", file.display()), &error)
            })?;
            serde_json::from_slice(&text)
                .map_err(|error| Fault::because(format!("cannot read {}", file.display()), &error))
        })
        .await
}

/// A command that was started, or is about to be. Whoever waited for it going away kills it.
struct Waiting {
    container: Arc<Container>,
    exec_id: String,
    end: Option<oneshot::Receiver<i32>>,
}

impl Waiting {
    fn new(container: &Arc<Container>, exec_id: String) -> Self {
        Self {
            end: Some(container.sandbox.await_exec(&exec_id)),
            container: Arc::clone(container),
            exec_id,
        }
    }

    async fn wait(
        mut self,
        stdout: &mut Output,
        stderr: &mut Output,
        timeout: Option<Duration>,
    ) -> Outcome<i32> {
        let Some(end) = self.end.as_mut() else {
            return Err(Fault::failed("the command was waited for already"));
        };
        let ended = async {
            let output = async {
                tokio::join!(stdout.read(), stderr.read());
                std::future::pending::<()>().await;
            };
            tokio::select! {
                ended = end => ended,
                () = output => unreachable!("it never ends"),
            }
        };
        let ended = match timeout {
            Some(timeout) => tokio::time::timeout(timeout, ended).await,
            None => Ok(ended.await),
        };
        match ended {
            Ok(Ok(exit_code)) => {
                self.end = None;
                Ok(exit_code)
            }
            // Nobody can tell any more: the container or its supervisor has ended.
            Ok(Err(_)) => {
                self.end = None;
                Err(Fault::failed(format!(
                    "the supervisor of container {:?} ended before the command did",
                    self.container.id
                )))
            }
            // Kubelets look for the code and show the words.
            Err(_) => {
                let timeout = timeout.unwrap_or_default();
                Err(Fault::new(
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

impl Drop for Waiting {
    fn drop(&mut self) {
        if self.end.is_none() {
            return;
        }
        self.container.sandbox.forget_exec(&self.exec_id);
        let Some(link) = self.container.sandbox.live_link() else {
            return;
        };
        let call = Call::Signal {
            id: self.container.id.clone(),
            signal: SIGKILL,
            target: SignalTarget::Exec(self.exec_id.clone()),
        };
        // Not inside of a runtime only while the program ends.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Err(fault) = link.call(call).await {
                    tracing::debug!(%fault, "a command that nobody waits for was not killed");
                }
            });
        }
    }
}

/// Opens the log of a running container anew.
pub(crate) async fn reopen_log(engine: Arc<Engine>, id: String) -> Outcome<()> {
    let found = engine.container(ContainerCall::ReopenLog, &id)?;
    let container =
        found.ok_or_else(|| Fault::not_found(format!("there is no container {id:?}")))?;
    container.verdict(ContainerCall::ReopenLog)?;
    let call = Call::ReopenLog {
        id: container.id.clone(),
    };
    container.sandbox.link()?.call(call).await.map(|_| ())
}
