//! Files of containers: located through the init process that the runtime reports, copied by
//! threads.

use std::{io, sync::Arc, thread};

use futures_util::{StreamExt as _, stream};
use rubelet_base::ErrorChain;
use rubelet_cri::{CriError, v1};
use rubelet_files::{Attributes, ContainerRoot, FilesError, StreamReader, StreamWriter};
use rubelet_node_state::pod_board::PodBoard;
use rubelet_server::{FileStream, FilesAnswer, FilesRefusal, FilesRequest, SessionError};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::{
    pod_shares::{PodShare, PodShares},
    sessions::{SessionParts, of_container, running},
};

/// Concurrent copies. Each has a thread, and a file system that a container mounted may block it
/// forever.
pub(super) const TRANSFERS: usize = 8;
/// Of these, for the same pod.
pub(super) const TRANSFERS_OF_POD: usize = 4;
/// Chunks of a stream in flight.
const PIECES: usize = 4;

/// Reads or writes files of a container that runs.
pub(super) async fn files(
    pods: &PodBoard,
    parts: &SessionParts,
    transfers: &Arc<PodShares>,
    request: FilesRequest,
) -> Result<FilesAnswer, FilesRefusal> {
    let entry = of_container(pods, &request.pod, None).map_err(|error| not_there(&error))?;
    let id = running(&entry, &request.container).map_err(|error| not_there(&error))?;
    let pid = init_process(parts, &id).await?;
    let share = transfers.take(&entry.pod.uid).ok_or(FilesRefusal::Busy)?;
    let place = ContainerPath {
        pid,
        id,
        path: request.path.into_bytes(),
        share,
    };
    match request.incoming {
        None => send(place).await,
        Some(incoming) => receive(place, incoming).await,
    }
}

/// The source or target of a copy.
struct ContainerPath {
    pid: u32,
    id: String,
    path: Vec<u8>,
    share: PodShare,
}

/// The init process, which runtimes report in the verbose status.
async fn init_process(parts: &SessionParts, id: &str) -> Result<u32, FilesRefusal> {
    let request = v1::ContainerStatusRequest {
        container_id: id.to_owned(),
        verbose: true,
    };
    let status = parts.runtime.container_status(request).await;
    let status = status.map_err(|error: CriError| match error.is_not_found() {
        true => FilesRefusal::NotRunning,
        false => FilesRefusal::Internal(error.to_string()),
    })?;
    let info = status.info.get("info").map(String::as_str);
    let info: Value = serde_json::from_str(info.unwrap_or_default()).unwrap_or_default();
    let pid = info["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
    pid.filter(|pid| *pid > 0).ok_or(FilesRefusal::NotRunning)
}

async fn send(place: ContainerPath) -> Result<FilesAnswer, FilesRefusal> {
    let (found, answer) = oneshot::channel();
    let (sender, pieces) = mpsc::channel(PIECES);
    in_thread(move || {
        let _share = place.share;
        let root = ContainerRoot::open(place.pid, &place.id);
        match root.and_then(|root| root.source(&place.path)) {
            Ok(source) => {
                let _ = found.send(Ok(()));
                // The stream reports the error.
                let _ = source.send(StreamWriter::new(sender));
            }
            Err(error) => {
                let _ = found.send(Err(refusal(&error)));
            }
        }
    })?;
    answer.await.map_err(|_| stopped())??;
    let stream = stream::unfold(pieces, |mut pieces| async {
        let piece = pieces.recv().await?;
        Some((Ok(piece), pieces))
    });
    Ok(FilesAnswer::Sent(Box::pin(stream)))
}

async fn receive(
    place: ContainerPath,
    mut incoming: FileStream,
) -> Result<FilesAnswer, FilesRefusal> {
    let (done, answer) = oneshot::channel();
    let (sender, pieces) = mpsc::channel(PIECES);
    in_thread(move || {
        let _share = place.share;
        let root = ContainerRoot::open(place.pid, &place.id);
        let received = root.and_then(|root| {
            let destination = root.destination(&place.path)?;
            destination.receive(StreamReader::new(pieces), Attributes::Full)
        });
        let _ = done.send(received);
    })?;
    while let Some(piece) = incoming.next().await {
        // The thread has failed and reports why.
        if sender.send(piece).await.is_err() {
            break;
        }
    }
    drop(sender);
    let received = answer.await.map_err(|_| stopped())?;
    let received = received.map_err(|error| refusal(&error))?;
    Ok(FilesAnswer::Received {
        entries: received.entries,
        bytes: received.bytes,
        skipped: received.skipped,
    })
}

fn in_thread(work: impl FnOnce() + Send + 'static) -> Result<(), FilesRefusal> {
    let spawned = thread::Builder::new().name("files".to_owned()).spawn(work);
    let failed =
        |error: io::Error| FilesRefusal::Internal(format!("cannot start a thread: {error}"));
    spawned.map(drop).map_err(failed)
}

fn stopped() -> FilesRefusal {
    FilesRefusal::Internal("the copy was given up".to_owned())
}

fn not_there(error: &SessionError) -> FilesRefusal {
    match error {
        SessionError::NoPod => FilesRefusal::NoPod,
        _ => FilesRefusal::NotRunning,
    }
}

fn refusal(error: &FilesError) -> FilesRefusal {
    let text = ErrorChain(error).to_string();
    match error {
        FilesError::NotRunning => FilesRefusal::NotRunning,
        FilesError::NotFound(_) => FilesRefusal::NotFound(text),
        FilesError::Conflict { .. } => FilesRefusal::Conflict(text),
        FilesError::Refused { .. } | FilesError::Stream(_) | FilesError::Sender(_) => {
            FilesRefusal::Invalid(text)
        }
        FilesError::Io { .. } => FilesRefusal::Internal(text),
    }
}
