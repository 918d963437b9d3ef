//! Connections to the loopback ports of a pod.

use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use rubelet_cri::{CriErrorKind, CriResult, v1};
use rubelet_host::netns;
use rubelet_runtime_plan::{session::SessionRefusal, state::SandboxCall};
use rubelet_streaming::{Duplex, PortDialer, PortsEnd};
use tokio::{
    net::{TcpSocket, TcpStream},
    time::{Instant, timeout_at},
};

use super::{sink, source};
use crate::{
    blocking::unbounded,
    engine::Engine,
    error::{Result, RuntimeError},
    sandbox::Sandbox,
};

/// Timeout for both attempts of a connection. A loopback port answers at once, unless a firewall in
/// the pod drops packets.
const DIAL_TIMEOUT: Duration = Duration::from_secs(10);

/// Opens a sandbox for connections.
pub(super) fn dialer(engine: &Engine, id: &str) -> Result<Arc<dyn PortDialer>> {
    if id.is_empty() {
        return Err(SessionRefusal::NoSandbox.into());
    }
    let found = engine.sandbox(SandboxCall::PortForward, id)?;
    let sandbox = found.ok_or_else(|| RuntimeError::sandbox_not_found(id))?;
    sandbox.decision(SandboxCall::PortForward)?;
    let netns = sandbox
        .has_network()
        .then(|| engine.layout.sandbox(&sandbox.id).netns());
    Ok(Arc::new(Dialer { sandbox, netns }))
}

struct Dialer {
    sandbox: Arc<Sandbox>,
    /// `None` is the host's. A path, not a descriptor: an open session must not keep the network
    /// namespace of a removed pod.
    netns: Option<PathBuf>,
}

#[async_trait]
impl PortDialer for Dialer {
    async fn dial(&self, port: u16) -> CriResult<Duplex> {
        self.connect(port)
            .await
            .map_err(RuntimeError::of::<v1::PortForwardRequest>)
    }

    async fn ended(&self) -> PortsEnd {
        self.sandbox.stopped().await;
        PortsEnd::PodStopped
    }
}

impl Dialer {
    async fn connect(&self, port: u16) -> Result<Duplex> {
        self.sandbox.decision(SandboxCall::PortForward)?;
        let sockets = match self.netns.clone() {
            Some(path) => unbounded(move || pod_sockets(&path)).await?,
            None => Sockets::open(),
        };
        let deadline = Instant::now() + DIAL_TIMEOUT;
        let targets = [
            (sockets.v4, SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
            (sockets.v6, SocketAddr::from((Ipv6Addr::LOCALHOST, port))),
        ];
        let mut reasons = Vec::new();
        for (socket, target) in targets {
            let connected = async { socket?.connect(target).await };
            match timeout_at(deadline, connected).await {
                Ok(Ok(stream)) => return duplex(stream),
                Ok(Err(error)) => reasons.push(format!("{target}: {error}")),
                Err(_) => {
                    reasons.push(format!("{target}: no answer"));
                    return Err(RuntimeError::new(
                        CriErrorKind::DeadlineExceeded(DIAL_TIMEOUT),
                        not_connected(port, &reasons),
                    ));
                }
            }
        }
        Err(RuntimeError::failed(not_connected(port, &reasons)))
    }
}

fn not_connected(port: u16, reasons: &[String]) -> String {
    let reasons = reasons.join("; ");
    format!("cannot connect to port {port} of the pod: {reasons}")
}

/// Unconnected sockets. A socket belongs to the network namespace in which it was created.
struct Sockets {
    v4: io::Result<TcpSocket>,
    v6: io::Result<TcpSocket>,
}

impl Sockets {
    fn open() -> Self {
        Self {
            v4: TcpSocket::new_v4(),
            v6: TcpSocket::new_v6(),
        }
    }
}

fn pod_sockets(netns: &Path) -> Result<Sockets> {
    let made = netns::open(netns).and_then(|netns| netns::within(&netns, Sockets::open));
    made.map_err(|error| RuntimeError::because("cannot connect in the pod's network", &error))
}

fn duplex(stream: TcpStream) -> Result<Duplex> {
    let failed = |error: io::Error| RuntimeError::because("cannot use a connection", &error);
    // Data of the client is forwarded as it arrives; waiting to fill packets only adds delay.
    stream.set_nodelay(true).map_err(failed)?;
    let writes = OwnedFd::from(stream.into_std().map_err(failed)?);
    let reads = writes.try_clone().map_err(failed)?;
    Ok(Duplex {
        source: source(reads, None)?,
        sink: sink(writes)?,
    })
}
