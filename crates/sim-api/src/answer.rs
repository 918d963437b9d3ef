//! Handles HTTP requests: authentication, routing, faults, response.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::{Method, Request as HttpRequest, Response, StatusCode, header, request::Parts};
use http_body_util::{BodyExt as _, Limited};
use hyper::{body::Incoming, upgrade::OnUpgrade};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::{
    Fault, RequestRecord, StatusError, authentication, discovery, event_conversion,
    fault::nulls,
    meta,
    negotiation::{Include, ResponseFormat},
    node_authorizer,
    node_proxy::{
        self,
        session::{self, Session},
    },
    oracle::written_null,
    query::Query,
    request::{Request, Verb},
    respond::{self, Body},
    route::{Route, Target, route},
    state::ServerState,
    table,
    user::User,
    verb::{self, Reply, Watch},
};

/// A client's connection.
#[derive(Default)]
pub(crate) struct Client {
    /// The user of its client certificate.
    pub(crate) certified: Option<User>,
    /// Closes the connection.
    pub(crate) cut: Notify,
    /// The session that uses the connection after the last response.
    pub(crate) session: Mutex<Option<Session>>,
}

/// What follows the headers of a response.
enum AfterHeaders {
    Watch(Box<Watch>),
    Session(Session),
}

/// The connection is closed instead of a response.
#[derive(Debug)]
pub(crate) struct ConnectionCut;

impl fmt::Display for ConnectionCut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the connection is cut by a fault rule")
    }
}

impl std::error::Error for ConnectionCut {}

/// Handles a request.
pub(crate) async fn answer(
    shared: Arc<ServerState>,
    client: Arc<Client>,
    mut request: HttpRequest<Incoming>,
) -> Result<Response<Body>, ConnectionCut> {
    let upgrade = hyper::upgrade::on(&mut request);
    let (parts, body) = request.into_parts();
    let user = match user(&shared, &client, &parts) {
        Ok(user) => user,
        Err(error) => return Ok(error_response(&shared, &parts, "", &error)),
    };
    let target = match route(parts.uri.path()) {
        Ok(Route::Objects(target)) => target,
        Ok(other) => {
            let response = server_info(&other, &parts);
            record(
                &shared,
                &parts,
                None,
                &user,
                response.status().as_u16(),
                None,
            );
            return Ok(response);
        }
        Err(error) => return Ok(error_response(&shared, &parts, &user.name, &error)),
    };
    let object_request = ObjectRequest {
        shared: &shared,
        client: &client,
        parts: &parts,
        upgrade,
        user,
        target,
    };
    object_request.answer(body).await
}

/// A request for objects, with user and target.
struct ObjectRequest<'a> {
    shared: &'a Arc<ServerState>,
    client: &'a Client,
    parts: &'a Parts,
    upgrade: OnUpgrade,
    user: User,
    target: Target,
}

