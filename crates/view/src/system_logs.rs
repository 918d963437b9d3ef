//! Files of `/var/log`, for the kubelet API.

use std::{fs::File, path::Path};

use bytes::Bytes;
use futures_util::stream;
use rubelet_base::ErrorChain;
use rubelet_logs::system::{self, SystemLogEntry, SystemLogError};
use rubelet_server::{LogError, LogStream, SystemLog};
use tokio::{
    io::{AsyncReadExt as _, Take},
    task::spawn_blocking,
};

/// Where the system has its logs.
const ROOT: &str = "/var/log";
/// Bytes of one read.
const PIECE: usize = 64 * 1024;
/// A file with a zero byte in its first bytes is no text.
const LOOKED_AT: usize = 512;

/// Opens what is at a path, names below `/var/log`.
pub(super) async fn open(path: Vec<String>) -> Result<SystemLog, LogError> {
    let opened = spawn_blocking(move || system::open(Path::new(ROOT), &path)).await;
    // Only when the agent stops.
    let opened = opened.map_err(|ended| LogError::Internal(ended.to_string()))?;
    match opened {
        Ok(SystemLogEntry::Directory(names)) => Ok(SystemLog::Directory(names)),
        Ok(SystemLogEntry::File(file, length)) => content(file, length).await,
        Err(error @ SystemLogError::NotFound) => Err(LogError::NotFound(error.to_string())),
        Err(error @ SystemLogError::Forbidden) => Err(LogError::BadRequest(error.to_string())),
        Err(error) => Err(LogError::Internal(ErrorChain(&error).to_string())),
    }
}

/// The file as it is now: what is appended later is left out.
async fn content(file: File, length: u64) -> Result<SystemLog, LogError> {
    let mut file = tokio::fs::File::from_std(file).take(length);
    let read = next(&mut file).await;
    let first = read.map_err(|error| LogError::Internal(error.to_string()))?;
    let is_text = !first[..first.len().min(LOOKED_AT)].contains(&0);
    let rest = stream::unfold(Some((first, file)), |state| async move {
        let (piece, mut file) = state?;
        if piece.is_empty() {
            return None;
        }
        match next(&mut file).await {
            Ok(following) => Some((Ok(piece), Some((following, file)))),
            Err(error) => Some((Err(error), None)),
        }
    });
    Ok(SystemLog::File {
        is_text,
        content: Box::pin(rest) as LogStream,
    })
}

/// The next bytes; none at the end.
async fn next(file: &mut Take<tokio::fs::File>) -> std::io::Result<Bytes> {
    let mut piece = Vec::with_capacity(PIECE);
    file.read_buf(&mut piece).await?;
    Ok(piece.into())
}
