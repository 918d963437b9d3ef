//! TLS without verification, and its errors in Go's words.

mod accept_any;
mod alert;

use std::{
    io,
    sync::{Arc, OnceLock},
};

use rustls::{
    ClientConfig, InvalidMessage,
    client::Resumption,
    crypto::aws_lc_rs,
    pki_types::{IpAddr, ServerName},
};
use tokio_rustls::TlsConnector;

use self::accept_any::AcceptAny;
use crate::{report::Trouble, stream::Stream, wire::Wire};

/// The name of HTTP/2 in a TLS handshake.
pub(crate) const HTTP2: &[u8] = b"h2";

/// What is said of a port that answers a TLS handshake in plain HTTP. Hooks then try once more.
pub(crate) const PLAIN_HTTP: &str = "http: server gave HTTP response to HTTPS client";

/// The TLS client of all probes, made when the first probe needs it.
#[derive(Default)]
pub(crate) struct Tls(OnceLock<Arc<ClientConfig>>);

impl Tls {
    /// Makes a connection secure. `host` is the name or the address that was asked for.
    ///
    /// # Errors
    /// The peer does not speak TLS, or refuses.
    pub(crate) async fn secure(&self, wire: Wire, host: &str) -> Result<Stream, Trouble> {
        let config = self.0.get_or_init(config);
        // A name that can't stand in a handshake is left out, as an address would be.
        let name = ServerName::try_from(host.to_owned())
            .unwrap_or_else(|_| ServerName::IpAddress(IpAddr::from(wire.remote().ip())));
        let connect = TlsConnector::from(Arc::clone(config)).connect(name, wire);
        match connect.into_fallible().await {
            Ok(stream) => Ok(Stream::Secure(Box::new(stream))),
            Err((error, wire)) => Err(Trouble::failed(refusal(&error, wire.first_bytes()))),
        }
    }
}

fn config() -> Arc<ClientConfig> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("aws-lc-rs has cipher suites for TLS 1.2 and 1.3")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AcceptAny))
        .with_no_client_auth();
    config.alpn_protocols = vec![HTTP2.to_vec(), b"http/1.1".to_vec()];
    // A session per target would be kept for nothing: each probe shall prove a whole handshake.
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

/// What Go would say of an error of a TLS connection.
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
