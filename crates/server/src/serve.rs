//! Accept loops, connections, and the way from a request to its answer.

use std::{
    convert::Infallible, future::Future, io, net::SocketAddr, path::Path, pin::pin, sync::Arc,
    time::Duration,
};

use http::{Method, Request, Response};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, UnixListener},
    sync::{Semaphore, watch},
    task::JoinSet,
};

use crate::{
    BindError, NodeView, PodRef, Resource,
    accept::negotiate,
    act::{self, Part},
    discovery, health, list, log,
    peer::Peer,
    query::Query,
    respond::{self, Answer, Body},
    route::{HealthRoot, Route, route},
    selector::Selection,
    status::ApiError,
    watch as watches,
};

/// A connection that sends no complete request head for so long is closed.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// Read and write buffer of a connection; also the longest request head.
const BUFFER: usize = 16 * 1024;

/// Header lines of a request.
const HEADERS: usize = 64;

/// Connections at a time; more wait in the socket's backlog.
const CONNECTIONS: usize = 128;

/// How long answers may take to end once the server stops.
const DRAIN: Duration = Duration::from_secs(2);

/// Tells the long answers that the server stops.
#[derive(Clone)]
pub(crate) struct Shutdown(watch::Receiver<bool>);

impl Shutdown {
    /// Returns once the server stops. May be dropped and called again.
    pub(crate) async fn requested(&mut self) {
        // An error means that the sender is gone, and with it the server.
        let _ = self.0.wait_for(|stopped| *stopped).await;
    }
}

/// Serves the API on a socket of [`bind_unix`](crate::bind_unix) until `shutdown` is done. Then the
/// socket's file goes, watches end, followed logs are cut off, and other answers get two seconds.
pub async fn serve_unix(
    listener: UnixListener,
    view: Arc<dyn NodeView>,
    shutdown: impl Future<Output = ()> + Send,
) {
    let address = listener.local_addr().ok();
    let path = address.and_then(|address| address.as_pathname().map(Path::to_owned));
    let shutdown = async move {
        shutdown.await;
        // While this agent still listens no other one takes the path, so it is this one's file.
        if let Some(Err(error)) = path.map(std::fs::remove_file) {
            tracing::debug!(%error, "the socket's file could not be removed");
        }
    };
    serve(listener, view, api, true, shutdown).await;
}

/// Opens the health port.
///
/// # Errors
/// The address is taken or not there.
pub async fn bind_health(address: SocketAddr) -> Result<TcpListener, BindError> {
    TcpListener::bind(address)
        .await
        .map_err(|source| BindError::Io {
            step: "listen on the health address",
            what: address.to_string(),
            source,
        })
}

/// Serves `/healthz`, its checks and `/metrics`, and nothing else, until `shutdown` is done.
pub async fn serve_health(
    listener: TcpListener,
    view: Arc<dyn NodeView>,
    shutdown: impl Future<Output = ()> + Send,
) {
    serve(listener, view, health_port, false, shutdown).await;
}

/// Something that connections come from.
pub(crate) trait Accept {
    type Io: AsyncRead + AsyncWrite + Unpin + Send + 'static;
    fn next(&self) -> impl Future<Output = io::Result<(Self::Io, Peer)>> + Send;
}

impl Accept for UnixListener {
    type Io = tokio::net::UnixStream;
    async fn next(&self) -> io::Result<(Self::Io, Peer)> {
        let (stream, _) = self.accept().await?;
        let peer = Peer::of(&stream);
        Ok((stream, peer))
    }
}

impl Accept for TcpListener {
    type Io = tokio::net::TcpStream;
    async fn next(&self) -> io::Result<(Self::Io, Peer)> {
        let (stream, _) = self.accept().await?;
        Ok((stream, Peer::STRANGER))
    }
}

/// What a request is answered from.
struct Context {
    view: Arc<dyn NodeView>,
    shutdown: Shutdown,
}

async fn serve<L, H, F>(
    listener: L,
    view: Arc<dyn NodeView>,
    handler: H,
    keep_alive: bool,
    shutdown: impl Future<Output = ()> + Send,
) where
    L: Accept + Sync,
    H: Fn(Request<Incoming>, Arc<Context>, Peer) -> F + Copy + Send + Sync + 'static,
    F: Future<Output = Answer> + Send + 'static,
{
    let serve = |stream, peer, stopped: Shutdown| {
        let context = Arc::new(Context {
            view: Arc::clone(&view),
            shutdown: stopped.clone(),
        });
        connection((stream, peer), context, handler, keep_alive, stopped)
    };
    accept_loop(listener, CONNECTIONS, serve, shutdown).await;
}

