//! A command with streams or a terminal.

use std::{future::pending, os::fd::OwnedFd, sync::Arc};

use rubelet_cri::v1;
use rubelet_runtime_plan::{
    session::{self, SessionStreams},
    state::ContainerCall,
};
use rubelet_shim::protocol::StreamFds;
use rubelet_streaming::{ExitFuture, RemoteProcess, Resize, SessionExit, Source};
use rustix::termios::{Winsize, tcsetwinsize};

use super::{pipe, sink, source, stream_failed};
use crate::{
    container::exec::{ExecCommand, exit_code_lost, start},
    engine::{Engine, run_uncancellable},
    error::{Result, RuntimeError},
    sandbox::ExecEnd,
};

/// Checks a request and the state of its container.
pub(super) fn admit(engine: &Engine, request: &v1::ExecRequest) -> Result<()> {
    let id = &request.container_id;
    let streams = SessionStreams {
        stdin: request.stdin,
        stdout: request.stdout,
        stderr: request.stderr,
        tty: request.tty,
    };
    session::check(id, streams)?;
    let found = engine.container(ContainerCall::Exec, id)?;
    let container = found.ok_or_else(|| RuntimeError::container_not_found(id))?;
    container.decision(ContainerCall::Exec).map(drop)
}

/// Starts a command. As with other runtimes, a client that goes away does not kill it.
pub(super) async fn exec(engine: &Arc<Engine>, request: v1::ExecRequest) -> Result<RemoteProcess> {
    admit(engine, &request)?;
    match request.tty {
        true => on_terminal(engine, request).await,
        false => on_pipes(engine, request).await,
    }
}

async fn on_pipes(engine: &Arc<Engine>, request: v1::ExecRequest) -> Result<RemoteProcess> {
    let streams = StreamFds {
        stdin: request.stdin,
        stdout: request.stdout,
        stderr: request.stderr,
    };
    let mut theirs = Vec::new();
    let mut stdin = None;
    if request.stdin {
        let (read, write) = pipe()?;
        theirs.push(read);
        stdin = Some(sink(write)?);
    }
    let mut output = |asked: bool| -> Result<Option<OwnedFd>> {
        if !asked {
            return Ok(None);
        }
        let (read, write) = pipe()?;
        theirs.push(write);
        Ok(Some(read))
    };
    let (stdout, stderr) = (output(request.stdout)?, output(request.stderr)?);
    let (end, _) = start_detached(engine, request, streams, theirs).await?;
    let output = |fd: Option<OwnedFd>| fd.map(|fd| source(fd, Some(end.ended.clone()))).transpose();
    Ok(RemoteProcess {
        stdin,
        stdout: output(stdout)?,
        stderr: output(stderr)?,
        resize: None,
        exit: exit(end, None),
    })
}

async fn on_terminal(engine: &Arc<Engine>, request: v1::ExecRequest) -> Result<RemoteProcess> {
    let (has_stdin, has_stdout) = (request.stdin, request.stdout);
    let streams = StreamFds::default();
    let (end, terminal) = start_detached(engine, request, streams, Vec::new()).await?;
    let terminal = terminal
        .ok_or_else(|| RuntimeError::failed("the command was started without a terminal"))?;
    let copy = || terminal.try_clone().map_err(|error| stream_failed(&error));
    let stdin = match has_stdin {
        true => Some(sink(copy()?)?),
        false => None,
    };
    let output = source(copy()?, Some(end.ended.clone()))?;
    let (stdout, unread) = match has_stdout {
        true => (Some(output), None),
        false => (None, Some(output)),
    };
    let resize: Resize = Arc::new(move |size| {
        let size = Winsize {
            ws_row: size.height,
            ws_col: size.width,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        // The terminal has no size that it refuses.
        let _ = tcsetwinsize(&terminal, size);
    });
    Ok(RemoteProcess {
        stdin,
        stdout,
        stderr: None,
        resize: Some(resize),
        exit: exit(end, unread),
    })
}

/// Starts a command, even if the caller goes away meanwhile: otherwise the terminal would be lost,
/// or a failed start would go unnoticed.
async fn start_detached(
    engine: &Arc<Engine>,
    request: v1::ExecRequest,
    streams: StreamFds,
    fds: Vec<OwnedFd>,
) -> Result<(ExecEnd, Option<OwnedFd>)> {
    let engine = Arc::clone(engine);
    run_uncancellable(async move {
        let command = ExecCommand {
            container: &request.container_id,
            args: &request.cmd,
            tty: request.tty,
            streams,
            fds,
        };
        let (pending, terminal) = start(&engine, command).await?;
        let end = pending.detach().ok_or_else(exit_code_lost)?;
        Ok((end, terminal))
    })
    .await
}

/// Resolves with the exit code. `unread` is the output of a terminal that the client did not
/// request; it is read so that the command does not wait for a reader.
fn exit(end: ExecEnd, unread: Option<Box<dyn Source>>) -> ExitFuture {
    Box::pin(async move {
        let discarded = async {
            if let Some(mut output) = unread {
                while let Ok(Some(_)) = output.read().await {}
            }
            pending::<()>().await;
        };
        // Both futures end with this one.
        let code = tokio::select! {
            code = end.code => code,
            () = discarded => unreachable!("it never returns"),
        };
        match code {
            Ok(code) => Ok(SessionExit::Code(code)),
            Err(_) => Err(exit_code_lost().of::<v1::ExecRequest>()),
        }
    })
}
