//! Requests that go on to a node: logs of containers, and whatever else its server answers to GET.

use std::{io, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Response, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::{
    ClientConfig, DigitallySignedStruct, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::CryptoProvider,
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime},
};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::{
    Kind, StatusError,
    authority::{self, Identity},
    base64, meta,
    request::Request,
    respond::Body,
    state::Shared,
    user::User,
};

/// What a node has to answer a connection in.
const CONNECT: Duration = Duration::from_secs(10);

/// The options of a pod's log that the node knows.
const LOG_OPTIONS: [&str; 8] = [
    "follow",
    "previous",
    "sinceSeconds",
    "sinceTime",
    "timestamps",
    "tailLines",
    "limitBytes",
    "stream",
];

/// Answers with what the node answers.
pub(crate) async fn get(
    shared: &Arc<Shared>,
    request: &Request,
) -> Result<Response<Body>, StatusError> {
    let (node, path) = match request.kind().storage {
        "pods" => log_path(shared, request)?,
        _ => {
            let mut path = format!("/{}", request.target.rest);
            let query = request.query.encoded();
            if !query.is_empty() {
                path = format!("{path}?{query}");
            }
            (request.target.name().to_owned(), path)
        }
    };
    let (host, port) = address(shared, &node)?;
    let sent = send(shared, &host, port, &path).await;
    sent.map_err(|error| {
        let url = format!("https://{host}:{port}{path}");
        StatusError::internal(format!("Get {url:?}: {error}"))
    })
}

/// The node and the path on it of a container's log.
fn log_path(shared: &Shared, request: &Request) -> Result<(String, String), StatusError> {
    let (target, query) = (&request.target, &request.query);
    let pod = shared.with_store(|store| {
        store
            .get("pods", target.namespace(), target.name())
            .cloned()
    });
    let pod = pod.ok_or_else(|| StatusError::not_found(target.kind, target.name()))?;
    let container = container(&pod, query.text("container"))?;
    let node = meta::text(&pod, "/spec/nodeName").to_owned();
    if node.is_empty() {
        let message = format!("pod {} does not have a host assigned", target.name());
        return Err(StatusError::bad_request(message));
    }
    let options = LOG_OPTIONS.iter().filter_map(|option| {
        let value = query.get(option)?;
        Some(format!(
            "{option}={}",
            value.replace('+', "%2B").replace(':', "%3A")
        ))
    });
    let options: Vec<String> = options.collect();
    let mut path = format!(
        "/containerLogs/{}/{}/{container}",
        target.namespace(),
        target.name()
    );
    if !options.is_empty() {
        path = format!("{path}?{}", options.join("&"));
    }
    Ok((node, path))
}

fn container(pod: &Value, asked: &str) -> Result<String, StatusError> {
    let lists = ["containers", "initContainers", "ephemeralContainers"];
    let names = |list: &str| -> Vec<String> {
        let containers = meta::entries(pod, &format!("/spec/{list}")).iter();
        containers
            .map(|one| meta::text(one, "/name").to_owned())
            .collect()
    };
    let pod_name = meta::name(pod);
    if !asked.is_empty() {
        if lists
            .iter()
            .any(|list| names(list).iter().any(|name| name == asked))
        {
            return Ok(asked.to_owned());
        }
        let message = format!("container {asked} is not valid for pod {pod_name}");
        return Err(StatusError::bad_request(message));
    }
    match names("containers").as_slice() {
        [only] => Ok(only.clone()),
        several => {
            let mut message = format!(
                "a container name must be specified for pod {pod_name}, choose one of: [{}]",
                several.join(" ")
            );
            let init = names("initContainers");
            if !init.is_empty() {
                message += &format!(" or one of the init containers: [{}]", init.join(" "));
            }
            Err(StatusError::bad_request(message))
        }
    }
}

/// Where a node's server is.
fn address(shared: &Shared, node: &str) -> Result<(String, u16), StatusError> {
    let kind = Kind::of("nodes").expect("it is in the table");
    let found = shared.with_store(|store| store.get("nodes", "", node).cloned());
    let found = found.ok_or_else(|| StatusError::not_found(kind, node))?;
    let addresses = meta::entries(&found, "/status/addresses");
    let of_type = |wanted: &str| {
        let mut addresses = addresses.iter();
        addresses.find(|address| address["type"] == wanted)
    };
    let address = ["InternalIP", "ExternalIP", "Hostname"]
        .into_iter()
        .find_map(of_type);
    let address = address.map(|address| meta::text(address, "/address").to_owned());
    let address = address.ok_or_else(|| {
        StatusError::internal(format!(
            "no preferred addresses found; known addresses: of {node}"
        ))
    })?;
    let port = meta::number(&found, "/status/daemonEndpoints/kubeletEndpoint/Port");
    let port = port
        .and_then(|port| u16::try_from(port).ok())
        .unwrap_or(10250);
    Ok((address, port))
}

async fn send(shared: &Shared, host: &str, port: u16, path: &str) -> io::Result<Response<Body>> {
    let connecting = TcpStream::connect((host, port));
    let stream = tokio::time::timeout(CONNECT, connecting).await??;
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    let config = client_config(shared).map_err(io::Error::other)?;
    let connecting = TlsConnector::from(Arc::new(config)).connect(name, stream);
    let stream = tokio::time::timeout(CONNECT, connecting).await??;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(io::Error::other)?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to a node ended early");
        }
    });
    let uri: Uri = path.parse().map_err(io::Error::other)?;
    let mut request = http::Request::get(uri).header(header::HOST, format!("{host}:{port}"));
    if let Some(token) = shared.config().node_token {
        request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
    }
    let request = request
        .body(Empty::<Bytes>::new())
        .map_err(io::Error::other)?;
    let answer = sender
        .send_request(request)
        .await
        .map_err(io::Error::other)?;
    let (parts, body) = answer.into_parts();
    let mut response = Response::new(body.map_err(io::Error::other).boxed_unsync());
    *response.status_mut() = match parts.status {
        // The node refuses the server, not the person.
        StatusCode::UNAUTHORIZED => StatusCode::INTERNAL_SERVER_ERROR,
        status => status,
    };
    if let Some(kind) = parts.headers.get(header::CONTENT_TYPE) {
        response
            .headers_mut()
            .insert(header::CONTENT_TYPE, kind.clone());
    }
    Ok(response)
}

/// Shows the certificate of an administrator; takes any of the node, as an API server does that is
/// given no authority for them.
fn client_config(shared: &Shared) -> Result<ClientConfig, String> {
    let user = User::new("kube-apiserver-kubelet-client", &["system:masters"]);
    let hour = Duration::from_secs(3600);
    let identity = shared.authority.client(&user, shared.clock.now(), hour);
    let Identity {
        certificate_pem,
        key_pem,
    } = identity.map_err(|error| error.to_string())?;
    let provider = authority::provider();
    let certificate = authority::der(&certificate_pem).ok_or("no certificate")?;
    let key = key_pem.lines().filter(|line| !line.starts_with("-----"));
    let key = base64::decode(&key.collect::<String>()).ok_or("no key")?;
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key));
    ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyNode(provider)))
        .with_client_auth_cert(vec![certificate], key)
        .map_err(|error| error.to_string())
}

#[derive(Debug)]
struct AnyNode(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyNode {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
