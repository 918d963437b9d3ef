//! The connection to the agent's socket.

use std::{
    convert::Infallible,
    fs, io,
    os::unix::fs::{FileTypeExt as _, MetadataExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, anyhow};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Collected, Full, combinators::UnsyncBoxBody};
use hyper::{body::Incoming, client::conn::http1, upgrade::Upgraded};
use hyper_util::rt::TokioIo;
use rubelet_server::{Resource, group};
use serde_json::Value;
use tokio::net::UnixStream;

use super::{failure::CommandError, url::Url};

/// Timeout for the head of a response.
const ANSWER_DEADLINE: Duration = Duration::from_secs(15);

/// The body of a request.
pub(super) type RequestBody = UnsyncBoxBody<Bytes, Infallible>;

/// The running agent.
pub(super) struct Agent {
    socket: PathBuf,
}

/// A request.
pub(super) struct Call<'a> {
    pub(super) method: Method,
    pub(super) url: &'a Url,
    /// Media type and body.
    pub(super) body: Option<(&'static str, Value)>,
}

impl<'a> Call<'a> {
    fn get(url: &'a Url) -> Self {
        Self {
            method: Method::GET,
            url,
            body: None,
        }
    }
}

/// Why a request failed.
pub(super) enum CallError {
    /// No agent listens on the socket.
    Away(anyhow::Error),
    /// The agent answered with an error; its status code is the first field.
    Refused(StatusCode, anyhow::Error),
    /// The connection broke, or the response is invalid.
    Broken(anyhow::Error),
}

impl From<CallError> for CommandError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Away(error) | CallError::Refused(_, error) | CallError::Broken(error) => {
                Self::Error(error)
            }
        }
    }
}

impl Agent {
    pub(super) fn new(socket: PathBuf) -> Self {
        Self { socket }
    }

    /// Fetches a JSON document.
    pub(super) async fn get(&self, url: &Url) -> Result<Value, CallError> {
        self.call(Call::get(url)).await
    }

    /// Sends a request whose response is a JSON document.
    pub(super) async fn call(&self, call: Call<'_>) -> Result<Value, CallError> {
        document(self.answer(call).await?.0).await
    }

    /// Fetches all objects of a resource, or of one namespace, and the resource version of the
    /// list.
    pub(super) async fn list(&self, url: &Url) -> Result<Objects, CallError> {
        let mut list = self.get(url).await?;
        let version = list["metadata"]["resourceVersion"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        match list["items"].take() {
            Value::Array(items) => Ok(Objects { items, version }),
            _ => Err(CallError::Broken(anyhow!(
                "the agent's response is not a list"
            ))),
        }
    }

    /// Fetches a plain-text report, and whether it reports success.
    pub(super) async fn report(&self, url: &Url) -> Result<(bool, String), CallError> {
        let response = tokio::time::timeout(ANSWER_DEADLINE, self.send(Call::get(url)))
            .await
            .map_err(|_| self.silent())??;
        let well = response.status().is_success();
        let body = response.into_body().collect().await;
        let bytes = body
            .context("the agent closed the connection before the end of its response")
            .map_err(CallError::Broken)?;
        let text = String::from_utf8_lossy(&bytes.to_bytes()).into_owned();
        Ok((well, text))
    }

    fn silent(&self) -> CallError {
        let (seconds, path) = (ANSWER_DEADLINE.as_secs(), self.socket.display());
        CallError::Broken(anyhow!(
            "the agent on {path} did not respond within {seconds} s"
        ))
    }

    /// Sends a request and waits for the head of the response.
    pub(super) async fn open(&self, url: &Url) -> Result<ResponseStream, CallError> {
        self.answer(Call::get(url)).await
    }

    /// Requests a session: the upgraded connection, and the headers of the response.
    pub(super) async fn upgrade(
        &self,
        url: &Url,
        headers: HeaderMap,
    ) -> Result<(TokioIo<Upgraded>, HeaderMap), CallError> {
        let call = Call {
            method: Method::POST,
            url,
            body: None,
        };
        let answer = self.send_with(call, headers, None);
        let answer = tokio::time::timeout(ANSWER_DEADLINE, answer).await;
        let response = answer.map_err(|_| self.silent())??;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Err(refused(response).await);
        }
        let answered = response.headers().clone();
        let upgraded = hyper::upgrade::on(response).await;
        let upgraded = upgraded
            .context("the agent closed the connection before the session began")
            .map_err(CallError::Broken)?;
        Ok((TokioIo::new(upgraded), answered))
    }

