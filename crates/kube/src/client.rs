//! Requests to the API server.

mod send;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderValue, Method};
use parking_lot::Mutex;
use rubelet_yaml::{SkippedField, read_json};
use serde::{Serialize, de::DeserializeOwned};
use tokio::{sync::watch, time::Instant};

use crate::{
    config::ClientConfig,
    credentials::{CredentialError, Credentials},
    error::{ApiError, BodyError},
    limit::TokenBucket,
    observer::RequestObserver,
    options::ClientOptions,
    response,
    server_url::ServerUrl,
    transport::{RequestKind, SetupError, Transport},
    unreadable::{Retention, UnreadableObjects, object_of_path},
    watch::meta,
};
use send::ApiRequest;

/// Why a client can't be made.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server, its certificate authorities or the proxy.
    #[error("cannot set up the connection to the API server {server}: {problem}")]
    Setup {
        /// The server.
        server: String,
        /// The error.
        problem: String,
    },
    /// The client certificate, token or password.
    #[error("the credentials for the API server cannot be used")]
    Credentials(#[source] CredentialError),
    /// The user agent.
    #[error("invalid character in the user agent")]
    UserAgent,
}

/// The type of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchKind {
    /// Lists are merged by the keys that their types name.
    StrategicMerge,
    /// RFC 7396.
    Merge,
    /// RFC 6902.
    Json,
}

impl PatchKind {
    fn content_type(self) -> &'static str {
        match self {
            Self::StrategicMerge => "application/strategic-merge-patch+json",
            Self::Merge => "application/merge-patch+json",
            Self::Json => "application/json-patch+json",
        }
    }
}

/// The way to one API server. Clones share everything.
///
/// Paths are those of the API with their query, such as `/api/v1/nodes/a`. Refusals with
/// `Retry-After` are tried again within the request timeout; a request that may have been carried
/// out is tried again only where that does no harm.
#[derive(Clone)]
pub struct Client {
    shared: Arc<ClientParts>,
    limits: Arc<Limits>,
}

struct ClientParts {
    transport: Transport,
    credentials: Credentials,
    observer: Arc<dyn RequestObserver>,
    user_agent: HeaderValue,
    /// Watches can begin with the current objects; until the server rejects that.
    streaming_lists: AtomicBool,
    unreadable: UnreadableObjects,
    seed: AtomicU64,
}

struct Limits {
    bucket: Mutex<TokenBucket>,
    timeout: Duration,
}

/// Pages of lists are large: they have at least this time.
const PAGE_TIMEOUT: Duration = Duration::from_secs(60);

impl Client {
    /// A client that connects when it is first used.
    ///
    /// # Errors
    /// A file of the configuration can't be read, or something in it can't be used.
    pub fn new(config: ClientConfig, options: ClientOptions) -> Result<Self, ClientError> {
        let clock = Arc::clone(&options.clock);
        let unreadable = UnreadableObjects::new(Arc::clone(&options.clock));
        let credentials = Credentials::new(
            config.credential.clone(),
            &config.identity,
            clock,
            options.before_plugin,
        )
        .map_err(ClientError::Credentials)?;
        let server = config.server.to_string();
        let transport = Transport::new(config, credentials.identity().clone()).map_err(
            |error: SetupError| ClientError::Setup {
                server,
                problem: rubelet_base::ErrorChain(&error).to_string(),
            },
        )?;
        Ok(Self {
            shared: Arc::new(ClientParts {
                transport,
                credentials,
                observer: options.observer,
                user_agent: HeaderValue::try_from(options.user_agent)
                    .map_err(|_| ClientError::UserAgent)?,
                streaming_lists: AtomicBool::new(true),
                unreadable,
                seed: AtomicU64::new(options.seed),
            }),
            limits: Limits::new(options.qps, options.burst, options.request_timeout),
        })
    }

