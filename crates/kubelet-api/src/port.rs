//! One port: its parts, and the way from a request to its response.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Version, header};
use hyper::body::{Body as _, Incoming};
use rubelet_audit::{AUDIT_ID, AuditLog, AuditedRequest, RequestAttributes};
use rubelet_http_core::{
    respond::Body,
    session::Tracked,
    shutdown::Shutdown,
    tracked::TrackedBody,
    user::{ANONYMOUS, User},
};
use rubelet_server::NodeView;

use super::{
    access::{Access, AccessDenied},
    answer::answer,
    attributes::attributes,
    client_connection::{Connection, Guards},
    endpoint::{Endpoint, EndpointOptions, endpoint},
    observe::{Observed, RequestLabels, RequestObserver},
    path::CleanPath,
    plain_text::{nowhere, text},
    session,
    tls::TlsConfigs,
};

/// A request that announces a longer body is rejected; no endpoint reads a body.
const LONGEST_BODY: u64 = 3 * 1024 * 1024;

/// A port and what it serves from.
pub(super) struct Port {
    pub(super) view: Arc<dyn NodeView>,
    pub(super) guard: PortSecurity,
    pub(super) options: EndpointOptions,
    pub(super) observer: Arc<dyn RequestObserver>,
    pub(super) audit: Option<Arc<AuditLog>>,
}

/// The decisions about a request before its response.
struct RequestVerdict {
    let_in: bool,
    audited: Option<AuditedRequest>,
}

impl RequestVerdict {
    fn allowed(&mut self, user: User, headers: &HeaderMap) {
        let Some(audited) = &mut self.audited else {
            return;
        };
        if user.name != ANONYMOUS {
            audited.take_id(headers);
        }
        audited.identified(user);
        audited.decided(true, "");
    }

    fn refused(&mut self, refusal: &AccessDenied) {
        if let (Some(audited), Some(user)) = (&mut self.audited, &refusal.user) {
            audited.identified(user.clone());
            audited.decided(false, refusal.text.trim());
        }
    }
}

/// The protection of the endpoints.
pub(super) enum PortSecurity {
    /// TLS, and a decision about each request.
    Secure {
        tls: Box<TlsConfigs>,
        access: Box<Access>,
    },
    /// Nothing.
    Open,
}

impl PortSecurity {
    pub(super) fn server_type(&self) -> &'static str {
        match self {
            Self::Secure { .. } => "readwrite",
            Self::Open => "readonly",
        }
    }
}

impl Port {
    /// Answers a request.
    pub(super) async fn handle(
        &self,
        request: Request<Incoming>,
        connection: &Connection,
        shutdown: Shutdown,
    ) -> Response<TrackedBody<Guards>> {
        let open = connection.activity.begin();
        let path = CleanPath::read(request.uri().path());
        let labels = RequestLabels::of(request.method(), path.as_ref(), self.guard.server_type());
        let observed = Observed::new(Arc::clone(&self.observer), labels);
        let mut verdict = RequestVerdict {
            let_in: false,
            audited: self.audited(&request, path.as_ref(), connection),
        };
        let closes = ends_connection(&request);
        let mut response = self
            .respond(request, path.as_ref(), connection, &mut verdict, shutdown)
            .await;
        let code = response.status().as_u16();
        observed.answered(code);
        let audited = verdict.audited.as_mut();
        if let Some(id) = audited.and_then(|audited| audited.answered(code)) {
            response.headers_mut().insert(AUDIT_ID, id);
        }
        let tracked = Tracked {
            open,
            guards: (observed, verdict.audited),
        };
        let Some(tracked) = connection.session.track(tracked) else {
            return response.map(TrackedBody::untracked);
        };
        if closes {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(header::CONNECTION, close);
        }
        // A rejection that the peer does not read must not keep an unauthenticated connection open.
        let open = verdict.let_in.then_some(tracked.open);
        response.map(|body| TrackedBody::new(body, open, tracked.guards))
    }

