//! What a node answers to requests for files and for probes of the network.

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};

use crate::{FilesAnswer, FilesRefusal, FilesRequest, NetRefusal, NetRequest, NetStream};

/// Sends a word of two pieces; of what comes it counts the bytes. Some paths are refused.
pub(super) async fn files(request: FilesRequest) -> Result<FilesAnswer, FilesRefusal> {
    assert_eq!((&*request.pod.name, &*request.container), ("web", "a"));
    match request.path.as_str() {
        "/none" => return Err(FilesRefusal::NotFound("\"/none\": not there".to_owned())),
        "/bad" => return Err(FilesRefusal::Invalid("no tar".to_owned())),
        "/dir" => return Err(FilesRefusal::Conflict("it is a directory".to_owned())),
        "/busy" => return Err(FilesRefusal::Busy),
        "/ended" => return Err(FilesRefusal::NotRunning),
        "/full" => return Err(FilesRefusal::Internal("no space".to_owned())),
        _ => {}
    }
    let Some(mut incoming) = request.incoming else {
        let pieces = ["one ", "two"].map(|piece| Ok(Bytes::from_static(piece.as_bytes())));
        return Ok(FilesAnswer::Sent(Box::pin(stream::iter(pieces))));
    };
    let mut bytes = 0;
    while let Some(piece) = incoming.next().await {
        bytes += piece.expect("it is complete").len() as u64;
    }
    Ok(FilesAnswer::Received {
        entries: 1,
        bytes,
        skipped: vec!["fifo".to_owned()],
    })
}

/// Reports the probe in two lines, the second one when the client ends its request, if that has a
/// body. Some probes are refused.
pub(super) async fn net(request: NetRequest) -> Result<NetStream, NetRefusal> {
    if &*request.pod.name != "web" {
        return Err(NetRefusal::NoPod);
    }
    match request.probe["probe"].as_str() {
        Some("bad") => return Err(NetRefusal::Invalid("no probe".to_owned())),
        Some("early") => return Err(NetRefusal::NotReady),
        Some("busy") => return Err(NetRefusal::Busy),
        Some("broken") => return Err(NetRefusal::Internal("no socket".to_owned())),
        _ => {}
    }
    let first = format!("{}\n", request.probe);
    let lines = stream::unfold((Some(first), request.stop), |(first, stop)| async {
        match (first, stop) {
            (Some(line), stop) => Some((Ok(Bytes::from(line)), (None, stop))),
            (None, Some(stop)) => {
                stop.await;
                Some((Ok(Bytes::from_static(b"stopped\n")), (None, None)))
            }
            (None, None) => None,
        }
    });
    Ok(Box::pin(lines))
}
