//! A runtime that answers as the test wants, and the socket it sits behind.

use std::{future::pending, path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::stream;
use parking_lot::Mutex;
use rubelet_cri::{
    Call, ContainerEvent, CriError, CriResult, EventStream, ImageService, RuntimeService, v1,
};
use rubelet_cri_grpc::{CriClient, Timeouts, serve};
use tempfile::TempDir;
use tokio::{
    net::UnixListener,
    sync::{Notify, mpsc, oneshot},
    task::JoinHandle,
};

/// What the calls below answer, and what they saw.
#[derive(Default)]
pub(crate) struct Scripted {
    /// `status` fails with this.
    pub(crate) error: Mutex<Option<CriError>>,
    /// `list_containers` answers this.
    pub(crate) containers: Mutex<Vec<v1::Container>>,
    /// The next stream of events is this. Without one there are none.
    pub(crate) events: Mutex<Option<mpsc::UnboundedReceiver<CriResult<ContainerEvent>>>>,
    /// Told when a call that never answers has begun, and when it was cancelled.
    pub(crate) hung: Notify,
    pub(crate) cancelled: Arc<Notify>,
    /// Lets one start end.
    pub(crate) go_on: Notify,
}

struct TellOnDrop(Arc<Notify>);

impl Drop for TellOnDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

impl Scripted {
    async fn never<T>(&self) -> T {
        let _tell = TellOnDrop(self.cancelled.clone());
        self.hung.notify_one();
        pending().await
    }
}

#[async_trait]
impl RuntimeService for Scripted {
    async fn version(&self, request: v1::VersionRequest) -> CriResult<v1::VersionResponse> {
        let version = request.version;
        Ok(v1::VersionResponse {
            version,
            runtime_name: "scripted".into(),
            ..Default::default()
        })
    }

    async fn status(&self, _: v1::StatusRequest) -> CriResult<v1::StatusResponse> {
        match self.error.lock().clone() {
            Some(error) => Err(error),
            None => Ok(v1::StatusResponse::default()),
        }
    }

    async fn list_containers(
        &self,
        _: v1::ListContainersRequest,
    ) -> CriResult<v1::ListContainersResponse> {
        let containers = self.containers.lock().clone();
        Ok(v1::ListContainersResponse { containers })
    }

    fn container_events(&self) -> EventStream {
        let events = self.events.lock().take();
        let Some(events) = events else {
            let none = CriError::unimplemented(v1::GetEventsRequest::NAME);
            return Box::pin(stream::iter([Err(none)]));
        };
        let tell = TellOnDrop(self.cancelled.clone());
        Box::pin(stream::unfold((events, tell), |(mut events, tell)| async {
            let event = events.recv().await?;
            Some((event, (events, tell)))
        }))
    }

    async fn container_status(
        &self,
        _: v1::ContainerStatusRequest,
    ) -> CriResult<v1::ContainerStatusResponse> {
        self.never().await
    }

    async fn start_container(
        &self,
        _: v1::StartContainerRequest,
    ) -> CriResult<v1::StartContainerResponse> {
        tokio::select! {
            () = self.go_on.notified() => Ok(v1::StartContainerResponse {}),
            never = self.never() => never,
        }
    }

    async fn exec_sync(&self, _: v1::ExecSyncRequest) -> CriResult<v1::ExecSyncResponse> {
        self.never().await
    }
}

#[async_trait]
impl ImageService for Scripted {
    async fn image_status(
        &self,
        request: v1::ImageStatusRequest,
    ) -> CriResult<v1::ImageStatusResponse> {
        let image = request.image.map(|spec| v1::Image {
            id: spec.image,
            ..Default::default()
        });
        Ok(v1::ImageStatusResponse {
            image,
            ..Default::default()
        })
    }

    async fn pull_image(&self, _: v1::PullImageRequest) -> CriResult<v1::PullImageResponse> {
        self.never().await
    }
}

/// A served runtime, its directory and a client of it.
pub(crate) struct Served {
    pub(crate) runtime: Arc<Scripted>,
    pub(crate) client: CriClient,
    socket: PathBuf,
    server: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
    _directory: TempDir,
}

impl Served {
    /// With a request timeout no test reaches.
    pub(crate) fn new() -> Self {
        Self::with_request_timeout(Duration::from_secs(60))
    }

    pub(crate) fn with_request_timeout(request: Duration) -> Self {
        let directory = tempfile::tempdir().expect("a writable temporary directory");
        let socket = directory.path().join("runtime.sock");
        let client = CriClient::connect_lazy(
            &format!("unix://{}", socket.display()),
            Timeouts { request },
        )
        .expect("the path is absolute");
        let runtime = Arc::new(Scripted::default());
        let mut served = Self {
            runtime,
            client,
            socket,
            server: None,
            _directory: directory,
        };
        served.start();
        served
    }

    /// Listens (again), as a runtime does that starts: whatever socket is there is replaced.
    pub(crate) fn start(&mut self) {
        if self.socket.exists() {
            std::fs::remove_file(&self.socket).expect("the socket is ours");
        }
        let listener = UnixListener::bind(&self.socket).expect("the directory is ours");
        let (stop, stopped) = oneshot::channel();
        let (runtime, images) = (self.runtime.clone(), self.runtime.clone());
        let server = tokio::spawn(serve(listener, runtime, images, async {
            let _ = stopped.await;
        }));
        self.server = Some((stop, server));
    }

    /// Dies at once, leaving its socket file behind.
    pub(crate) async fn kill(&mut self) {
        let (_stop, server) = self.server.take().expect("it runs");
        server.abort();
        let _ = server.await;
    }

    /// Asks it to end. The handle resolves when it has.
    pub(crate) fn shut_down(&mut self) -> JoinHandle<()> {
        let (stop, server) = self.server.take().expect("it runs");
        stop.send(()).expect("it listens for this");
        server
    }

    pub(crate) fn remove_socket(&self) {
        std::fs::remove_file(&self.socket).expect("it is there");
    }

    pub(crate) fn socket_text(&self) -> String {
        self.socket.display().to_string()
    }
}
