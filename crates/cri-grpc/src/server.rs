//! Both services of an implementor on a unix socket.

mod events;
mod loading;
mod pieces;
mod rpcs;

use std::{convert::Infallible, future::Future, io, sync::Arc, time::Duration};

use http::Request;
use hyper::{body::Incoming, server::conn::http2, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rpcs::{ImageRpcs, RuntimeRpcs};
use rubelet_cri::{
    ImageLoader, ImageService, RuntimeService,
    v1::{
        image_service_server::{self, ImageServiceServer},
        runtime_service_server::RuntimeServiceServer,
    },
};
use tokio::{
    net::{UnixListener, UnixStream},
    sync::watch,
    task::JoinSet,
};
use tower::Service;

use crate::{MAX_MESSAGE_SIZE, loader};

/// Delay after a failed accept, usually for lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

#[derive(Clone)]
struct Services {
    runtime: RuntimeServiceServer<RuntimeRpcs>,
    images: ImageServiceServer<ImageRpcs>,
    loader: Option<Arc<dyn ImageLoader>>,
}

/// Serves both services on `listener`, until `shutdown` resolves.
///
/// Then it accepts no more clients, ends the event streams, lets the current calls finish and
/// returns. Dropping the future instead closes every connection at once, like a killed runtime.
///
/// Both lists are also available in pieces. A client that reads events too slowly delays nobody:
/// after a thousand queued events it gets those and then the error `ResourceExhausted`.
pub async fn serve(
    listener: UnixListener,
    runtime: Arc<dyn RuntimeService>,
    images: Arc<dyn ImageService>,
    shutdown: impl Future<Output = ()>,
) {
    serve_loading(listener, runtime, images, None, shutdown).await;
}

/// Like [`serve`], with a loader for images from files:
/// [`CriClient::load_images`](crate::CriClient::load_images).
pub async fn serve_loading(
    listener: UnixListener,
    runtime: Arc<dyn RuntimeService>,
    images: Arc<dyn ImageService>,
    loader: Option<Arc<dyn ImageLoader>>,
    shutdown: impl Future<Output = ()>,
) {
    let (stop, stopped) = watch::channel(false);
    let runtime = RuntimeRpcs {
        service: runtime,
        stopped: stopped.clone(),
    };
    let images = ImageRpcs { service: images };
    let services = Services {
        runtime: RuntimeServiceServer::new(runtime).max_decoding_message_size(MAX_MESSAGE_SIZE),
        images: ImageServiceServer::new(images).max_decoding_message_size(MAX_MESSAGE_SIZE),
        loader,
    };
    let mut connections = JoinSet::new();
    tokio::pin!(shutdown);
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection(stream, services.clone(), stopped.clone()));
                }
                Err(error) => pause(&error).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    // The receivers are in the connections; without connections nothing needs to be stopped.
    let _ = stop.send(true);
    while connections.join_next().await.is_some() {}
}

async fn pause(error: &io::Error) {
    if error.kind() != io::ErrorKind::ConnectionAborted {
        tracing::warn!(%error, "Cannot accept a connection");
        tokio::time::sleep(ACCEPT_PAUSE).await;
    }
}

async fn connection(stream: UnixStream, services: Services, mut stopped: watch::Receiver<bool>) {
    let service = service_fn(move |request: Request<Incoming>| {
        let mut services = services.clone();
        async move {
            let images = format!("/{}/", image_service_server::SERVICE_NAME);
            if let Some(loader) = services.loader
                && request.uri().path() == loader::METHOD
            {
                return Ok::<_, Infallible>(loading::answer(loader, request).await);
            }
            let answer = if request.uri().path().starts_with(&images) {
                services.images.call(request).await
            } else {
                services.runtime.call(request).await
            };
            Ok(match answer {
                Ok(answer) => answer,
                Err(never) => match never {},
            })
        }
    });
    let connection =
        http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = stop_requested(&mut stopped) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "Connection of a client failed");
    }
}

async fn stop_requested(stopped: &mut watch::Receiver<bool>) {
    // An error means that `serve` was dropped, and this task with it.
    let _ = stopped.wait_for(|stopped| *stopped).await;
}
