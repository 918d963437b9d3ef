//! Connections to the server of a node.

use std::{io, sync::Arc, time::Duration};

use rubelet_tls::{AcceptAnyServer, client_config};
use rustls::{
    ClientConfig,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer, ServerName},
};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::{
    Kind, StatusError,
    authority::{self, Identity},
    base64, meta,
    state::ServerState,
    user::User,
};

/// Timeout of connecting to a node.
pub(super) const CONNECT: Duration = Duration::from_secs(10);

/// Address of a node's server.
pub(super) fn address(shared: &ServerState, node: &str) -> Result<(String, u16), StatusError> {
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

/// Connects as the API server does, with its client certificate.
pub(super) async fn connect(
    shared: &ServerState,
    host: &str,
    port: u16,
) -> io::Result<TlsStream<TcpStream>> {
    let connecting = TcpStream::connect((host, port));
    let stream = tokio::time::timeout(CONNECT, connecting).await??;
    // Small frames of a session must not be delayed.
    stream.set_nodelay(true)?;
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    let config = node_client_config(shared).map_err(io::Error::other)?;
    let connecting = TlsConnector::from(Arc::new(config)).connect(name, stream);
    tokio::time::timeout(CONNECT, connecting).await?
}

/// Uses the certificate of an administrator; accepts any certificate of the node, like an API
/// server without a CA for them.
fn node_client_config(shared: &ServerState) -> Result<ClientConfig, String> {
    let user = User::new("kube-apiserver-kubelet-client", &["system:masters"]);
    let hour = Duration::from_secs(3600);
    let identity = shared.authority.client(&user, shared.clock.now(), hour);
    let Identity {
        certificate_pem,
        key_pem,
    } = identity.map_err(|error| error.to_string())?;
    let certificate = authority::der(&certificate_pem).ok_or("no certificate")?;
    let key = key_pem.lines().filter(|line| !line.starts_with("-----"));
    let key = base64::decode(&key.collect::<String>()).ok_or("no key")?;
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key));
    client_config()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AcceptAnyServer))
        .with_client_auth_cert(vec![certificate], key)
        .map_err(|error| error.to_string())
}