    /// Begins recording the request, if there is an audit log.
    fn audited(
        &self,
        request: &Request<Incoming>,
        path: Option<&CleanPath>,
        connection: &Connection,
    ) -> Option<AuditedRequest> {
        let log = self.audit.as_ref()?;
        let (method, uri) = (request.method(), request.uri());
        let nowhere = endpoint(method, path, &self.options) == Endpoint::Nowhere;
        let asked = match (path.filter(|_| !nowhere), &self.guard) {
            (Some(path), PortSecurity::Secure { access, .. }) => {
                let mut asked = attributes(method, path, &access.node, access.fine_grained);
                (!asked.is_empty()).then(|| asked.swap_remove(0))
            }
            _ => None,
        };
        let attributes = match asked {
            Some(of) => RequestAttributes::of_node(method, of.verb, of.subresource, &of.node, uri),
            None => RequestAttributes::of_path(method, uri.path()),
        };
        let (headers, peer) = (request.headers(), connection.peer);
        Some(AuditedRequest::begin(log, uri, headers, peer, attributes))
    }

    async fn respond(
        &self,
        request: Request<Incoming>,
        path: Option<&CleanPath>,
        connection: &Connection,
        verdict: &mut RequestVerdict,
        shutdown: Shutdown,
    ) -> Response<Body> {
        if !names_one_host(&request) {
            return text(
                StatusCode::BAD_REQUEST,
                "400 Bad Request: missing required Host header",
            );
        }
        // The buffers of a connection are larger than the limit that they were created with.
        if length_of_head(&request) > connection.longest_head {
            let why = "431 Request Header Fields Too Large";
            return text(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, why);
        }
        let found = endpoint(request.method(), path, &self.options);
        let Some(path) = path.filter(|_| found != Endpoint::Nowhere) else {
            return nowhere();
        };
        if let PortSecurity::Secure { access, .. } = &self.guard {
            let certificates = &connection.certificates;
            let method = request.method();
            let checked = access
                .check(certificates, method, path, request.headers())
                .await;
            match checked {
                Ok(user) => {
                    tracing::trace!(user = user.name, %method, path = path.root(), "Request");
                    if user.name != ANONYMOUS {
                        connection.activity.prove();
                    }
                    verdict.allowed(user, request.headers());
                }
                Err(refusal) => {
                    tracing::debug!(code = refusal.code.as_u16(), why = refusal.text.trim(), peer = ?connection.peer.address(), %method, path = path.root(), "Rejected a request");
                    verdict.refused(&refusal);
                    return text(refusal.code, &refusal.text);
                }
            }
        }
        connection.activity.let_in();
        verdict.let_in = true;
        if request.body().size_hint().lower() > LONGEST_BODY {
            let why = format!("Request entity too large: limit is {LONGEST_BODY}\n");
            return text(StatusCode::PAYLOAD_TOO_LARGE, &why);
        }
        if let Endpoint::Session(kind, path) = found {
            let (view, observer) = (self.view.as_ref(), self.observer.as_ref());
            return session::session(view, (kind, path), request, connection, observer, shutdown)
                .await;
        }
        let query = request.uri().query();
        answer(self.view.as_ref(), found, &self.options, query, shutdown).await
    }
}

/// True for a request after which the connection must close: its body is chunked, and a proxy may
/// have trusted a `Content-Length` beside it (request smuggling).
fn ends_connection(request: &Request<Incoming>) -> bool {
    let http1 = matches!(request.version(), Version::HTTP_10 | Version::HTTP_11);
    http1 && (request.headers().contains_key(header::TRANSFER_ENCODING) || !names_one_host(request))
}

fn length_of_head(request: &Request<Incoming>) -> usize {
    let path = request
        .uri()
        .path_and_query()
        .map_or("", |path| path.as_str());
    let headers = request.headers().iter();
    let headers: usize = headers
        .map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len())
        .sum();
    path.len() + headers
}

/// HTTP/1.1 demands exactly one `Host`.
fn names_one_host(request: &Request<Incoming>) -> bool {
    let hosts = request.headers().get_all(header::HOST).iter().count();
    match request.version() {
        Version::HTTP_11 => hosts == 1,
        _ => hosts <= 1,
    }
}
