//! Requests for files, and their answers.

use std::{io, pin::Pin};

use bytes::Bytes;
use futures_core::Stream;

use crate::PodRef;

/// A tar stream. An error truncates it.
pub type FileStream = Pin<Box<dyn Stream<Item = Result<Bytes, io::Error>> + Send>>;

/// A request to download files from a container, or to upload files to it.
pub struct FilesRequest {
    /// The pod.
    pub pod: PodRef,
    /// Name of the container.
    pub container: String,
    /// The path in the container.
    pub path: String,
    /// The files to write there; `None` requests those that are there.
    pub incoming: Option<FileStream>,
}

/// The result of such a request.
pub enum FilesAnswer {
    /// The requested files.
    Sent(FileStream),
    /// All files were written.
    Received {
        /// Number of files, directories and links.
        entries: u64,
        /// Bytes of files.
        bytes: u64,
        /// Skipped entries, which are neither files, directories nor links.
        skipped: Vec<String>,
    },
}

/// Why files were not copied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilesRefusal {
    /// There is no pod of that name.
    #[error("pod does not exist")]
    NoPod,
    /// The container does not run or does not exist.
    #[error("the container does not run")]
    NotRunning,
    /// There is no such file.
    #[error("{0}")]
    NotFound(String),
    /// The stream is broken, or contains unsupported entries.
    #[error("{0}")]
    Invalid(String),
    /// An existing file is in the way.
    #[error("{0}")]
    Conflict(String),
    /// Too many copies are in progress.
    #[error("too many copies are under way; try again")]
    Busy,
    /// The node failed.
    #[error("{0}")]
    Internal(String),
}
