//! The accept loop and the connections: each is served, frozen, hung or closed by faults.

use std::{future::Future, io, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use hyper::service::service_fn;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, DuplexStream},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;

use crate::{
    answer::{Client, answer},
    authority,
    state::ServerState,
};

/// Time between two attempts to bind a port that is still in use.
const REBIND: Duration = Duration::from_millis(50);

/// Serves until it is dropped.
pub(crate) async fn serve(
    shared: Arc<ServerState>,
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    mut inbox: mpsc::UnboundedReceiver<DuplexStream>,
) {
    let Ok(address) = listener.local_addr() else {
        return;
    };
    let mut listener = Some(listener);
    let mut connection_faults = shared.faults.connection_faults();
    let mut connections = JoinSet::new();
    loop {
        if connection_faults.borrow_and_update().down {
            listener = None;
        } else if listener.is_none() {
            listener = rebind(address).await;
        }
        shared.faults.listening.send_replace(listener.is_some());
        // Cancel safety: no branch takes anything before it is ready.
        tokio::select! {
            accepted = accept(listener.as_ref()) => match accepted {
                Ok(stream) => {
                    // Small responses must not be delayed.
                    let _ = stream.set_nodelay(true);
                    connections.spawn(connection(Arc::clone(&shared), stream, tls.clone()));
                }
                Err(error) => tracing::debug!(%error, "Cannot accept a connection"),
            },
            Some(stream) = inbox.recv() => {
                // A connection while the server is down is closed.
                if !connection_faults.borrow().down {
                    connections.spawn(connection(Arc::clone(&shared), stream, None));
                }
            }
            Some(_) = connections.join_next() => {}
            _ = connection_faults.changed() => {}
        }
    }
}

async fn accept(listener: Option<&TcpListener>) -> io::Result<TcpStream> {
    match listener {
        Some(listener) => listener.accept().await.map(|(stream, _)| stream),
        None => std::future::pending().await,
    }
}

async fn rebind(address: SocketAddr) -> Option<TcpListener> {
    loop {
        match TcpListener::bind(address).await {
            Ok(listener) => return Some(listener),
            Err(error) => {
                tracing::debug!(%error, %address, "The port is still in use");
                tokio::time::sleep(REBIND).await;
            }
        }
    }
}

async fn connection<I>(shared: Arc<ServerState>, stream: I, tls: Option<TlsAcceptor>)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let number = shared.faults.connected();
    let connection_faults = shared.faults.connection_faults();
    match tls {
        None => {
            let client = Arc::new(Client::default());
            let work = requests(&shared, stream, &client);
            run_unless_faulty(work, connection_faults, number, &client).await;
        }
        Some(tls) => {
            let before = Arc::new(Client::default());
            let mut secured = None;
            let handshake = async { secured = tls.accept(stream).await.ok() };
            run_unless_faulty(handshake, connection_faults.clone(), number, &before).await;
            let Some(stream) = secured else { return };
            let shown = stream.get_ref().1.peer_certificates();
            let certified = shown.and_then(|chain| authority::user_of(chain.first()?));
            let client = Arc::new(Client {
                certified,
                ..Client::default()
            });
            let work = requests(&shared, stream, &client);
            run_unless_faulty(work, connection_faults, number, &client).await;
        }
    }
}

async fn requests<I>(shared: &Arc<ServerState>, stream: I, client: &Arc<Client>)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(|request| answer(Arc::clone(shared), Arc::clone(client), request));
    let mut builder = auto::Builder::new(TokioExecutor::new());
    // Idle connections stay open.
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(None);
    builder.http2().timer(TokioTimer::new());
    let served = builder
        .serve_connection_with_upgrades(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "A connection closed early");
    }
    let session = client.session.lock().take();
    if let Some(session) = session {
        session.await;
    }
}

/// Runs the work unless the connection has a fault. The work of a frozen or hung connection is not
/// polled: the kernel still accepts data, but nothing responds.
async fn run_unless_faulty(
    work: impl Future<Output = ()>,
    mut connection_faults: tokio::sync::watch::Receiver<crate::fault::ConnectionFaults>,
    number: u64,
    client: &Client,
) {
    let mut work = pin!(work);
    loop {
        let now = *connection_faults.borrow_and_update();
        if number <= now.closed {
            return;
        }
        let is_silent = now.frozen || number <= now.hung;
        tokio::select! {
            biased;
            changed = connection_faults.changed() => if changed.is_err() {
                return;
            },
            () = client.cut.notified() => return,
            () = work.as_mut(), if !is_silent => return,
        }
    }
}
