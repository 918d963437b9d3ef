//! Listeners, connections, and the way from a request to its response.

use std::{
    convert::Infallible, future::Future, net::SocketAddr, path::Path, pin::pin, sync::Arc,
    time::Duration,
};

use http::{Method, Request, Response, StatusCode};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use rubelet_audit::{AUDIT_ID, AuditLog, AuditedRequest, local_user, malformed};
use rubelet_http_core::{
    activity::Activity,
    connections::{ConnectionObserver, ConnectionSlot, Connections, PLAIN, RefusalReason, SOCKET},
    listener::{Accept, SHUTDOWN_GRACE, accept_loop},
    peer::Peer,
    query::Query,
    resource::Resource,
    respond::{self, ApiResult},
    session::{Session, SessionSlot, Tracked},
    shutdown::Shutdown,
    status::ApiError,
    tracked::TrackedBody,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, UnixListener},
};

use crate::{
    BindError, NodeView, PodRef,
    accept::negotiate,
    act::{self, LongBodies, Part},
    attributes::attributes,
    discovery, files,
    health::{self, HealthRoot},
    list, log, net,
    route::{Route, route},
    selector::Selection,
    session::local,
    stats, watch as watches,
};

/// Timeout for a complete request head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// Read and write buffer of a connection; also the longest request head.
const BUFFER: usize = 16 * 1024;

/// Header lines of a request.
const HEADERS: usize = 64;

/// Serves the API on a socket of [`bind_unix`](crate::bind_unix) until `shutdown` is requested.
/// Then the socket's file is removed, watches end, followed logs are truncated, and other responses
/// get two seconds.
pub async fn serve_unix(
    listener: UnixListener,
    view: Arc<dyn NodeView>,
    observer: Arc<dyn ConnectionObserver>,
    audit: Option<Arc<AuditLog>>,
    shutdown: impl Future<Output = ()> + Send,
) {
    let address = listener.local_addr().ok();
    let path = address.and_then(|address| address.as_pathname().map(Path::to_owned));
    let shutdown = async move {
        shutdown.await;
        // While this agent listens no other one takes over the path, so the file is this agent's.
        if let Some(Err(error)) = path.map(std::fs::remove_file) {
            tracing::debug!(%error, "Cannot remove the socket file");
        }
    };
    let connections = Connections::new("socket", SOCKET, observer);
    let server = Server {
        view,
        connections,
        audit,
        keep_alive: true,
    };
    serve(listener, server, api, shutdown).await;
}

/// Opens the health port.
///
/// # Errors
/// The address is in use or not available.
pub async fn bind_health(address: SocketAddr) -> Result<TcpListener, BindError> {
    TcpListener::bind(address)
        .await
        .map_err(|source| BindError::Io {
            step: "listen on the health address",
            what: address.to_string(),
            source,
        })
}

/// Serves `/healthz`, its checks and `/metrics`, and nothing else, until `shutdown` is requested.
pub async fn serve_health(
    listener: TcpListener,
    view: Arc<dyn NodeView>,
    observer: Arc<dyn ConnectionObserver>,
    shutdown: impl Future<Output = ()> + Send,
) {
    let connections = Connections::new("health", PLAIN, observer);
    let server = Server {
        view,
        connections,
        audit: None,
        // Probes come seconds apart, and there is no authentication: an idle connection would only
        // hold one of the few slots.
        keep_alive: false,
    };
    serve(listener, server, health_port, shutdown).await;
}

/// What ends with a request: its entry in the audit log.
type Guards = Option<AuditedRequest>;

/// Dependencies of the handlers of a request.
struct Context {
    view: Arc<dyn NodeView>,
    audit: Option<Arc<AuditLog>>,
    bodies: Arc<LongBodies>,
    keep_alive: bool,
    shutdown: Shutdown,
    /// The session that the connection becomes.
    session: SessionSlot<Guards>,
}

/// Whose request it is.
struct Requester {
    peer: Peer,
    activity: Arc<Activity>,
}