/// Takes connections, `at_once` at a time, and serves each in a task of its own, until `shutdown` is
/// done. Then the connections are told, and get two seconds.
pub(crate) async fn accept_loop<L, F>(
    listener: L,
    at_once: usize,
    serve: impl Fn(L::Io, Peer, Shutdown) -> F + Send,
    shutdown: impl Future<Output = ()> + Send,
) where
    L: Accept + Sync,
    F: Future<Output = ()> + Send + 'static,
{
    let (stop, stopped) = watch::channel(false);
    let stopped = Shutdown(stopped);
    let slots = Arc::new(Semaphore::new(at_once));
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        // Both branches may be dropped: an accepted stream or a slot is only lost with the server.
        let accepted = tokio::select! {
            () = shutdown.as_mut() => break,
            accepted = next_connection(&listener, &slots) => accepted,
        };
        while connections.try_join_next().is_some() {}
        match accepted {
            Ok(((stream, peer), slot)) => {
                let connection = serve(stream, peer, stopped.clone());
                connections.spawn(async move {
                    connection.await;
                    drop(slot);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    drop(listener);
    stop.send_replace(true);
    let drained = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(DRAIN, drained).await.is_err() {
        tracing::debug!("connections were closed before their answers were complete");
    }
}

async fn next_connection<L: Accept>(
    listener: &L,
    slots: &Arc<Semaphore>,
) -> io::Result<((L::Io, Peer), tokio::sync::OwnedSemaphorePermit)> {
    let slot = Arc::clone(slots)
        .acquire_owned()
        .await
        .map_err(io::Error::other)?;
    Ok((listener.next().await?, slot))
}

async fn connection<I, H, F>(
    (stream, peer): (I, Peer),
    context: Arc<Context>,
    handler: H,
    keep_alive: bool,
    mut stopped: Shutdown,
) where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: Fn(Request<Incoming>, Arc<Context>, Peer) -> F + Copy + Send + Sync + 'static,
    F: Future<Output = Answer> + Send + 'static,
{
    let service = service_fn(move |request| {
        let answer = handler(request, Arc::clone(&context), peer);
        async move {
            Ok::<Response<Body>, Infallible>(
                answer.await.unwrap_or_else(|error| respond::error(&error)),
            )
        }
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(BUFFER)
        .max_headers(HEADERS)
        .keep_alive(keep_alive);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stopped.requested() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// The API on the unix socket.
async fn api(request: Request<Incoming>, context: Arc<Context>, peer: Peer) -> Answer {
    let route = route(request.uri().path())?;
    let query = Query::parse(request.uri().query())?;
    let view = context.view.as_ref();
    let method = request.method().clone();
    let (is_get, allowed) = (method == Method::GET, route.methods());
    match route {
        Route::Object(Resource::Pods, namespace, name) if method == Method::DELETE => {
            let pod = PodRef { namespace, name };
            act::delete(view, pod, &query, request).await
        }
        Route::Part(_, Part::Ephemeral) if !is_get && !peer.may_add_containers() => {
            Err(ApiError::forbidden(
                "only root may add containers to a pod: they can have every right on this machine",
            ))
        }
        Route::Part(pod, part) if method == Method::PATCH => {
            act::patch(view, pod, part, &query, request).await
        }
        Route::Part(pod, part) if method == Method::PUT => {
            act::replace(view, pod, part, &query, request).await
        }
        Route::Restart(pod) if method == Method::POST => {
            act::restart(view, pod, &query, request).await
        }
        Route::Health(root, check) if is_get || method == Method::HEAD => {
            health::health(view, root, check.as_deref(), &query)
        }
        Route::Object(Resource::Pods, ..) | Route::Collection(Resource::Pods, _) if !is_get => {
            Err(ApiError::from_manifests(allowed))
        }
        Route::Restart(_) | Route::Health(..) => Err(ApiError::not_allowed(allowed)),
        _ if !is_get => Err(ApiError::not_allowed(allowed)),
        Route::Why(pod) => act::why(view, pod).await,
        Route::Version => Ok(respond::json(&discovery::version())),
        Route::CoreVersions => Ok(respond::json(&discovery::core_versions())),
        Route::Groups => Ok(respond::json(&discovery::groups())),
        Route::NodeGroup => Ok(respond::json(&discovery::node_group())),
        Route::CoreResources => Ok(respond::json(&discovery::resources(""))),
        Route::NodeResources => Ok(respond::json(&discovery::resources(Resource::NODE_GROUP))),
        Route::Metrics => Ok(respond::metrics(view.metrics())),
        Route::Configz => Ok(respond::json(
            &serde_json::json!({ "kubeletconfig": view.config() }),
        )),
        Route::Log(namespace, pod) => {
            let shutdown = context.shutdown.clone();
            log::log(view, namespace, pod, &query, shutdown).await
        }
        Route::Collection(resource, namespace) => {
            let selection = Selection::new(resource, namespace.as_deref(), None, &query)?;
            objects(&request, &context, &query, selection, None)
        }
        Route::Part(pod, _) => {
            let (namespace, name) = (Some(pod.namespace.as_str()), Some(pod.name.as_str()));
            let selection = Selection::new(Resource::Pods, namespace, name, &query)?;
            objects(&request, &context, &query, selection, Some(&pod.name))
        }
        Route::Object(resource, namespace, name) => {
            let selection = Selection::new(resource, Some(&namespace), Some(&name), &query)?;
            objects(&request, &context, &query, selection, Some(&name))
        }
    }
}

fn objects(
    request: &Request<Incoming>,
    context: &Context,
    query: &Query,
    selection: Selection,
    name: Option<&str>,
) -> Answer {
    let view = context.view.as_ref();
    let style = list::Style::new(selection.resource, negotiate(request.headers())?, query)?;
    if query.flag("watch")? {
        return watches::watch(view, style, selection, query, context.shutdown.clone());
    }
    match name {
        Some(name) => list::get(view, style, &selection, name),
        None => list::list(view, style, selection, query),
    }
}

/// The health port: `/healthz` and `/metrics` only.
async fn health_port(request: Request<Incoming>, context: Arc<Context>, _: Peer) -> Answer {
    match route(request.uri().path())? {
        Route::Metrics if request.method() == Method::GET => {
            Ok(respond::metrics(context.view.metrics()))
        }
        metrics @ Route::Metrics => Err(ApiError::not_allowed(metrics.methods())),
        Route::Health(root @ HealthRoot::Healthz, check) => {
            let query = Query::parse(request.uri().query())?;
            health::health(context.view.as_ref(), root, check.as_deref(), &query)
        }
        _ => Err(ApiError::unknown_path()),
    }
}
