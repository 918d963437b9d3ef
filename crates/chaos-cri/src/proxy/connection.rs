//! One client's connection, and its connection to the runtime.

use std::{io, sync::Arc, time::Duration};

use hyper::{client::conn::http2 as client, server::conn::http2 as server, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::UnixStream;

use super::{
    ProxyState,
    body::Body,
    call,
    freeze_state::{FreezableStream, FreezeState},
    runtime_connection::RuntimeConnection,
};

/// Timeout of connecting to the runtime.
const CONNECT: Duration = Duration::from_secs(10);
/// How long pending responses may take to be sent after the runtime has closed its connection.
const FLUSH: Duration = Duration::from_millis(50);
/// A runtime's error message is in a header; containerd's can quote whole files.
const HEADER_LIST_SIZE: u32 = 1024 * 1024;
/// Maximum number of concurrent calls of a connection: more than a client makes, because runtimes
/// set no limit.
const CALLS: u32 = 10_000;

/// Serves a client until either side closes its connection or all connections are cut.
pub(super) async fn run(stream: UnixStream, shared: Arc<ProxyState>) {
    let mut cuts = shared.cuts.subscribe();
    // A cut drops the connection at any point.
    tokio::select! {
        () = serve(stream, shared) => {}
        _ = cuts.changed() => tracing::debug!("Cut a connection"),
    }
}

async fn serve(stream: UnixStream, shared: Arc<ProxyState>) {
    let connected = tokio::time::timeout(CONNECT, connect(&shared)).await;
    let (runtime, to_runtime) = match connected {
        Ok(Ok(connected)) => connected,
        // The client's connection is closed, as with a runtime that exits.
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
    let freeze_state = FreezeState::default();
    let connection = Arc::new(RuntimeConnection {
        shared,
        freeze_state: freeze_state.clone(),
        runtime,
    });
    let service = service_fn(move |request| call::answer(connection.clone(), request));
    let to_client = server::Builder::new(TokioExecutor::new())
        .auto_date_header(false)
        .max_concurrent_streams(CALLS)
        .max_header_list_size(HEADER_LIST_SIZE)
        .serve_connection(
            TokioIo::new(FreezableStream::new(stream, freeze_state)),
            service,
        );
    tokio::pin!(to_client);
    tokio::select! {
        ended = &mut to_client => {
            if let Err(error) = ended {
                tracing::debug!(%error, "Connection of a client failed");
            }
            return;
        }
        // Its error is of no use: the connection is gone.
        _ = to_runtime => {}
    }
    // A timeout means that a call waits for the runtime, which is gone.
    let _ = tokio::time::timeout(FLUSH, to_client).await;
}

type ToRuntime = client::Connection<TokioIo<UnixStream>, Body, TokioExecutor>;

async fn connect(shared: &ProxyState) -> io::Result<(client::SendRequest<Body>, ToRuntime)> {
    let stream = UnixStream::connect(&shared.back).await?;
    client::Builder::new(TokioExecutor::new())
        .max_header_list_size(HEADER_LIST_SIZE)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(io::Error::other)
}
