//! A process with which a client has a session.

use std::{future::Future, pin::Pin, sync::Arc};

use bytes::Bytes;
use rubelet_cri::CriResult;
use serde::{Deserialize, Serialize};

use crate::{Sink, Source};

/// The standard streams of a session. With a terminal, standard error is part of standard output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StdStreams {
    /// Standard input.
    pub stdin: bool,
    /// Standard output.
    pub stdout: bool,
    /// Standard error.
    pub stderr: bool,
    /// A terminal.
    pub tty: bool,
}

/// The size of a terminal, in characters, as clients send it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct TerminalSize {
    /// Columns.
    pub width: u16,
    /// Lines.
    pub height: u16,
}

/// Sets the size of a terminal. Must not block.
pub type Resize = Arc<dyn Fn(TerminalSize) + Send + Sync>;

/// The end of a session with a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionExit {
    /// The command exited with this code; 0 is also the end of an attachment.
    Code(i32),
    /// The `metav1.Status` of another streaming server, as JSON.
    Status(Bytes),
}

/// Resolves when the process has exited, or with the reason why the session can't continue.
pub type ExitFuture = Pin<Box<dyn Future<Output = CriResult<SessionExit>> + Send>>;

/// The runtime's ends of a session. Streams that were not requested are `None`.
///
/// The outputs end soon after the process exits, even if its children still hold them open.
/// Dropping all of it ends the session: input and terminal are closed, and the process is not
/// killed.
pub struct RemoteProcess {
    /// Standard input; closing it ends the input.
    pub stdin: Option<Box<dyn Sink>>,
    /// Standard output, or the whole output of a terminal.
    pub stdout: Option<Box<dyn Source>>,
    /// Standard error.
    pub stderr: Option<Box<dyn Source>>,
    /// Sets the size of the terminal, if there is one.
    pub resize: Option<Resize>,
    /// The exit of the process.
    pub exit: ExitFuture,
}