impl ObjectRequest<'_> {
    async fn answer(self, body: Incoming) -> Result<Response<Body>, ConnectionCut> {
        let read = self.read(body).await;
        let request = match read {
            Ok(request) => request,
            Err(error) => {
                self.record("", error.code, None);
                return Ok(respond::error(&error, self.error_format()));
            }
        };
        let verb = request.verb.name();
        let faults = &self.shared.faults;
        let verdict = faults.decide(verb, &self.target, &self.user);
        if !verdict.delay.is_zero() {
            tokio::time::sleep(verdict.delay).await;
        }
        let rule = verdict.rule.as_deref();
        match &verdict.fault {
            Some(Fault::Code { code, retry_after }) => {
                self.record(verb, *code, rule);
                return Ok(self.fault_response(*code, *retry_after));
            }
            Some(Fault::Cut) => return self.cut(verb, rule),
            Some(Fault::Hang) => {
                self.record(verb, 0, rule);
                std::future::pending::<()>().await;
            }
            Some(Fault::Expire) if request.verb == Verb::List => {
                self.record(verb, 410, rule);
                return Ok(self.fault_response(410, None));
            }
            _ => {}
        }
        let with_nulls = verdict.fault == Some(Fault::Nulls);
        let (response, next) = match self.perform(&request, with_nulls).await {
            Ok(done) => done,
            Err(error) => (respond::error(&error, self.error_format()), None),
        };
        match verdict.fault {
            Some(Fault::Lost { code }) => {
                self.record(verb, code, rule);
                return Ok(self.fault_response(code, None));
            }
            Some(Fault::CutAfter) => return self.cut(verb, rule),
            _ => self.record(verb, response.status().as_u16(), rule),
        }
        match next {
            Some(AfterHeaders::Watch(watch)) => {
                return Ok(self.stream_watch(*watch, verdict.fault.as_ref()));
            }
            Some(AfterHeaders::Session(session)) => {
                *self.client.session.lock() = Some(session);
                return Ok(response);
            }
            None => {}
        }
        if verdict.fault == Some(Fault::CutBody) {
            return Ok(respond::halved(response).await);
        }
        Ok(response)
    }

    /// Authorizes the request and reads its body.
    async fn read(&self, body: Incoming) -> Result<Request, StatusError> {
        let query = Query::parse(self.parts.uri.query())?;
        let verb = Verb::of(&self.parts.method, &self.target, &query)?;
        let (kind, name) = (self.target.kind, self.target.name());
        let resource = self.target.resource();
        let node_denial = self.node_denial(verb, &query);
        if node_denial.is_some() || !self.is_allowed(verb, &resource) {
            let place = match &self.target.namespace {
                Some(namespace) => format!("in the namespace {namespace:?}"),
                None => "at the cluster scope".to_owned(),
            };
            let node_denial = node_denial.filter(|why| !why.is_empty());
            let node_denial = node_denial.map_or(String::new(), |why| format!(": {why}"));
            let why = format!(
                "User {:?} cannot {} resource {resource:?} in API group {:?} {place}{node_denial}",
                self.user.name,
                verb.name(),
                kind.group,
            );
            return Err(StatusError::forbidden(kind, name, &why));
        }
        let limit = self.shared.config().max_body;
        let body = match Limited::new(body, limit).collect().await {
            Ok(collected) => collected.to_bytes(),
            Err(_) => return Err(StatusError::too_large(limit)),
        };
        let media_type = header(self.parts, header::CONTENT_TYPE);
        let media_type = media_type.split(';').next().unwrap_or_default().trim();
        let agent = header(self.parts, header::USER_AGENT);
        if let Some(field) = written_null(agent, media_type, &body) {
            return Err(self.null_error(verb, &field));
        }
        Ok(Request {
            user: self.user.clone(),
            verb,
            target: self.target.clone(),
            format: self.format(&query)?,
            query,
            media_type: media_type.to_owned(),
            body,
        })
    }

    fn format(&self, query: &Query) -> Result<ResponseFormat, StatusError> {
        // Responses of a node keep the node's format.
        let subresource = self.target.subresource();
        if ["log", "proxy"].contains(&subresource) || session::is_session(subresource) {
            return Ok(ResponseFormat::Object);
        }
        ResponseFormat::of(header(self.parts, header::ACCEPT), query)
    }

    /// Why the node authorizer denies it, if it does.
    fn node_denial(&self, verb: Verb, query: &Query) -> Option<String> {
        let is_granted = || {
            let access = self.shared.access();
            access.is_granted(&self.user, verb.name(), &self.target.resource())
        };
        if !self.shared.config().node_authorization || is_granted() {
            return None;
        }
        let pods = || self.shared.related_pods();
        node_authorizer::denial(&self.user, verb, &self.target, query, pods)
    }

    /// A session needs `create` whatever its method, which is GET for a WebSocket. Source: upstream's
    /// `ensureAuthorizedForVerb`; there, too, the message gives no reason.
    fn may_create(&self) -> Result<(), StatusError> {
        if self.is_allowed(Verb::Create, &self.target.resource()) {
            return Ok(());
        }
        let (kind, name) = (self.target.kind, self.target.name());
        Err(StatusError::forbidden(kind, name, ""))
    }

    fn null_error(&self, verb: Verb, field: &str) -> StatusError {
        let (target, verb) = (&self.target, verb.name());
        let message = format!(
            "{field:?} is null in the body of a {verb} request for {}: leave the field out; only in \
             a merge patch null has a meaning",
            target.resource()
        );
        let metadata = json!({ "namespace": target.namespace(), "name": target.name() });
        let object = json!({ "metadata": metadata });
        let at = self.shared.clock.elapsed();
        self.shared.oracle().violated(at, &object, message.clone());
        StatusError::bad_request(message)
    }

    fn is_allowed(&self, verb: Verb, resource: &str) -> bool {
        let access = self.shared.access();
        access.is_request_allowed(&self.user, verb.name(), resource)
    }

    /// Performs the request. A watch is returned with an empty response, and started later.
    async fn perform(
        &self,
        request: &Request,
        with_nulls: bool,
    ) -> Result<(Response<Body>, Option<AfterHeaders>), StatusError> {
        if session::is_session(self.target.subresource()) {
            self.may_create()?;
            let upgrade = self.upgrade.clone();
            let opened = session::open(self.shared, request, self.parts, upgrade).await?;
            return Ok((opened.0, opened.1.map(AfterHeaders::Session)));
        }
        if ["log", "proxy"].contains(&self.target.subresource()) {
            if request.verb != Verb::Get {
                return Err(StatusError::method_not_allowed());
            }
            return Ok((node_proxy::get(self.shared, request).await?, None));
        }
        Ok(match verb::answer(self.shared, request)? {
            Reply::Watch(watch) => {
                let empty = respond::events(request.format, stream::empty());
                (empty, Some(AfterHeaders::Watch(watch)))
            }
            Reply::Object { value, created } => {
                let code = if created {
                    StatusCode::CREATED
                } else {
                    StatusCode::OK
                };
                let is_read = [Verb::Get, Verb::List].contains(&request.verb);
                let mut value = match request.format {
                    ResponseFormat::Table(include) if is_read => self.table(&value, include),
                    _ => value,
                };
                if with_nulls {
                    nulls::insert_nulls(&mut value);
                }
                (respond::object(code, &value, request.format)?, None)
            }
        })
    }

    fn table(&self, value: &Value, include: Include) -> Value {
        let (kind, now) = (self.target.kind, self.shared.clock.now());
        let objects = match value["items"].as_array() {
            Some(items) => items.clone(),
            None => vec![value.clone()],
        };
        let objects: Vec<Value> = objects
            .into_iter()
            .map(|object| event_conversion::to_storage(kind, object))
            .collect();
        let objects: Vec<&Value> = objects.iter().collect();
        let version = value["metadata"]["resourceVersion"].clone();
        let mut metadata = json!({ "resourceVersion": version });
        meta::copy_field(&mut metadata, &value["metadata"], "continue");
        table::table(kind, &objects, &metadata, include, now)
    }

    /// Streams the events of a watch.
    fn stream_watch(&self, mut watch: Watch, fault: Option<&Fault>) -> Response<Body> {
        if fault == Some(&Fault::Expire) {
            watch.expire();
        }
        let format = watch.format();
        let mut watching = watch.begin(self.shared);
        match fault {
            Some(Fault::Stall { after }) => watching.stall_after(*after),
            Some(Fault::End { after }) => watching.end_after(*after),
            _ => {}
        }
        if fault == Some(&Fault::CutBody) {
            // In the middle of the first event.
            let first = stream::once(async move { watching.next().await });
            let line = first.map(Option::unwrap_or_default);
            return respond::events(format, line.flat_map(|line| respond::half(&line)));
        }
        // Protobuf has no null.
        let with_nulls = fault == Some(&Fault::Nulls) && format != ResponseFormat::Protobuf;
        let events = stream::unfold(watching, move |mut watching| async move {
            let line = watching.next().await?;
            let line = match with_nulls {
                true => nulls::insert_nulls_in_line(&line),
                false => line,
            };
            Some((Ok(line), watching))
        });
        respond::events(format, events)
    }

    /// The error of an overloaded or failing server.
    fn fault_response(&self, code: u16, retry_after: Option<u32>) -> Response<Body> {
        let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let error = StatusError::of_code(code, retry_after, Some(self.target.kind));
        respond::error(&error, self.error_format())
    }

    fn error_format(&self) -> ResponseFormat {
        ResponseFormat::of_error(header(self.parts, header::ACCEPT))
    }

    fn cut(&self, verb: &'static str, rule: Option<&str>) -> Result<Response<Body>, ConnectionCut> {
        self.record(verb, 0, rule);
        self.client.cut.notify_one();
        Err(ConnectionCut)
    }

    fn record(&self, verb: &'static str, code: u16, fault: Option<&str>) {
        let about = Some((verb, &self.target));
        record(self.shared, self.parts, about, &self.user, code, fault);
    }
}

