//! The runtime's events, on a dedicated connection.

use std::path::PathBuf;

use futures_util::stream;
use http::{Uri, uri::PathAndQuery};
use rubelet_cri::{Call, ContainerEvent, CriError, EventStream, v1};
use tonic::{Request, Status, Streaming, client::Grpc};
use tonic_prost::ProstCodec;

use super::ORIGIN;
use crate::{
    MAX_MESSAGE_SIZE,
    channel::{Channel, Windows},
    status::error_from,
};

const METHOD: &str = "/runtime.v1.RuntimeService/GetContainerEvents";

/// A runtime that cannot send an event may stop starting containers (containerd 2.x does). So the
/// window has space for a burst while the reader is busy.
const WINDOWS: Windows = Windows {
    stream: 1024 * 1024,
    connection: 2 * 1024 * 1024,
};

/// The reliable part of a `ContainerEventResponse`. The statuses, most of its size, are skipped
/// without being decoded.
#[derive(Clone, PartialEq, prost::Message)]
struct Event {
    #[prost(string, tag = "1")]
    container_id: String,
    #[prost(enumeration = "v1::ContainerEventType", tag = "2")]
    container_event_type: i32,
    #[prost(int64, tag = "3")]
    created_at: i64,
    #[prost(message, optional, tag = "4")]
    pod_sandbox_status: Option<Sandbox>,
}

/// The same of its `PodSandboxStatus`.
#[derive(Clone, PartialEq, prost::Message)]
struct Sandbox {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(message, optional, tag = "2")]
    metadata: Option<Metadata>,
}

/// The same of its `PodSandboxMetadata`.
#[derive(Clone, PartialEq, prost::Message)]
struct Metadata {
    #[prost(string, tag = "2")]
    uid: String,
}

impl From<Event> for ContainerEvent {
    fn from(event: Event) -> Self {
        let kind = event.container_event_type();
        let (sandbox, metadata) = match event.pod_sandbox_status {
            Some(sandbox) => (Some(sandbox.id), sandbox.metadata),
            None => (None, None),
        };
        Self {
            container: event.container_id,
            kind,
            created_at: event.created_at,
            sandbox,
            pod_uid: metadata.map(|metadata| metadata.uid),
            sequence: None,
        }
    }
}

/// The state of a stream.
enum Stage {
    Closed(Channel),
    /// The channel keeps the connection open as long as the stream exists.
    Open(Channel, Box<Streaming<Event>>),
}

/// The events of the runtime at `socket`, from the first poll until this is dropped.
///
/// Runtimes in Go send the response headers with the first event, on an idle node perhaps hours
/// later: they are awaited inside the stream, without a deadline.
pub(super) fn open(socket: PathBuf) -> EventStream {
    let start = Stage::Closed(Channel::new(socket, WINDOWS));
    Box::pin(stream::try_unfold(start, |stage| async move {
        next(stage).await.map_err(|status| failed(&status))
    }))
}

async fn next(stage: Stage) -> Result<Option<(ContainerEvent, Stage)>, Status> {
    let (channel, mut events) = match stage {
        Stage::Open(channel, events) => (channel, events),
        Stage::Closed(channel) => {
            let events = request(channel.clone()).await?;
            (channel, Box::new(events))
        }
    };
    let event = events.message().await?;
    Ok(event.map(|event| (event.into(), Stage::Open(channel, events))))
}

async fn request(channel: Channel) -> Result<Streaming<Event>, Status> {
    let mut client = Grpc::with_origin(channel, Uri::from_static(ORIGIN))
        .max_decoding_message_size(MAX_MESSAGE_SIZE);
    client.ready().await?;
    let codec = ProstCodec::<v1::GetEventsRequest, Event>::default();
    let path = PathAndQuery::from_static(METHOD);
    let request = Request::new(v1::GetEventsRequest {});
    let answer = client.server_streaming(request, path, codec).await?;
    Ok(answer.into_inner())
}

fn failed(status: &Status) -> CriError {
    error_from(v1::GetEventsRequest::NAME, status, None)
}
