//! The client: both CRI services of a runtime behind one socket.

/// Implements one of the traits, call by call, with the generated client of the same service. The
/// part in braces at the end is written by hand.
macro_rules! rpcs {
    (
        { $($method:ident $request:ident $response:ident;)* } { $($lists:tt)* }
        $trait:ident through $client:ident { $($by_hand:tt)* }
    ) => {
        #[async_trait::async_trait]
        impl rubelet_cri::$trait for super::CriClient {
            $(async fn $method(&self, request: v1::$request) -> CriResult<v1::$response> {
                let mut client = self.$client.clone();
                self.unary(request, |request| async move { client.$method(request).await }).await
            })*
            $($by_hand)*
        }
    };
}

mod detached;
mod events;
mod images;
mod lists;
mod runtime;

use std::{future::Future, path::Path, sync::Arc, time::Duration};

use detached::DetachedCalls;
use lists::Unary;
use rubelet_cri::{
    Call, CriError, CriErrorKind, CriResult, Timeouts,
    v1::{image_service_client::ImageServiceClient, runtime_service_client::RuntimeServiceClient},
};
use tokio::time::Instant;
use tonic::{Request, Response, Status};

use crate::{
    CallObserver, EndpointError, IgnoreCalls, MAX_MESSAGE_SIZE,
    channel::{Channel, Windows},
    endpoint::socket_path,
    loader,
    status::error_from,
};

/// The name that grpc-go, and so every runtime in Go, expects for a unix socket.
const ORIGIN: &str = "http://localhost";

/// A runtime behind a unix socket. Implements both traits of `rubelet-cri`; clones share one
/// connection, and each event stream has its own.
///
/// Each call has a deadline and, if it cannot connect, fails at once with the kind `Unavailable`.
/// The next call reopens a lost connection. Dropping a call's future cancels the RPC in the
/// runtime, and so does its deadline, unless it [changes](Call::changes) an object: such a call
/// continues without its caller, up to twice its deadline, and its result is reported to the
/// [observer](CallObserver::answered_late). Dropping an event stream closes its connection;
/// dropping the last clone of the client cancels everything.
///
/// Full lists are received in pieces from a runtime that supports `StreamPodSandboxes` and
/// `StreamContainers`, so that they may be larger than one message. Support is tested once per
/// connection.
#[derive(Clone)]
pub struct CriClient {
    channel: Channel,
    timeouts: Timeouts,
    observer: Arc<dyn CallObserver>,
    runtime: RuntimeServiceClient<Channel>,
    images: ImageServiceClient<Channel>,
    unary_sandboxes: Arc<Unary>,
    unary_containers: Arc<Unary>,
    detached: Arc<DetachedCalls>,
}

impl CriClient {
    /// A client for the runtime at `endpoint`: `unix:///path`, `unix:/path` or an absolute path.
    /// Connects with the first call, not now.
    ///
    /// # Errors
    /// The endpoint is not a unix socket.
    pub fn connect_lazy(endpoint: &str, timeouts: Timeouts) -> Result<Self, EndpointError> {
        let channel = Channel::new(socket_path(endpoint)?, Windows::CALLS);
        let origin = http::Uri::from_static(ORIGIN);
        Ok(Self {
            runtime: RuntimeServiceClient::with_origin(channel.clone(), origin.clone())
                .max_decoding_message_size(MAX_MESSAGE_SIZE),
            images: ImageServiceClient::with_origin(channel.clone(), origin)
                .max_decoding_message_size(MAX_MESSAGE_SIZE),
            channel,
            timeouts,
            observer: Arc::new(IgnoreCalls),
            unary_sandboxes: Arc::default(),
            unary_containers: Arc::default(),
            detached: Arc::default(),
        })
    }

    /// The same client, with an observer of each call's end. Event streams are not calls; a list in
    /// pieces is a call of the streaming RPC.
    #[must_use]
    pub fn with_observer(self, observer: Arc<dyn CallObserver>) -> Self {
        Self { observer, ..self }
    }

    /// Makes the embedded runtime load all images of a file on its machine: an OCI layout (a
    /// directory or a tar archive) or a docker archive. Returns their names. No deadline: the time
    /// depends on the file's size.
    ///
    /// # Errors
    /// `Unimplemented` from every other runtime.
    pub async fn load_images(&self, path: &Path) -> CriResult<Vec<String>> {
        let origin = http::Uri::from_static(ORIGIN);
        let path = path.to_string_lossy().into_owned();
        loader::ask(self.channel.clone(), origin, path).await
    }

    /// The runtime's socket.
    #[must_use]
    pub fn socket(&self) -> &Path {
        self.channel.socket()
    }

    async fn unary<C, F>(
        &self,
        message: C,
        send: impl FnOnce(Request<C>) -> F,
    ) -> CriResult<C::Response>
    where
        C: Call,
        F: Future<Output = Result<Response<C::Response>, Status>> + Send + 'static,
    {
        let deadline = message.deadline(&self.timeouts);
        if let (Some(changed), Some(limit)) = (message.changes(), deadline) {
            return self.call_detachable(changed, limit, message, send).await;
        }
        let answer = |request| async move { send(request).await.map(Response::into_inner) };
        self.limited(C::NAME, deadline, message, answer).await
    }

    /// One RPC from its request to the end of its response, observed, and canceled at `deadline`.
    async fn limited<M, R, F>(
        &self,
        call: &'static str,
        deadline: Option<Duration>,
        message: M,
        send: impl FnOnce(Request<M>) -> F,
    ) -> CriResult<R>
    where
        F: Future<Output = Result<R, Status>>,
    {
        let ended = CallEnd::new(call, self.observer.as_ref());
        let mut request = Request::new(message);
        if let Some(limit) = deadline {
            // The runtime also aborts the call, even if the cancellation never reaches it.
            request.set_timeout(limit);
        }
        let answer = match deadline {
            None => send(request).await,
            Some(limit) => match tokio::time::timeout(limit, send(request)).await {
                Ok(answer) => answer,
                Err(_) => {
                    let kind = CriErrorKind::DeadlineExceeded(limit);
                    return ended.with(Err(CriError::new(call, kind, "")));
                }
            },
        };
        ended.with(answer.map_err(|status| error_from(call, &status, deadline)))
    }
}

/// Notifies the observer of a call's end, also when its future is dropped.
struct CallEnd<'a> {
    call: &'static str,
    start: Instant,
    outcome: Result<(), CriErrorKind>,
    observer: &'a dyn CallObserver,
}

impl<'a> CallEnd<'a> {
    fn new(call: &'static str, observer: &'a dyn CallObserver) -> Self {
        Self {
            call,
            start: Instant::now(),
            outcome: Err(CriErrorKind::Canceled),
            observer,
        }
    }

    fn with<R>(mut self, result: CriResult<R>) -> CriResult<R> {
        self.outcome = result.as_ref().map(|_| ()).map_err(|error| error.kind);
        result
    }
}

impl Drop for CallEnd<'_> {
    fn drop(&mut self) {
        self.observer
            .call_ended(self.call, self.start.elapsed(), self.outcome);
    }
}