    /// Sends a body of any length. The response, a JSON document, has no timeout.
    pub(super) async fn upload(
        &self,
        method: Method,
        url: &Url,
        body: RequestBody,
    ) -> Result<Value, CallError> {
        let call = Call {
            method,
            url,
            body: None,
        };
        let response = self.send_with(call, HeaderMap::new(), Some(body)).await?;
        if !response.status().is_success() {
            return Err(refused(response).await);
        }
        document(response.into_body()).await
    }

    /// Sends a request whose body stays open, and waits for the head of the response.
    pub(super) async fn exchange(
        &self,
        url: &Url,
        body: RequestBody,
    ) -> Result<ResponseStream, CallError> {
        let call = Call {
            method: Method::POST,
            url,
            body: None,
        };
        self.answer_with(call, Some(body)).await
    }

    async fn answer(&self, call: Call<'_>) -> Result<ResponseStream, CallError> {
        self.answer_with(call, None).await
    }

    async fn answer_with(
        &self,
        call: Call<'_>,
        upload: Option<RequestBody>,
    ) -> Result<ResponseStream, CallError> {
        let answer = self.send_with(call, HeaderMap::new(), upload);
        let answer = tokio::time::timeout(ANSWER_DEADLINE, answer).await;
        let response = answer.map_err(|_| self.silent())??;
        let code = response.status();
        if code.is_success() {
            return Ok(ResponseStream(response.into_body()));
        }
        Err(refused(response).await)
    }

    async fn send(&self, call: Call<'_>) -> Result<Response<Incoming>, CallError> {
        self.send_with(call, HeaderMap::new(), None).await
    }

    async fn send_with(
        &self,
        call: Call<'_>,
        headers: HeaderMap,
        upload: Option<RequestBody>,
    ) -> Result<Response<Incoming>, CallError> {
        let stream = UnixStream::connect(&self.socket).await;
        let stream = stream.map_err(|error| CallError::Away(self.unreachable(error)))?;
        let broken = |error| {
            let path = self.socket.display();
            let context = format!("invalid response from the agent on {path}");
            CallError::Broken(anyhow::Error::from(error).context(context))
        };
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(broken)?;
        // The response reports its error as well.
        tokio::spawn(async move { connection.with_upgrades().await.ok() });
        let mut request = Request::builder()
            .method(call.method)
            .uri(call.url.as_str())
            .header(header::HOST, "rubelet")
            .header(header::ACCEPT, "application/json");
        if let Some((kind, _)) = &call.body {
            request = request.header(header::CONTENT_TYPE, *kind);
        }
        for (name, value) in &headers {
            request = request.header(name, value);
        }
        let body = call
            .body
            .map_or_else(String::new, |(_, body)| body.to_string());
        let body = upload.unwrap_or_else(|| Full::new(Bytes::from(body)).boxed_unsync());
        let request = request
            .body(body)
            .context("the request cannot be written")
            .map_err(CallError::Broken)?;
        sender.send_request(request).await.map_err(broken)
    }

