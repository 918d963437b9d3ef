//! One client's connection, and the one to the runtime that is made for it.

use std::{future::pending, io, sync::Arc, time::Duration};

use http::{Request, Response};
use hyper::{
    body::Incoming, client::conn::http2 as client, server::conn::http2 as server,
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::UnixStream;

use super::{
    Shared,
    body::{Body, BoxError},
    call,
    gate::{Gate, Gated},
};

/// How long connecting to the runtime may take.
const CONNECT: Duration = Duration::from_secs(10);
/// How long answers that are there may take to leave after the runtime has closed its connection.
const FLUSH: Duration = Duration::from_millis(50);
/// A runtime's error message travels in a header; containerd's can quote whole files.
const HEADER_LIST_SIZE: u32 = 1024 * 1024;
/// How many calls a connection may have at the same time: more than a client makes, as runtimes
/// set no limit.
const CALLS: u32 = 10_000;

/// What the calls of one connection share.
pub(super) struct Link {
    pub(super) shared: Arc<Shared>,
    pub(super) gate: Gate,
    runtime: client::SendRequest<Body>,
}

impl Link {
    /// Hands a request on. Fails only with a stream that the runtime has reset; the loss of the
    /// connection ends this one too, and the future with it.
    pub(super) async fn forward(
        &self,
        request: Request<Body>,
    ) -> Result<Response<Incoming>, BoxError> {
        match self.runtime.clone().send_request(request).await {
            Ok(answer) => Ok(answer),
            Err(error) if is_reset(&error) => Err(error.into()),
            Err(error) => {
                tracing::debug!(%error, "the connection to the runtime is lost");
                pending().await
            }
        }
    }
}

/// Whether the runtime has ended one stream, and not the connection.
pub(super) fn is_reset(error: &hyper::Error) -> bool {
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<h2::Error>() {
            return error.is_reset();
        }
        cause = error.source();
    }
    false
}

/// Serves a client until either side closes its connection or all are cut.
pub(super) async fn run(stream: UnixStream, shared: Arc<Shared>) {
    let mut cuts = shared.cuts.subscribe();
    // Dropping the connection in the middle of anything is what a cut is.
    tokio::select! {
        () = serve(stream, shared) => {}
        _ = cuts.changed() => tracing::debug!("cut a connection"),
    }
}

async fn serve(stream: UnixStream, shared: Arc<Shared>) {
    let connected = tokio::time::timeout(CONNECT, connect(&shared)).await;
    let (runtime, to_runtime) = match connected {
        Ok(Ok(connected)) => connected,
        // The client finds its connection closed, as with a runtime that ends.
        Ok(Err(error)) => {
            let back = shared.back.display();
            tracing::warn!(%error, "cannot connect to the runtime at {back}");
            return;
        }
        Err(_) => {
            let back = shared.back.display();
            tracing::warn!("the runtime at {back} does not take a connection");
            return;
        }
    };
    let gate = Gate::default();
    let link = Arc::new(Link {
        shared,
        gate: gate.clone(),
        runtime,
    });
    let service = service_fn(move |request| call::answer(link.clone(), request));
    let to_client = server::Builder::new(TokioExecutor::new())
        .auto_date_header(false)
        .max_concurrent_streams(CALLS)
        .max_header_list_size(HEADER_LIST_SIZE)
        .serve_connection(TokioIo::new(Gated::new(stream, gate)), service);
    tokio::pin!(to_client);
    tokio::select! {
        ended = &mut to_client => {
            if let Err(error) = ended {
                tracing::debug!(%error, "a client's connection broke");
            }
            return;
        }
        // What it says is of no use: the connection is gone.
        _ = to_runtime => {}
    }
    // Out of time means that something waits for the runtime that is gone.
    let _ = tokio::time::timeout(FLUSH, to_client).await;
}

type ToRuntime = client::Connection<TokioIo<UnixStream>, Body, TokioExecutor>;

async fn connect(shared: &Shared) -> io::Result<(client::SendRequest<Body>, ToRuntime)> {
    let stream = UnixStream::connect(&shared.back).await?;
    client::Builder::new(TokioExecutor::new())
        .max_header_list_size(HEADER_LIST_SIZE)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(io::Error::other)
}
