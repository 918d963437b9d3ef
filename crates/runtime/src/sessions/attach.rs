//! The streams of a container's first process.

use std::{os::fd::OwnedFd, sync::Arc};

use rubelet_cri::{CriErrorKind, v1};
use rubelet_runtime_plan::{
    session::{self, SessionStreams},
    state::ContainerCall,
};
use rubelet_shim::protocol::{Call, StreamFds};
use rubelet_streaming::{ExitFuture, RemoteProcess, Resize, SessionExit, Source};
use rustix::pipe::fcntl_setpipe_size;
use tokio::sync::oneshot;

use super::{pipe, sink, source};
use crate::{
    container::Container,
    engine::Engine,
    error::{Result, RuntimeError},
    identifier,
    shim_client::ShimClient,
};

/// Bytes of output that may wait for a client before the shim has to hold some itself.
const PIPE: usize = 1 << 20;

const OVERRUN: &str = "the client read too slowly, and output of the container was lost; the session is \
     closed, and the log has all of it";

const OLD_SHIM: &str = "the pod was started by an earlier release of Rubelet, whose shim has no attach; use \
     exec, or recreate the pod";

/// Checks a request and its container, which must be running and have the requested streams.
pub(super) fn admit(engine: &Engine, request: &v1::AttachRequest) -> Result<Arc<Container>> {
    let id = &request.container_id;
    let streams = SessionStreams {
        stdin: request.stdin,
        stdout: request.stdout,
        stderr: request.stderr,
        tty: request.tty,
    };
    session::check(id, streams)?;
    let found = engine.container(ContainerCall::Attach, id)?;
    let container = found.ok_or_else(|| RuntimeError::container_not_found(id))?;
    container.decision(ContainerCall::Attach)?;
    let record = container.record();
    let lacks = |what: &str| RuntimeError::state(format!("container {id:?} has no {what}"));
    if request.stdin && !record.stdin {
        return Err(lacks("standard input (stdin: false)"));
    }
    if request.tty && !record.tty {
        return Err(lacks("terminal (tty: false)"));
    }
    Ok(container)
}

/// Attaches to a running container.
pub(super) async fn attach(engine: &Engine, request: &v1::AttachRequest) -> Result<RemoteProcess> {
    let container = admit(engine, request)?;
    let link = container.sandbox.link()?;
    // Before the input, so that no output that answers it is missed.
    let (attachment, [stdout, stderr]) = outputs(&link, &container, request).await?;
    let stdin = match request.stdin {
        true => {
            let (read, write) = pipe()?;
            let call = Call::FeedStdin {
                id: container.id.clone(),
            };
            link.call_with(call, vec![read]).await?;
            Some(sink(write)?)
        }
        false => None,
    };
    Ok(RemoteProcess {
        stdin,
        stdout,
        stderr,
        resize: container.record().tty.then(|| resize(&container)),
        exit: exit(attachment, &container),
    })
}

type Outputs = [Option<Box<dyn Source>>; 2];

/// Attaches to the requested outputs. The shim closes them when the container's have ended, once
/// all is written, so these sources need no other end.
async fn outputs(
    link: &ShimClient,
    container: &Arc<Container>,
    request: &v1::AttachRequest,
) -> Result<(Attachment, Outputs)> {
    let attachment = Attachment::new(container)?;
    let mut theirs = Vec::new();
    let mut output = |asked: bool| -> Result<Option<Box<dyn Source>>> {
        if !asked {
            return Ok(None);
        }
        let (read, write) = output_pipe()?;
        theirs.push(write);
        source(read, None).map(Some)
    };
    let outputs = [output(request.stdout)?, output(request.stderr)?];
    if !theirs.is_empty() {
        let call = Call::Attach {
            id: container.id.clone(),
            attach_id: attachment.id.clone(),
            streams: StreamFds {
                stdin: false,
                stdout: request.stdout,
                stderr: request.stderr,
            },
        };
        let attached = link.call_with(call, theirs).await;
        attached.map_err(|error| match error.kind {
            CriErrorKind::Unimplemented => RuntimeError::new(error.kind, OLD_SHIM),
            _ => error,
        })?;
    }
    Ok((attachment, outputs))
}

fn output_pipe() -> Result<(OwnedFd, OwnedFd)> {
    let (read, write) = pipe()?;
    // The kernel may refuse more than the default size, which suffices for most clients.
    let _ = fcntl_setpipe_size(&write, PIPE);
    Ok((read, write))
}

fn resize(container: &Arc<Container>) -> Resize {
    let container = Arc::clone(container);
    Arc::new(move |size| {
        if let Some(link) = container.sandbox.live_link() {
            link.post(Call::Resize {
                id: container.id.clone(),
                width: size.width,
                height: size.height,
            });
        }
    })
}

fn exit(mut attachment: Attachment, container: &Container) -> ExitFuture {
    let mut exited = container.exited();
    Box::pin(async move {
        // Both only watch; nothing is lost with the one that is dropped.
        tokio::select! {
            biased;
            Ok(()) = &mut attachment.overrun => {
                Err(RuntimeError::failed(OVERRUN).of::<v1::AttachRequest>())
            }
            // An error means that the container was removed, which is handled the same way.
            _ = exited.wait_for(|exited| *exited) => Ok(SessionExit::Code(0)),
        }
    })
}

/// An attachment; waits for its early close until this is dropped.
struct Attachment {
    id: String,
    overrun: oneshot::Receiver<()>,
    container: Arc<Container>,
}

impl Attachment {
    fn new(container: &Arc<Container>) -> Result<Self> {
        let id = identifier::random()
            .map_err(|error| RuntimeError::because("cannot generate an identifier", &error))?;
        Ok(Self {
            overrun: container.sandbox.waiters.await_overrun(&id),
            container: Arc::clone(container),
            id,
        })
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        self.container.sandbox.waiters.forget_attachment(&self.id);
    }
}
