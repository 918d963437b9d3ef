//! Ends a session whose network is cut: the other end of its connection no longer answers.
//!
//! Neither keepalive nor `TCP_USER_TIMEOUT` alone does that. Keepalive sends nothing while data waits to be
//! acknowledged, and probes at most once a second: two seconds would mean that one lost packet ends a session.
//! `TCP_USER_TIMEOUT` ends a session whose client answers but reads nothing for a while, such as a pager. So
//! the kernel sends the first probe, and [`LinkWatch`] decides on what it knows about the answers.

mod watch;

use std::{io, net::IpAddr, sync::Arc, time::Duration};

use rubelet_host::tcp_link::tcp_silence;
use rustix::net::{Shutdown, shutdown, sockopt};
use tokio::{net::TcpStream, time::sleep};

use self::watch::{LinkVerdict, LinkWatch};
use crate::{SessionFuture, SessionSocket};

/// Idle time after which the kernel sends a probe, and its interval: the least that it supports.
const PROBE: Duration = Duration::from_secs(1);

/// Probes without an answer until the kernel itself gives up: after the watch would have.
const PROBES: u32 = 20;

/// The connection of a session, to see whether its other end still answers.
#[derive(Debug, Clone)]
pub struct Link {
    stream: Arc<TcpStream>,
    peer: IpAddr,
}

impl Link {
    /// The link below a connection; `None` if both of its ends are on this machine, where no network
    /// can be cut.
    #[must_use]
    pub fn of(socket: &SessionSocket) -> Option<Self> {
        let peer = socket.0.peer_addr().ok()?.ip().to_canonical();
        let local = socket.0.local_addr().ok()?.ip().to_canonical();
        (peer != local && !peer.is_loopback()).then(|| Self {
            stream: Arc::clone(&socket.0),
            peer,
        })
    }

    /// Resolves once the other end no longer answers.
    async fn lost(&self) -> io::Result<()> {
        self.begin()?;
        let mut watch = LinkWatch::default();
        loop {
            match watch.judge(tcp_silence(&self.stream)?) {
                LinkVerdict::Again(after) => sleep(after).await,
                LinkVerdict::Probe(after) => {
                    // The kernel probes at once if the connection has been idle for longer.
                    sockopt::set_tcp_keepidle(&self.stream, PROBE)?;
                    sleep(after).await;
                }
                LinkVerdict::Lost => return Ok(()),
            }
        }
    }

    fn begin(&self) -> io::Result<()> {
        sockopt::set_tcp_keepcnt(&self.stream, PROBES)?;
        sockopt::set_tcp_keepintvl(&self.stream, PROBE)?;
        sockopt::set_tcp_keepidle(&self.stream, PROBE)?;
        Ok(sockopt::set_socket_keepalive(&self.stream, true)?)
    }

    /// Ends the connection for whoever reads or writes it. The kernel keeps nothing that is still to be
    /// sent.
    fn cut(&self) {
        // The connection may have ended by itself.
        let _ = sockopt::set_socket_linger(&self.stream, Some(Duration::ZERO));
        let _ = shutdown(&self.stream, Shutdown::Both);
    }
}

/// A session that ends when its link is lost, in the way in which it ends when its client disconnects.
pub(crate) fn watched(
    session: SessionFuture,
    link: Option<Link>,
    whose: &'static str,
) -> SessionFuture {
    let Some(link) = link else {
        return session;
    };
    Box::pin(async move {
        let mut session = session;
        tokio::select! {
            () = session.as_mut() => return,
            lost = link.lost() => match lost {
                Ok(()) => {
                    tracing::info!(peer = %link.peer, whose, "Ended a session: the network to its peer is cut");
                    link.cut();
                }
                // The connection has ended, which the session sees, too.
                Err(error) => tracing::debug!(%error, "Cannot watch the connection of a session"),
            },
        }
        session.await;
    })
}
