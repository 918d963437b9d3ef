//! One client's connection, and the one to the runtime that is made for it.

use std::{io, sync::Arc, time::Duration};

use hyper::{client::conn::http2 as client, server::conn::http2 as server, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::UnixStream;

use super::{
    Shared,
    body::Body,
    call,
    gate::{Gate, Gated},
    link::Link,
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

/// Serves a client until either side closes its connection or all are cut.
pub(super) async fn run(stream: UnixStream, shared: Arc<Shared>) {
    let mut cuts = shared.cuts.subscribe();
    // Dropping the connection in the middle of anything is what a cut is.
    tokio::select! {
        () = serve(stream, shared) => {}
        _ = cuts.changed() => tracing::debug!("Cut a connection"),
    }
}

async fn serve(stream: UnixStream, shared: Arc<Shared>) {
    let connected = tokio::time::timeout(CONNECT, connect(&shared)).await;
    let (runtime, to_runtime) = match connected {
        Ok(Ok(connected)) => connected,
        // The client finds its connection closed, as with a runtime that ends.
        Ok(Err(error)) => {
            let back = shared.back.display();
            tracing::warn!(%error, "Cannot connect to the runtime at {back}");
            return;
        }
        Err(_) => {
            let back = shared.back.display();
            tracing::warn!("The runtime at {back} does not accept a connection");
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
                tracing::debug!(%error, "Connection of a client failed");
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
