//! Full lists: in pieces if the runtime supports that, else in one message.

use std::{
    future::Future,
    sync::atomic::{AtomicU64, Ordering},
};

use rubelet_cri::{Call, CriResult, v1};
use tonic::{Request, Response, Status, Streaming};

use super::CriClient;

/// The connection whose runtime has no streaming RPC for a list. The next connection may lead to
/// another version of the runtime, and is tested again.
pub(super) struct Unary(AtomicU64);

impl Default for Unary {
    /// None: connections are counted from zero and never reach this.
    fn default() -> Self {
        Self(AtomicU64::new(u64::MAX))
    }
}

/// A list that may be received in pieces.
trait Pieces: Call {
    /// The RPC that sends the pieces.
    const STREAM: &'static str;
    /// The request of that RPC.
    type Request: Default;
    /// One piece.
    type Piece: Send;
    /// Adds a piece to the list.
    fn append(list: &mut Self::Response, piece: Self::Piece);
}

impl Pieces for v1::ListPodSandboxRequest {
    const STREAM: &'static str = "StreamPodSandboxes";
    type Request = v1::StreamPodSandboxesRequest;
    type Piece = v1::StreamPodSandboxesResponse;

    fn append(list: &mut Self::Response, mut piece: Self::Piece) {
        list.items.append(&mut piece.pod_sandboxes);
    }
}

impl Pieces for v1::ListContainersRequest {
    const STREAM: &'static str = "StreamContainers";
    type Request = v1::StreamContainersRequest;
    type Piece = v1::StreamContainersResponse;

    fn append(list: &mut Self::Response, mut piece: Self::Piece) {
        list.containers.append(&mut piece.containers);
    }
}

impl CriClient {
    pub(super) async fn sandboxes(
        &self,
        request: v1::ListPodSandboxRequest,
    ) -> CriResult<v1::ListPodSandboxResponse> {
        if request.filter.is_none() {
            let mut client = self.runtime.clone();
            let stream = |request| async move { client.stream_pod_sandboxes(request).await };
            if let Some(all) = self.pieces(&request, &self.unary_sandboxes, stream).await? {
                return Ok(all);
            }
        }
        let mut client = self.runtime.clone();
        let send = |request| async move { client.list_pod_sandbox(request).await };
        self.unary(request, send).await
    }

    pub(super) async fn containers(
        &self,
        request: v1::ListContainersRequest,
    ) -> CriResult<v1::ListContainersResponse> {
        if request.filter.is_none() {
            let mut client = self.runtime.clone();
            let stream = |request| async move { client.stream_containers(request).await };
            if let Some(all) = self
                .pieces(&request, &self.unary_containers, stream)
                .await?
            {
                return Ok(all);
            }
        }
        let mut client = self.runtime.clone();
        let send = |request| async move { client.list_containers(request).await };
        self.unary(request, send).await
    }

    /// The whole list, or `None` if the runtime has no streaming RPC for it. A stream that ends
    /// early is an error: half a list would mean that the other half does not exist.
    async fn pieces<C, F>(
        &self,
        list: &C,
        unary: &Unary,
        stream: impl FnOnce(Request<C::Request>) -> F,
    ) -> CriResult<Option<C::Response>>
    where
        C: Pieces,
        C::Response: Default,
        F: Future<Output = Result<Response<Streaming<C::Piece>>, Status>>,
    {
        let deadline = list.deadline(&self.timeouts);
        // The following call fails for the same reason, and is observed.
        let Ok(number) = self.channel.connection().await else {
            return Ok(None);
        };
        if unary.0.load(Ordering::Relaxed) == number {
            return Ok(None);
        }
        let collect = |request| async move {
            let mut pieces = stream(request).await?.into_inner();
            let mut list = C::Response::default();
            while let Some(piece) = pieces.message().await? {
                C::append(&mut list, piece);
            }
            Ok(list)
        };
        let all = self.limited(C::STREAM, deadline, C::Request::default(), collect);
        match all.await {
            Ok(list) => Ok(Some(list)),
            Err(error) if error.is_unimplemented() => {
                // If there was another connection in between, it is unknown which one returned the
                // error.
                if self.channel.connection().await.ok() == Some(number) {
                    unary.0.store(number, Ordering::Relaxed);
                }
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}
