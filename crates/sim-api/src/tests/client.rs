//! A client with full control over requests.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, header};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use serde_json::Value;

use crate::SimApi;

/// One connection.
pub(super) struct TestClient {
    sender: http1::SendRequest<Full<Bytes>>,
    token: Option<String>,
    accept: &'static str,
    agent: &'static str,
}

const STRATEGIC: &str = "application/strategic-merge-patch+json";

impl TestClient {
    pub(super) async fn new(api: &SimApi) -> Self {
        let io = TokioIo::new(api.connect());
        let (sender, connection) = http1::handshake(io).await.unwrap();
        tokio::spawn(connection);
        Self {
            sender,
            token: None,
            accept: "application/json",
            agent: "test",
        }
    }

    pub(super) fn with_token(mut self, token: &str) -> Self {
        self.token = Some(token.to_owned());
        self
    }

    pub(super) fn accepting(mut self, accept: &'static str) -> Self {
        self.accept = accept;
        self
    }

    pub(super) fn named(mut self, agent: &'static str) -> Self {
        self.agent = agent;
        self
    }

    pub(super) async fn try_send(
        &mut self,
        method: Method,
        path: &str,
        media_type: &str,
        body: String,
    ) -> hyper::Result<Response<Incoming>> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, "sim")
            .header(header::ACCEPT, self.accept)
            .header(header::USER_AGENT, self.agent)
            .header(header::CONTENT_TYPE, media_type);
        if let Some(token) = &self.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        let request = request.body(Full::new(Bytes::from(body))).unwrap();
        self.sender.ready().await?;
        self.sender.send_request(request).await
    }

    pub(super) async fn send(
        &mut self,
        method: Method,
        path: &str,
        media_type: &str,
        body: String,
    ) -> (u16, Value) {
        let response = self.try_send(method, path, media_type, body).await.unwrap();
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (code, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
    }

    pub(super) async fn get(&mut self, path: &str) -> (u16, Value) {
        self.send(Method::GET, path, "", String::new()).await
    }

    pub(super) async fn post(&mut self, path: &str, body: &Value) -> (u16, Value) {
        self.send(Method::POST, path, "application/json", body.to_string())
            .await
    }

    pub(super) async fn put(&mut self, path: &str, body: &Value) -> (u16, Value) {
        self.send(Method::PUT, path, "application/json", body.to_string())
            .await
    }

    pub(super) async fn patch(&mut self, path: &str, body: &Value) -> (u16, Value) {
        self.send(Method::PATCH, path, STRATEGIC, body.to_string())
            .await
    }

    pub(super) async fn delete(&mut self, path: &str, options: &Value) -> (u16, Value) {
        let body = match options {
            Value::Null => String::new(),
            options => options.to_string(),
        };
        self.send(Method::DELETE, path, "application/json", body)
            .await
    }

    /// Starts a watch, which consumes the connection.
    pub(super) async fn watch(mut self, path: &str) -> Lines {
        let response = self
            .try_send(Method::GET, path, "", String::new())
            .await
            .unwrap();
        assert_eq!(response.status(), 200);
        Lines {
            body: response.into_body(),
            read: Vec::new(),
            _client: self,
        }
    }
}

/// The events of a watch.
pub(super) struct Lines {
    body: Incoming,
    read: Vec<u8>,
    _client: TestClient,
}

impl Lines {
    /// The next event; `None` at the end.
    pub(super) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let frame = self.body.frame().await?.unwrap();
            self.read.extend(frame.into_data().unwrap());
        }
    }

    /// Type and name of the next event.
    pub(super) async fn next_type_and_name(&mut self) -> (String, String) {
        let event = self.next().await.expect("the watch ended");
        let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str);
        (
            text("/type").unwrap_or_default().to_owned(),
            text("/object/metadata/name").unwrap_or_default().to_owned(),
        )
    }

    /// Whether nothing arrives for this time.
    pub(super) async fn is_silent(&mut self, time: Duration) -> bool {
        tokio::time::timeout(time, self.next()).await.is_err()
    }
}