    fn unreachable(&self, error: io::Error) -> anyhow::Error {
        let path = self.socket.display();
        match error.kind() {
            io::ErrorKind::NotFound => anyhow!(
                "no agent is running: there is no socket {path}; see `systemctl status rubelet`, \
                 start the agent with `rubelet run`, or name its socket with --socket"
            ),
            io::ErrorKind::ConnectionRefused if !is_socket(&self.socket) => {
                anyhow!("{path} is not a socket; give the agent's with --socket")
            }
            io::ErrorKind::ConnectionRefused => anyhow!(
                "no agent is running: nothing listens on {path}; see `systemctl status rubelet`, or \
                 start the agent with `rubelet run`"
            ),
            io::ErrorKind::PermissionDenied => anyhow!(
                "permission denied: {path} is for root and {}; use sudo, or have yourself added to \
                 the group",
                owner(&self.socket)
            ),
            _ => anyhow::Error::from(error).context(format!("cannot connect to {path}")),
        }
    }
}

fn is_socket(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.file_type().is_socket())
}

/// The group that may use the socket, as far as that is known.
fn owner(socket: &Path) -> String {
    let Ok(metadata) = fs::metadata(socket) else {
        return "its group".to_owned();
    };
    let groups = fs::read_to_string("/etc/group").unwrap_or_default();
    match group::name_of(&groups, metadata.gid()) {
        Some(name) => format!("the group {name:?}"),
        None => format!("the group {}", metadata.gid()),
    }
}

/// A complete JSON document.
async fn document(body: Incoming) -> Result<Value, CallError> {
    let body = body.collect().await;
    let bytes = body
        .context("the agent closed the connection before the end of its response")
        .map_err(CallError::Broken)?;
    serde_json::from_slice(&bytes.to_bytes())
        .context("the agent's response is not JSON")
        .map_err(CallError::Broken)
}

/// The error in a response.
async fn refused(response: Response<Incoming>) -> CallError {
    let code = response.status();
    let body = response.into_body().collect().await;
    let bytes = body.map(Collected::to_bytes).unwrap_or_default();
    CallError::Refused(code, anyhow!("{}", refusal(code, &bytes)))
}

/// The message of an error response: a Status's message, or plain text.
fn refusal(code: StatusCode, body: &[u8]) -> String {
    let status: Value = serde_json::from_slice(body).unwrap_or_default();
    match status["message"].as_str() {
        Some(message) if !message.is_empty() => message.to_owned(),
        _ => {
            let text = String::from_utf8_lossy(body);
            format!("the agent answered {code}: {}", text.trim())
        }
    }
}

/// A list.
pub(super) struct Objects {
    /// The objects in the agent's order: by namespace and name.
    pub(super) items: Vec<Value>,
    /// `metadata.resourceVersion` of the list.
    pub(super) version: String,
}

/// A response body in progress.
pub(super) struct ResponseStream(Incoming);

impl ResponseStream {
    /// The next bytes; `None` at the end.
    pub(super) async fn next(&mut self) -> Option<anyhow::Result<Bytes>> {
        loop {
            match self.0.frame().await? {
                Ok(frame) => {
                    if let Ok(data) = frame.into_data() {
                        return Some(Ok(data));
                    }
                }
                Err(error) => return Some(Err(error.into())),
            }
        }
    }
}

/// The request for all objects of a resource, or of one namespace.
pub(super) fn collection(resource: Resource, namespace: Option<&str>) -> Url {
    Url::new(&resource.path(namespace))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forbidden_socket_names_the_group_that_may_use_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("rubelet.sock");
        fs::write(&path, "").expect("a file");
        let gid = fs::metadata(&path).expect("a file").gid();
        let groups = fs::read_to_string("/etc/group").expect("groups");
        let group = group::name_of(&groups, gid).expect("the test's group has a name");
        let denied = || io::Error::from(io::ErrorKind::PermissionDenied);
        let error = Agent::new(path.clone()).unreachable(denied()).to_string();
        let path = path.display();
        assert!(
            error.starts_with(&format!(
                "permission denied: {path} is for root and the group {group:?};"
            )),
            "{error}"
        );
        let hidden = Agent::new("/nowhere/rubelet.sock".into());
        let error = hidden.unreachable(denied()).to_string();
        assert!(error.contains("root and its group"), "{error}");
    }
}
