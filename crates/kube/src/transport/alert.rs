//! What the server said before it closed the connection.
//!
//! With TLS 1.3 a client may write before the server has looked at its certificate. A server that rejects the
//! certificate sends an alert and closes, and the client often notices the closed connection first, while it writes:
//! "broken pipe". The alert, which says why, is there to be read.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll},
};

use rustls::AlertDescription;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The server's alert about the client certificate.
#[derive(Debug, thiserror::Error)]
#[error("the API server rejects the client certificate (TLS alert {0:?})")]
struct RejectedCertificate(AlertDescription);

/// A TLS connection whose failed writes report the server's alert.
pub(super) struct AlertReader<S>(S);

impl<S: AsyncRead + AsyncWrite + Unpin> AlertReader<S> {
    pub(super) fn new(stream: S) -> Self {
        Self(stream)
    }

    /// The result of a write, with the alert as its error if there is one. The connection has failed, so what the
    /// server sent before the alert is of no use.
    fn explained<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let Poll::Ready(Err(error)) = &written else {
            return written;
        };
        if !is_closed(error) {
            return written;
        }
        let mut bytes = [0; 1024];
        loop {
            let mut buffer = ReadBuf::new(&mut bytes);
            match Pin::new(&mut self.0).poll_read(context, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {}
                Poll::Ready(Err(error)) if alert(&error).is_some() => {
                    return Poll::Ready(Err(named(error)));
                }
                _ => return written,
            }
        }
    }
}

fn is_closed(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
    )
}

fn alert(error: &io::Error) -> Option<AlertDescription> {
    match error.get_ref()?.downcast_ref() {
        Some(rustls::Error::AlertReceived(alert)) => Some(*alert),
        _ => None,
    }
}

/// The error, in clear words if it is an alert about the client certificate. In its text: HTTP/2 keeps no more of an
/// error.
///
/// Source of the alerts: RFC 8446, 6.2.
fn named(error: io::Error) -> io::Error {
    use AlertDescription::{
        AccessDenied, BadCertificate, CertificateExpired, CertificateRequired, CertificateRevoked,
        CertificateUnknown, DecryptError, UnknownCA, UnsupportedCertificate,
    };
    match alert(&error) {
        Some(
            alert @ (AccessDenied
            | BadCertificate
            | CertificateExpired
            | CertificateRequired
            | CertificateRevoked
            | CertificateUnknown
            | DecryptError
            | UnknownCA
            | UnsupportedCertificate),
        ) => io::Error::new(error.kind(), RejectedCertificate(alert)),
        _ => error,
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for AlertReader<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.0).poll_read(context, buffer);
        read.map_err(named)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for AlertReader<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.0).poll_write(context, bytes);
        self.explained(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.0).poll_write_vectored(context, slices);
        self.explained(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.0).poll_flush(context);
        self.explained(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let closed = Pin::new(&mut self.0).poll_shutdown(context);
        self.explained(context, closed)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    const TEXT: &str = "the API server rejects the client certificate (TLS alert UnknownCA)";

    /// Can't be written to; reads are prepared.
    struct Closed(VecDeque<io::Result<&'static [u8]>>);

    impl AsyncRead for Closed {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            match self.0.pop_front() {
                None => Poll::Pending,
                Some(read) => Poll::Ready(read.map(|bytes| buffer.put_slice(bytes))),
            }
        }
    }

    impl AsyncWrite for Closed {
        fn poll_write(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            _: &[u8],
        ) -> Poll<io::Result<usize>> {
            Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Err(io::ErrorKind::NotConnected.into()))
        }
    }

    fn received(alert: AlertDescription) -> io::Error {
        io::Error::new(
            io::ErrorKind::InvalidData,
            rustls::Error::AlertReceived(alert),
        )
    }

    #[tokio::test]
    async fn a_failed_write_reports_the_alert_behind_what_else_was_sent() {
        let reads = || {
            VecDeque::from([
                Ok(&b"settings"[..]),
                Err(received(AlertDescription::UnknownCA)),
            ])
        };
        let mut stream = AlertReader::new(Closed(reads()));
        let error = stream.write(b"x").await.unwrap_err();
        assert_eq!(error.to_string(), TEXT);
        let mut stream = AlertReader::new(Closed(reads()));
        let error = stream.flush().await.unwrap_err();
        assert_eq!(error.to_string(), TEXT);
        let mut stream = AlertReader::new(Closed(reads()));
        let error = stream.shutdown().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotConnected, "another error");
    }

    #[tokio::test]
    async fn without_an_alert_the_error_of_the_write_stays() {
        let reset = io::ErrorKind::ConnectionReset;
        for reads in [
            vec![],
            vec![Ok(&b""[..])],
            vec![Ok(&b"bytes"[..]), Err(reset.into())],
        ] {
            let mut stream = AlertReader::new(Closed(reads.into()));
            let error = stream.write(b"x").await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        }
    }

    #[tokio::test]
    async fn reads_name_alerts_about_the_certificate_only() {
        let alerts = [AlertDescription::UnknownCA, AlertDescription::InternalError];
        let mut stream = AlertReader::new(Closed(alerts.map(|alert| Err(received(alert))).into()));
        let texts = [TEXT, "received fatal alert: InternalError"];
        for text in texts {
            let error = stream.read_u8().await.unwrap_err();
            assert_eq!(error.to_string(), text);
        }
    }
}
