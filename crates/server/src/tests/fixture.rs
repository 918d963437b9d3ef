//! A server in front of a [`FakeNode`], and a client that speaks raw HTTP.

use std::{path::PathBuf, sync::Arc};

use rubelet_audit::AuditLog;
use serde_json::Value;
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::UnixStream,
    sync::oneshot,
    task::JoinHandle,
};

use crate::{
    NodeView, UnixSocket, bind_unix, serve_unix,
    testing::{FakeNode, pod},
};

pub(crate) struct TestServer {
    pub(crate) node: Arc<FakeNode>,
    pub(crate) path: PathBuf,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
    _directory: TempDir,
}

impl TestServer {
    pub(crate) async fn start() -> Self {
        Self::auditing(None).await
    }

    /// A server that records requests.
    pub(crate) async fn auditing(audit: Option<Arc<AuditLog>>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rubelet.sock");
        let listener = bind_unix(&UnixSocket::new(&path)).await.unwrap();
        let node = Arc::new(FakeNode::default());
        let (stop, stopped) = oneshot::channel::<()>();
        let view: Arc<dyn NodeView> = node.clone();
        let task = tokio::spawn(serve_unix(
            listener,
            view,
            Arc::new(()),
            audit,
            async move {
                let _ = stopped.await;
            },
        ));
        Self {
            node,
            path,
            stop: Some(stop),
            task,
            _directory: directory,
        }
    }

    /// A server with two pods in `default` and one in `kube-system`.
    pub(crate) async fn with_pods() -> Self {
        let server = Self::start().await;
        server.node.pods.put(pod("default", "web", "web", &["a"]));
        server
            .node
            .pods
            .put(pod("default", "db", "db", &["a", "b"]));
        server
            .node
            .pods
            .put(pod("kube-system", "dns", "dns", &["a"]));
        server
    }

    pub(crate) async fn stop(mut self) {
        self.stop.take().unwrap().send(()).unwrap();
        self.task.await.unwrap();
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.request("GET", path, "").await
    }

    pub(crate) async fn request(&self, method: &str, path: &str, headers: &str) -> Reply {
        let mut open = self.open(method, path, headers).await;
        let mut body = String::new();
        while let Some(piece) = open.piece().await {
            body.push_str(&piece);
        }
        Reply {
            code: open.code,
            headers: open.headers,
            body,
        }
    }

    /// Sends a request with a body of that media type.
    pub(crate) async fn send(&self, method: &str, path: &str, kind: &str, body: &str) -> Reply {
        let kind = match kind {
            "" => String::new(),
            kind => format!("Content-Type: {kind}\r\n"),
        };
        let headers = format!("{kind}Content-Length: {}\r\n", body.len());
        let mut open = self.open_with(method, path, &headers, body).await;
        let mut text = String::new();
        while let Some(piece) = open.piece().await {
            text.push_str(&piece);
        }
        Reply {
            code: open.code,
            headers: open.headers,
            body: text,
        }
    }

    /// Sends a request and reads the head of the answer.
    pub(crate) async fn open(&self, method: &str, path: &str, headers: &str) -> OpenReply {
        self.open_with(method, path, headers, "").await
    }

    async fn open_with(&self, method: &str, path: &str, headers: &str, body: &str) -> OpenReply {
        let mut stream = UnixStream::connect(&self.path).await.unwrap();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: node\r\nConnection: close\r\n{headers}\r\n{body}"
        );
        // A server that refuses by the head may close before it has read the body.
        let _ = stream.write_all(request.as_bytes()).await;
        OpenReply::read(BufReader::new(stream)).await
    }
}

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) code: u16,
    pub(crate) headers: String,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// Names of a list's items.
    pub(crate) fn names(&self) -> Vec<String> {
        let items = self.json()["items"].as_array().unwrap().clone();
        items
            .iter()
            .map(|item| item["metadata"]["name"].as_str().unwrap().to_owned())
            .collect()
    }
}

/// An answer whose body is still coming.
pub(crate) struct OpenReply {
    pub(crate) code: u16,
    pub(crate) headers: String,
    stream: BufReader<UnixStream>,
    chunked: bool,
    /// What the body still has, where its length was announced; nothing once it is complete.
    left: usize,
}

impl OpenReply {
    async fn read(mut stream: BufReader<UnixStream>) -> Self {
        let mut headers = String::new();
        while !headers.ends_with("\r\n\r\n") {
            assert_ne!(
                stream.read_line(&mut headers).await.unwrap(),
                0,
                "no complete head"
            );
        }
        headers.make_ascii_lowercase();
        let code = headers.split(' ').nth(1).unwrap().parse().unwrap();
        let length = headers.split("content-length: ").nth(1);
        let left = length.map_or(0, |rest| {
            rest.split("\r\n").next().unwrap().parse().unwrap()
        });
        let chunked = headers.contains("transfer-encoding: chunked");
        Self {
            code,
            headers,
            stream,
            chunked,
            left,
        }
    }

    /// The next piece of the body; `None` at its proper end.
    pub(crate) async fn piece(&mut self) -> Option<String> {
        self.try_piece().await.expect("the answer was cut off")
    }

    /// As [`piece`](Self::piece); an error where the answer is cut off.
    pub(crate) async fn try_piece(&mut self) -> Result<Option<String>, std::io::Error> {
        let mut length = std::mem::take(&mut self.left);
        if self.chunked {
            let mut line = String::new();
            self.stream.read_line(&mut line).await?;
            length = usize::from_str_radix(line.trim(), 16).map_err(std::io::Error::other)?;
        }
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes).await?;
        if self.chunked {
            self.stream.read_exact(&mut [0; 2]).await?;
        }
        Ok((length > 0).then(|| String::from_utf8(bytes).unwrap()))
    }

    /// The next event of a watch: its type, the object's name and the object.
    pub(crate) async fn event(&mut self) -> (String, String, Value) {
        let piece = self.piece().await.expect("the watch has ended");
        let event: Value = serde_json::from_str(&piece).unwrap();
        let name = event["object"]["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        (
            event["type"].as_str().unwrap().to_owned(),
            name,
            event["object"].clone(),
        )
    }

    /// The next event as `TYPE name`.
    pub(crate) async fn change(&mut self) -> String {
        let (kind, name, _) = self.event().await;
        format!("{kind} {name}")
    }
}
