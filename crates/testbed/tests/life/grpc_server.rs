//! A gRPC server with only the standard health service.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result};
use h2::server::SendResponse;
use h2::{RecvStream, server};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

/// Statuses of services: whether they are SERVING.
type Services = Arc<Mutex<BTreeMap<String, bool>>>;

/// A server on all addresses of the host; it stops when the value is dropped.
pub(crate) struct GrpcServer {
    port: u16,
    services: Services,
    _runtime: Runtime,
}

impl GrpcServer {
    /// Starts one without services.
    pub(crate) fn start() -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let listener = runtime.block_on(TcpListener::bind("0.0.0.0:0"))?;
        let port = listener.local_addr()?.port();
        let services = Services::default();
        let known = Arc::clone(&services);
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&known)));
            }
        });
        Ok(Self {
            port,
            services,
            _runtime: runtime,
        })
    }

    /// Its port.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Sets whether a service is SERVING.
    pub(crate) fn set(&self, service: &str, serving: bool) {
        let mut services = self.services.lock().unwrap();
        services.insert(service.to_owned(), serving);
    }
}

async fn serve(stream: TcpStream, services: Services) -> Result<()> {
    let mut connection = server::handshake(stream).await?;
    while let Some(call) = connection.accept().await {
        let (request, respond) = call?;
        let services = Arc::clone(&services);
        tokio::spawn(async move { answer(request.into_body(), respond, &services).await });
    }
    Ok(())
}

async fn answer(
    mut body: RecvStream,
    mut respond: SendResponse<bytes::Bytes>,
    services: &Services,
) -> Result<()> {
    let mut message = Vec::new();
    while let Some(data) = body.data().await {
        message.extend_from_slice(&data?);
    }
    let service = service(&message).context("not a HealthCheckRequest")?;
    let serving = services.lock().unwrap().get(&service).copied();
    let response = http::Response::builder().header("content-type", "application/grpc");
    let mut stream = respond.send_response(response.body(())?, false)?;
    let mut trailers = http::HeaderMap::new();
    // 5 is NOT_FOUND.
    trailers.insert(
        "grpc-status",
        if serving.is_some() { "0" } else { "5" }.parse()?,
    );
    if let Some(serving) = serving {
        let status = if serving { 1 } else { 2 };
        stream.send_data(vec![0, 0, 0, 0, 2, 8, status].into(), false)?;
    }
    stream.send_trailers(trailers)?;
    Ok(())
}

/// The field `service` of a request: five bytes of gRPC framing, then tag, length and text.
fn service(message: &[u8]) -> Option<String> {
    match message.get(5..)? {
        [] => Some(String::new()),
        [10, length, text @ ..] if text.len() == usize::from(*length) => {
            String::from_utf8(text.to_vec()).ok()
        }
        _ => None,
    }
}
