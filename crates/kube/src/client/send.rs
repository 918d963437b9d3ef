//! One request, tried again where that is right.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::Client;
use crate::{
    error::ApiError,
    response,
    transport::{OutgoingRequest, RequestKind, ResponseBody, SendError, TransportError},
};

/// Requests that the server answers with `Retry-After` more often than this are not retried again.
const MAX_RETRIES_AFTER: u32 = 10;

/// A request as the API sees it.
pub(super) struct ApiRequest<'a> {
    method: Method,
    path: &'a str,
    content_type: Option<&'static str>,
    body: Bytes,
}

impl<'a> ApiRequest<'a> {
    pub(super) fn new(method: Method, path: &'a str) -> Self {
        Self {
            method,
            path,
            content_type: None,
            body: Bytes::new(),
        }
    }

    pub(super) fn with_body(self, content_type: &'static str, body: Bytes) -> Self {
        Self {
            content_type: Some(content_type),
            body,
            ..self
        }
    }

    fn bad(&self, problem: &str) -> ApiError {
        ApiError::Request {
            path: self.path.to_owned(),
            problem: problem.to_owned(),
        }
    }
}

impl Client {
    /// Sends a request, and gives back the answer if it is a success.
    pub(super) async fn send(
        &self,
        call: &ApiRequest<'_>,
        purpose: RequestKind,
        deadline: Instant,
    ) -> Result<Response<ResponseBody>, ApiError> {
        if !call.path.starts_with('/') {
            return Err(call.bad("a path begins with a slash"));
        }
        let mut outgoing = OutgoingRequest {
            method: call.method.clone(),
            path: call.path.to_owned(),
            headers: self.headers(call),
            body: call.body.clone(),
        };
        let (mut refusals, mut lost, mut refreshed) = (0, false, false);
        loop {
            self.wait_for_rate(deadline).await?;
            let authorization = timeout_at(deadline, self.shared.credentials.current())
                .await
                .map_err(|_| ApiError::TimedOut)?
                .map_err(ApiError::Credentials)?;
            if authorization.identity_changed {
                self.reload();
            }
            match authorization.header {
                Some(value) => outgoing.headers.insert(header::AUTHORIZATION, value),
                None => outgoing.headers.remove(header::AUTHORIZATION),
            };
            let answer = match self.send_once(&outgoing, purpose, deadline).await {
                Ok(answer) => answer,
                Err(SendError::Path) => return Err(call.bad("not a path")),
                Err(SendError::TimedOut) => return Err(ApiError::TimedOut),
                // Reading twice does no harm, and the connection may have been a stale one.
                Err(SendError::Failed {
                    error: TransportError::Lost(_),
                    ..
                }) if call.method == Method::GET && !lost => {
                    lost = true;
                    continue;
                }
                Err(SendError::Failed { error, .. }) => return Err(ApiError::Unreachable(error)),
            };
            if answer.status().is_success() {
                return Ok(answer);
            }
            if answer.status() == StatusCode::UNAUTHORIZED && !refreshed {
                refreshed = true;
                let other = self.shared.credentials.refused(authorization.generation);
                if timeout_at(deadline, other).await == Ok(true) {
                    continue;
                }
            }
            let error = refusal(answer, deadline).await;
            match wait_before_retry(&error) {
                Some(wait) if refusals < MAX_RETRIES_AFTER && Instant::now() + wait < deadline => {
                    refusals += 1;
                    tracing::debug!(%error, path = call.path, ?wait, "The API server asks to retry later");
                    sleep(wait).await;
                }
                _ => return Err(error),
            }
        }
    }

    async fn send_once(
        &self,
        outgoing: &OutgoingRequest,
        purpose: RequestKind,
        deadline: Instant,
    ) -> Result<Response<ResponseBody>, SendError> {
        let began = Instant::now();
        let sent = self
            .shared
            .transport
            .send(outgoing, purpose, deadline)
            .await;
        let code = sent.as_ref().ok().map(|answer| answer.status().as_u16());
        let host = self.shared.transport.server().authority();
        let method = method_name(&outgoing.method);
        self.shared
            .observer
            .request_ended(method, host, code, began.elapsed());
        sent
    }

    fn headers(&self, call: &ApiRequest<'_>) -> HeaderMap {
        let mut headers = HeaderMap::with_capacity(4);
        headers.insert(header::USER_AGENT, self.shared.user_agent.clone());
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        if let Some(content_type) = call.content_type {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        }
        headers
    }

    async fn wait_for_rate(&self, deadline: Instant) -> Result<(), ApiError> {
        let now = Instant::now();
        let wait = self.limits.bucket.lock().take(now);
        if wait.is_zero() {
            return Ok(());
        }
        if now + wait >= deadline {
            sleep_until(deadline).await;
            return Err(ApiError::TimedOut);
        }
        sleep(wait).await;
        Ok(())
    }
}

async fn refusal(answer: Response<ResponseBody>, deadline: Instant) -> ApiError {
    let code = answer.status().as_u16();
    let retry_after = response::retry_after(answer.headers());
    let body = response::start(answer.into_body(), deadline).await;
    ApiError::from_answer(code, retry_after, &body)
}

/// Overload and restarts: the answer has the time to wait, and the request was not carried out.
fn wait_before_retry(error: &ApiError) -> Option<Duration> {
    let code = error.code()?;
    error.retry_after().filter(|_| code == 429 || code >= 500)
}

fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        _ => "DELETE",
    }
}
