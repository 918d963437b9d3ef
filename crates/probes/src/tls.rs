//! TLS without verification, with Go's error messages.

mod alert;

use std::{
    io,
    sync::{Arc, OnceLock},
};

use rubelet_tls::{AcceptAnyServer, client_config};
use rustls::{
    ClientConfig, InvalidMessage,
    client::Resumption,
    pki_types::{IpAddr, ServerName},
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::{report::ProbeFailure, socket::Socket};

/// The name of HTTP/2 in a TLS handshake.
pub(crate) const HTTP2: &[u8] = b"h2";

/// The error if a port answers a TLS handshake in plain HTTP. Hooks then retry once.
pub(crate) const PLAIN_HTTP: &str = "http: server gave HTTP response to HTTPS client";

/// The TLS client of all probes, created by the first probe that needs it.
#[derive(Default)]
pub(crate) struct Tls(OnceLock<Arc<ClientConfig>>);

impl Tls {
    /// Adds TLS to a connection. `host` is the requested name or address.
    ///
    /// # Errors
    /// The peer does not support TLS, or rejects the handshake.
    pub(crate) async fn secure(
        &self,
        socket: Socket,
        host: &str,
    ) -> Result<Box<TlsStream<Socket>>, ProbeFailure> {
        let config = self.0.get_or_init(config);
        // A name that is not valid in SNI is omitted, like an address.
        let name = ServerName::try_from(host.to_owned())
            .unwrap_or_else(|_| ServerName::IpAddress(IpAddr::from(socket.remote().ip())));
        let connect = TlsConnector::from(Arc::clone(config)).connect(name, socket);
        match connect.into_fallible().await {
            Ok(stream) => Ok(Box::new(stream)),
            Err((error, socket)) => {
                Err(ProbeFailure::failed(refusal(&error, socket.first_bytes())))
            }
        }
    }
}

/// A probe checks whether a server works, not who it is: the certificate of a pod is issued for the
/// name of a service, or self-signed, and never for the address that a probe connects to. The
/// documentation of probes promises that verification is skipped. No secret is at risk: a header of
/// a probe goes to the pod whose author wrote it.
fn config() -> Arc<ClientConfig> {
    let mut config = client_config()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AcceptAnyServer))
        .with_no_client_auth();
    config.alpn_protocols = vec![HTTP2.to_vec(), b"http/1.1".to_vec()];
    // Resumption is useless: each probe must test a full handshake.
    config.resumption = Resumption::disabled();
    Arc::new(config)
}

fn refusal(error: &io::Error, first_bytes: &[u8]) -> String {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return "EOF".to_owned();
    }
    match cause(error) {
        Some(rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType))
            if first_bytes == b"HTTP/" =>
        {
            PLAIN_HTTP.to_owned()
        }
        _ => words(error),
    }
}

/// Go's message for an error of a TLS connection.
pub(crate) fn words(error: &io::Error) -> String {
    match cause(error) {
        Some(rustls::Error::AlertReceived(alert)) => {
            format!("remote error: tls: {}", alert::words(*alert))
        }
        Some(rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType)) => {
            "tls: first record does not look like a TLS handshake".to_owned()
        }
        Some(other) => format!("tls: {other}"),
        None => error.to_string(),
    }
}

fn cause(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}
