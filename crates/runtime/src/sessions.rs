//! Exec, attach and port-forward: the runtime's ends of sessions.

mod attach;
mod exec;
mod port_forward;
pub(crate) mod urls;

use std::{io, os::fd::OwnedFd, sync::Arc};

use async_trait::async_trait;
use rubelet_cri::{CriResult, v1};
use rubelet_runtime_plan::session::SessionRefusal;
use rubelet_streaming::{FdSink, FdSource, PortDialer, RemoteProcess, Sessions, Sink, Source};
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};
use tokio::sync::watch;

use crate::{
    EmbeddedRuntime,
    error::{Result, RuntimeError},
};

#[async_trait]
impl Sessions for EmbeddedRuntime {
    async fn exec(&self, request: v1::ExecRequest) -> CriResult<RemoteProcess> {
        exec::exec(&self.engine, request)
            .await
            .map_err(RuntimeError::of::<v1::ExecRequest>)
    }

    async fn attach(&self, request: v1::AttachRequest) -> CriResult<RemoteProcess> {
        attach::attach(&self.engine, &request)
            .await
            .map_err(RuntimeError::of::<v1::AttachRequest>)
    }

    async fn port_forward(&self, sandbox_id: &str) -> CriResult<Arc<dyn PortDialer>> {
        port_forward::dialer(&self.engine, sandbox_id)
            .map_err(RuntimeError::of::<v1::PortForwardRequest>)
    }
}

impl From<SessionRefusal> for RuntimeError {
    fn from(refusal: SessionRefusal) -> Self {
        Self::invalid(refusal.to_string())
    }
}

/// Capacity of the pipes of a command: with the kernel's 64 KiB, a command with much output and this
/// process switch at each read.
const EXEC_PIPE: usize = 256 << 10;

/// A pipe, as its reading and its writing end. Only the end that this process keeps becomes
/// non-blocking: each end has its own flags.
fn pipe() -> Result<(OwnedFd, OwnedFd)> {
    let pipe = pipe_with(PipeFlags::CLOEXEC).map_err(|error| stream_failed(&error.into()))?;
    // A smaller pipe is only slower.
    let _ = fcntl_setpipe_size(&pipe.1, EXEC_PIPE);
    Ok(pipe)
}

fn sink(fd: OwnedFd) -> Result<Box<dyn Sink>> {
    let sink = FdSink::new(fd).map_err(|error| stream_failed(&error))?;
    Ok(Box::new(sink))
}

fn source(fd: OwnedFd, ended: Option<watch::Receiver<bool>>) -> Result<Box<dyn Source>> {
    let source = FdSource::new(fd, ended).map_err(|error| stream_failed(&error))?;
    Ok(Box::new(source))
}

fn stream_failed(error: &io::Error) -> RuntimeError {
    RuntimeError::because("cannot create the streams of a session", error)
}