    /// The same connections and credentials with a rate limit and timeout of its own: for leases,
    /// which must not wait behind pods, and for events, which must not hold up anything.
    #[must_use]
    pub fn with_limits(&self, qps: f32, burst: u32, request_timeout: Duration) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            limits: Limits::new(qps, burst, request_timeout),
        }
    }

    /// The server.
    #[must_use]
    pub fn server(&self) -> &ServerUrl {
        self.shared.transport.server()
    }

    /// Reads an object.
    ///
    /// # Errors
    /// See [`ApiError`].
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ApiError> {
        self.decode(
            path,
            &self.exchange(ApiRequest::new(Method::GET, path)).await?,
        )
    }

    /// Creates an object: POST to its collection, or to a subresource such as `token`.
    ///
    /// # Errors
    /// See [`ApiError`].
    pub async fn create<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ApiError> {
        let call =
            ApiRequest::new(Method::POST, path).with_body("application/json", encode(path, body)?);
        self.decode(path, &self.exchange(call).await?)
    }

    /// Replaces an object: PUT.
    ///
    /// # Errors
    /// See [`ApiError`].
    pub async fn replace<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ApiError> {
        let call =
            ApiRequest::new(Method::PUT, path).with_body("application/json", encode(path, body)?);
        self.decode(path, &self.exchange(call).await?)
    }

    /// Changes a part of an object.
    ///
    /// # Errors
    /// See [`ApiError`].
    pub async fn patch<T: DeserializeOwned>(
        &self,
        path: &str,
        kind: PatchKind,
        body: &impl Serialize,
    ) -> Result<T, ApiError> {
        let body = encode(path, body)?;
        let call = ApiRequest::new(Method::PATCH, path).with_body(kind.content_type(), body);
        self.decode(path, &self.exchange(call).await?)
    }

    /// Deletes an object. `options` are `DeleteOptions`: grace period, preconditions.
    ///
    /// # Errors
    /// See [`ApiError`].
    pub async fn delete(&self, path: &str, options: &serde_json::Value) -> Result<(), ApiError> {
        let body = encode(path, options)?;
        let call = ApiRequest::new(Method::DELETE, path).with_body("application/json", body);
        self.exchange(call).await.map(drop)
    }

    /// Makes new connections for what comes, as is necessary after the client certificate was
    /// replaced. Requests that are under way finish; watches begin again where they were.
    pub fn reload(&self) {
        self.shared.transport.reload();
    }

    /// Fields of the API server's objects that can't be decoded.
    #[must_use]
    pub fn unreadable(&self) -> &UnreadableObjects {
        &self.shared.unreadable
    }

    /// An answer as leniently as Go clients read it; what can't be read of it is left out.
    fn decode<T: DeserializeOwned>(&self, path: &str, bytes: &[u8]) -> Result<T, ApiError> {
        let unreadable = &self.shared.unreadable;
        let reader = std::any::type_name::<T>();
        let object = || {
            let mut object = object_of_path(path);
            if object.name.is_empty() {
                object.name = meta(bytes).name;
            }
            object
        };
        match read_json::<T>(bytes) {
            Ok(read) => {
                if !read.left_out.is_empty() {
                    unreadable.put(reader, &object(), read.left_out, Retention::Temporary);
                } else if !unreadable.is_empty() {
                    unreadable.clear(reader, &object());
                }
                Ok(read.value)
            }
            Err(error) => {
                let whole = SkippedField {
                    field: String::new(),
                    problem: error.to_string(),
                };
                unreadable.put(reader, &object(), vec![whole], Retention::Temporary);
                Err(ApiError::Body(BodyError::Json(error)))
            }
        }
    }

    async fn exchange(&self, call: ApiRequest<'_>) -> Result<Vec<u8>, ApiError> {
        let deadline = Instant::now() + self.limits.timeout;
        let answer = Box::pin(self.send(&call, RequestKind::Request, deadline)).await?;
        response::whole(answer.into_body(), response::MAX_OBJECT, deadline).await
    }

    /// A page of a list.
    pub(crate) async fn page(&self, path: &str) -> Result<Vec<u8>, ApiError> {
        let deadline = Instant::now() + self.limits.timeout.max(PAGE_TIMEOUT);
        let call = ApiRequest::new(Method::GET, path);
        let answer = self.send(&call, RequestKind::Request, deadline).await?;
        response::whole(answer.into_body(), response::MAX_PAGE, deadline).await
    }

    /// The body of a watch, whose head must come within `patience`.
    pub(crate) async fn stream(
        &self,
        path: &str,
        patience: Duration,
    ) -> Result<crate::transport::ResponseBody, ApiError> {
        let call = ApiRequest::new(Method::GET, path);
        let deadline = Instant::now() + patience;
        let answer = self.send(&call, RequestKind::Watch, deadline).await?;
        Ok(answer.into_body())
    }

    /// Timeout of a request.
    pub(crate) fn timeout(&self) -> Duration {
        self.limits.timeout
    }

    /// The next watch uses a new connection; those that are open stay where they are.
    pub(crate) fn renew_watch_connection(&self) {
        self.shared.transport.renew_watch_connection();
    }

    pub(crate) fn epoch(&self) -> watch::Receiver<u64> {
        self.shared.transport.epoch()
    }

    pub(crate) fn has_streaming_lists(&self) -> bool {
        self.shared.streaming_lists.load(Ordering::Relaxed)
    }

    pub(crate) fn without_streaming_lists(&self) {
        self.shared.streaming_lists.store(false, Ordering::Relaxed);
    }

    #[cfg(test)]
    pub(crate) fn credentials(&self) -> &Credentials {
        &self.shared.credentials
    }

    /// A seed that no other part of this client has.
    pub(crate) fn seed(&self) -> u64 {
        self.shared.seed.fetch_add(0x9e37_79b9, Ordering::Relaxed)
    }
}

impl Limits {
    fn new(qps: f32, burst: u32, timeout: Duration) -> Arc<Self> {
        Arc::new(Self {
            bucket: Mutex::new(TokenBucket::new(qps, burst)),
            timeout,
        })
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({})", self.server())
    }
}

fn encode(path: &str, body: &impl Serialize) -> Result<Bytes, ApiError> {
    let encoded = serde_json::to_vec(body).map_err(|error| ApiError::Request {
        path: path.to_owned(),
        problem: error.to_string(),
    })?;
    Ok(encoded.into())
}

#[cfg(test)]
mod tests;