/// Dependencies of a listener.
struct Server {
    view: Arc<dyn NodeView>,
    connections: Arc<Connections>,
    audit: Option<Arc<AuditLog>>,
    keep_alive: bool,
}

async fn serve<L, H, F>(
    listener: L,
    server: Server,
    handler: H,
    shutdown: impl Future<Output = ()> + Send,
) where
    L: Accept + Sync,
    H: Fn(Request<Incoming>, Arc<Context>, Requester) -> F + Copy + Send + Sync + 'static,
    F: Future<Output = ApiResult> + Send + 'static,
{
    let bodies = Arc::new(LongBodies::new());
    let serve = |stream, peer, slot, stopped: Shutdown| {
        let context = Arc::new(Context {
            view: Arc::clone(&server.view),
            audit: server.audit.clone(),
            bodies: Arc::clone(&bodies),
            keep_alive: server.keep_alive,
            shutdown: stopped.clone(),
            session: SessionSlot::default(),
        });
        connection((stream, peer), slot, context, handler, stopped)
    };
    let connections = Arc::clone(&server.connections);
    accept_loop(listener, connections, serve, shutdown).await;
}

async fn connection<I, H, F>(
    accepted: (I, Peer),
    slot: ConnectionSlot,
    context: Arc<Context>,
    handler: H,
    stopped: Shutdown,
) where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: Fn(Request<Incoming>, Arc<Context>, Requester) -> F + Copy + Send + Sync + 'static,
    F: Future<Output = ApiResult> + Send + 'static,
{
    // Boxed, and dropped when a session begins, which may be idle for hours.
    let session = Box::pin(until_session(accepted, slot, context, handler, stopped)).await;
    if let Some(session) = session {
        session.run().await;
    }
}

/// Serves a connection until it ends or becomes a session.
async fn until_session<I, H, F>(
    (stream, peer): (I, Peer),
    slot: ConnectionSlot,
    context: Arc<Context>,
    handler: H,
    mut stopped: Shutdown,
) -> Option<Session<Guards>>
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: Fn(Request<Incoming>, Arc<Context>, Requester) -> F + Copy + Send + Sync + 'static,
    F: Future<Output = ApiResult> + Send + 'static,
{
    let activity = Activity::new(slot);
    // The kernel has authenticated a peer of a unix socket before its first byte.
    if peer.credentials().is_some() {
        activity.prove();
    }
    let for_requests = Arc::clone(&activity);
    let (audit, keep_alive) = (context.audit.clone(), context.keep_alive);
    let own = Arc::clone(&context);
    let service = service_fn(move |request| {
        let open = for_requests.begin();
        // On the socket its file's mode has authorized the request; the health port serves everybody.
        for_requests.let_in();
        let mut audited = audited(&context, &request, peer);
        let requester = Requester {
            peer,
            activity: Arc::clone(&for_requests),
        };
        let context = Arc::clone(&context);
        let answer = handler(request, Arc::clone(&context), requester);
        async move {
            let answer = answer.await;
            if let (Some(audited), Err(error)) = (&mut audited, &answer)
                && error.code == StatusCode::FORBIDDEN
            {
                audited.decided(false, &error.message);
            }
            let mut response = answer.unwrap_or_else(|error| respond::error(&error));
            let code = response.status().as_u16();
            let id = audited.as_mut().and_then(|audited| audited.answered(code));
            if let Some(id) = id {
                response.headers_mut().insert(AUDIT_ID, id);
            }
            let tracked = Tracked {
                open,
                guards: audited,
            };
            // A request lasts as long as its body, or as the session that it begins.
            let response = match context.session.track(tracked) {
                None => response.map(TrackedBody::untracked),
                Some(Tracked { open, guards }) => {
                    response.map(|body| TrackedBody::new(body, Some(open), guards))
                }
            };
            Ok::<Response<TrackedBody<Guards>>, Infallible>(response)
        }
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(BUFFER)
        .max_headers(HEADERS)
        .keep_alive(keep_alive);
    let served = builder.serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(served.with_upgrades());
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        reason = activity.idle() => {
            if let Some(reason) = reason {
                activity.refused(reason);
            }
            // A graceful shutdown would wait for the peer to read, which it does not.
            if reason == Some(RefusalReason::Stalled) {
                return None;
            }
            connection.as_mut().graceful_shutdown();
            match tokio::time::timeout(SHUTDOWN_GRACE, connection).await {
                Ok(ended) => ended,
                Err(_) => return None,
            }
        }
        // Without a timeout of its own: the accept loop ends all connections after a while.
        () = stopped.requested() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "A connection closed early");
        if let Some(log) = audit {
            malformed(&log, peer, &error);
        }
        return None;
    }
    own.session.take()
}

