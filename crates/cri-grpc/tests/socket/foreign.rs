//! A runtime that speaks raw gRPC, to send what our own server never would.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::{StreamExt, stream};
use hyper::{server::conn::http2, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use rubelet_cri::{
    RuntimeService,
    v1::{
        self,
        runtime_service_server::{self, RuntimeServiceServer},
    },
};
use rubelet_cri_grpc::{CriClient, IgnoreCalls, Timeouts};
use tempfile::TempDir;
use tokio::{
    net::UnixListener,
    task::{JoinHandle, JoinSet},
};
use tonic::{Request, Response, Status, async_trait, codegen::BoxStream};
use tower::Service;

/// What it offers, and what it was asked.
#[derive(Default)]
pub(crate) struct Script {
    /// Whether lists in pieces are offered.
    pub(crate) streams: AtomicBool,
    /// What `StreamContainers` sends: each piece one container of this name, then this end.
    pub(crate) pieces: Mutex<Vec<Result<&'static str, Status>>>,
    /// Whether `StreamContainers` goes silent after the pieces.
    pub(crate) silent: AtomicBool,
    /// What `GetContainerEvents` sends.
    pub(crate) events: Mutex<Vec<v1::ContainerEventResponse>>,
    /// The RPCs that were called.
    pub(crate) called: Mutex<Vec<&'static str>>,
}

impl Script {
    fn note(&self, call: &'static str) {
        self.called.lock().push(call);
    }

    /// The RPCs that were called since the last time.
    pub(crate) fn called(&self) -> Vec<&'static str> {
        std::mem::take(&mut *self.called.lock())
    }
}

fn container(id: &str) -> v1::Container {
    v1::Container {
        id: id.to_owned(),
        ..Default::default()
    }
}

struct Rpcs(Arc<Script>);

#[async_trait]
impl runtime_service_server::RuntimeService for Rpcs {
    async fn list_containers(
        &self,
        _: Request<v1::ListContainersRequest>,
    ) -> Result<Response<v1::ListContainersResponse>, Status> {
        self.0.note("ListContainers");
        let containers = vec![container("whole")];
        Ok(Response::new(v1::ListContainersResponse { containers }))
    }

    async fn stream_containers(
        &self,
        _: Request<v1::StreamContainersRequest>,
    ) -> Result<Response<BoxStream<v1::StreamContainersResponse>>, Status> {
        self.0.note("StreamContainers");
        if !self.0.streams.load(Ordering::Relaxed) {
            return Err(Status::unimplemented("unknown method StreamContainers"));
        }
        let pieces = self.0.pieces.lock().clone();
        let piece = |id| v1::StreamContainersResponse {
            containers: vec![container(id)],
        };
        let pieces = stream::iter(pieces.into_iter().map(move |next| next.map(piece)));
        Ok(Response::new(if self.0.silent.load(Ordering::Relaxed) {
            Box::pin(pieces.chain(stream::pending()))
        } else {
            Box::pin(pieces)
        }))
    }

    async fn get_container_events(
        &self,
        _: Request<v1::GetEventsRequest>,
    ) -> Result<Response<BoxStream<v1::ContainerEventResponse>>, Status> {
        let events = self.0.events.lock().clone();
        let events = stream::iter(events.into_iter().map(Ok));
        Ok(Response::new(Box::pin(events.chain(stream::pending()))))
    }
}

/// The runtime on its socket, and a client.
pub(crate) struct Foreign {
    pub(crate) script: Arc<Script>,
    pub(crate) client: CriClient,
    directory: TempDir,
    server: JoinHandle<()>,
}

impl Foreign {
    /// Calls end after `request` at the latest.
    pub(crate) fn new(request: Duration) -> Self {
        let directory = tempfile::tempdir().expect("a writable temporary directory");
        let socket = directory.path().join("runtime.sock");
        let endpoint = format!("unix://{}", socket.display());
        let client = CriClient::connect_lazy(&endpoint, Timeouts { request });
        let script = Arc::new(Script::default());
        let server = serve(&directory, &script);
        Self {
            script,
            client: client.expect("the path is absolute"),
            directory,
            server,
        }
    }

    /// Another process takes its place, after the client has seen this one go.
    pub(crate) async fn restart(&mut self) {
        self.server.abort();
        let _ = (&mut self.server).await;
        let probe = v1::VersionRequest::default();
        let away = self.client.clone().with_observer(Arc::new(IgnoreCalls));
        let away = away.version(probe).await.expect_err("nobody is there");
        assert!(away.is_unavailable(), "{away}");
        std::fs::remove_file(self.directory.path().join("runtime.sock")).expect("it is there");
        self.server = serve(&self.directory, &self.script);
    }
}

fn serve(directory: &TempDir, script: &Arc<Script>) -> JoinHandle<()> {
    let listener = UnixListener::bind(directory.path().join("runtime.sock"));
    let listener = listener.expect("the directory is ours");
    let rpcs = RuntimeServiceServer::new(Rpcs(script.clone()));
    tokio::spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            let rpcs = rpcs.clone();
            let service = service_fn(move |request| {
                let mut rpcs = rpcs.clone();
                async move { Ok::<_, Infallible>(rpcs.call(request).await.expect("infallible")) }
            });
            let stream = TokioIo::new(stream);
            let server = http2::Builder::new(TokioExecutor::new());
            connections.spawn(server.serve_connection(stream, service));
        }
    })
}