fn record(
    shared: &ServerState,
    parts: &Parts,
    about: Option<(&'static str, &Target)>,
    user: &User,
    code: u16,
    fault: Option<&str>,
) {
    let path = parts.uri.path_and_query();
    let path = path.map_or_else(String::new, ToString::to_string);
    let (verb, target) = match about {
        Some((verb, target)) => (verb, Some(target)),
        None => ("get", None),
    };
    let text = |read: fn(&Target) -> &str| target.map(read).unwrap_or_default().to_owned();
    let record = RequestRecord {
        at: shared.clock.elapsed(),
        time: shared.clock.now(),
        verb,
        resource: target.map_or_else(|| parts.uri.path().to_owned(), Target::resource),
        namespace: text(Target::namespace),
        name: text(Target::name),
        path,
        user: user.name.clone(),
        code,
        fault: fault.map(str::to_owned),
    };
    tracing::debug!(
        verb,
        path = record.path,
        user = record.user,
        code,
        fault,
        "request"
    );
    shared.oracle().record(record);
}

fn error_response(
    shared: &ServerState,
    parts: &Parts,
    user: &str,
    error: &StatusError,
) -> Response<Body> {
    record(shared, parts, None, &User::new(user, &[]), error.code, None);
    respond::error(
        error,
        ResponseFormat::of_error(header(parts, header::ACCEPT)),
    )
}

fn header(parts: &Parts, name: header::HeaderName) -> &str {
    let value = parts.headers.get(name);
    value
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}

/// Authenticates by token or certificate; otherwise the user is anonymous.
fn user(shared: &ServerState, client: &Client, parts: &Parts) -> Result<User, StatusError> {
    let bearer = header(parts, header::AUTHORIZATION).split_once(' ');
    if let Some((_, token)) = bearer.filter(|(kind, _)| kind.eq_ignore_ascii_case("bearer")) {
        let audiences = shared.config().audiences;
        return match authentication::of_token(shared, token.trim(), &audiences) {
            Ok(found) => Ok(found.user),
            Err(why) => {
                tracing::debug!(why, "Rejected a token");
                Err(StatusError::unauthorized())
            }
        };
    }
    if let Some(user) = &client.certified {
        return Ok(user.clone());
    }
    if shared.config().authenticate {
        Ok(User::anonymous())
    } else {
        Ok(User::admin().authenticated())
    }
}

fn server_info(route: &Route, parts: &Parts) -> Response<Body> {
    if ![Method::GET, Method::HEAD].contains(&parts.method) {
        return respond::error(&StatusError::method_not_allowed(), ResponseFormat::Object);
    }
    let document = match route {
        Route::Health => return respond::text(StatusCode::OK, "ok"),
        // An empty OpenAPI document as protobuf, with which kubectl validates nothing.
        Route::OpenApi => {
            let kind = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
            let kind = http::HeaderValue::from_static(kind);
            return respond::respond(StatusCode::OK, kind, respond::whole(Bytes::new()));
        }
        Route::CoreVersions => Ok(discovery::core_versions()),
        Route::Groups => Ok(discovery::groups()),
        Route::Group(name) => discovery::one_group(name),
        Route::Resources { group, version } => discovery::resources(group, version),
        Route::Version => Ok(discovery::version()),
        Route::Objects(_) => Err(StatusError::unknown_path()),
    };
    match document {
        Ok(document) => respond::json(StatusCode::OK, &document),
        Err(error) => respond::error(&error, ResponseFormat::Object),
    }
}