/// Begins recording a request, if there is an audit log.
fn audited(context: &Context, request: &Request<Incoming>, peer: Peer) -> Option<AuditedRequest> {
    let log = context.audit.as_ref()?;
    let (uri, headers) = (request.uri(), request.headers());
    let attributes = attributes(request.method(), uri);
    let mut audited = AuditedRequest::begin(log, uri, headers, peer, attributes);
    if let Some(user) = local_user(&peer) {
        audited.identified(user);
    }
    if peer.may_add_containers() {
        audited.take_id(headers);
    }
    audited.decided(true, "the file mode of the socket");
    Some(audited)
}

/// The API on the unix socket.
async fn api(request: Request<Incoming>, context: Arc<Context>, from: Requester) -> ApiResult {
    let peer = from.peer;
    let route = route(request.uri().path())?;
    let query = Query::parse(request.uri().query())?;
    let (view, bodies) = (context.view.as_ref(), context.bodies.of(peer));
    let method = request.method().clone();
    let (is_get, allowed) = (method == Method::GET, route.methods());
    // The first arm that fits counts: one that refuses a method or a peer stands before those that
    // serve the same path.
    match route {
        Route::Object(Resource::Pods, namespace, name) if method == Method::DELETE => {
            let pod = PodRef { namespace, name };
            act::delete(view, pod, &query, request, bodies).await
        }
        Route::Part(_, Part::Ephemeral) if !is_get && !peer.may_add_containers() => {
            Err(ApiError::forbidden(
                "only root may add containers to a pod: they can have every right on this machine",
            ))
        }
        Route::Part(pod, part) if method == Method::PATCH => {
            act::patch(view, pod, part, &query, request, bodies).await
        }
        Route::Part(pod, part) if method == Method::PUT => {
            act::replace(view, pod, part, &query, request, bodies).await
        }
        Route::Restart(pod) if method == Method::POST => {
            act::restart(view, pod, &query, request, bodies).await
        }
        Route::Session(..) if !is_get && method != Method::POST => {
            Err(ApiError::not_allowed(allowed))
        }
        Route::Session(..) if !peer.may_add_containers() => {
            Err(ApiError::forbidden(local::ONLY_ROOT))
        }
        Route::Session(pod, kind) => {
            let shutdown = context.shutdown.clone();
            let asked = local::read(view, pod, kind, &query, request.headers())?;
            local::session(
                view,
                asked,
                request,
                &from.activity,
                &context.session,
                shutdown,
            )
            .await
        }
        Route::Files(_) if !is_get && method != Method::PUT => Err(ApiError::not_allowed(allowed)),
        Route::Files(_) if !peer.may_add_containers() => Err(ApiError::forbidden(files::ONLY_ROOT)),
        Route::Files(pod) => files::files(view, pod, &query, request, &from.activity).await,
        Route::Net(_) if method != Method::POST => Err(ApiError::not_allowed(allowed)),
        Route::Net(_) if !peer.may_add_containers() => Err(ApiError::forbidden(net::ONLY_ROOT)),
        Route::Net(pod) => {
            let shutdown = context.shutdown.clone();
            net::net(view, pod, &query, request, shutdown).await
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
        Route::StatsSummary => stats::summary(view, &query).await,
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
) -> ApiResult {
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
async fn health_port(request: Request<Incoming>, context: Arc<Context>, _: Requester) -> ApiResult {
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
