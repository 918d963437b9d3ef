//! One forwarded connection.

use std::{
    io,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use rubelet_cri::CriError;
use tokio::{sync::watch, time::timeout};

use crate::{Duplex, PortDialer, copy, ending::SessionEnding, status::words};

/// Time for an idle client to close its half after the pod has closed its own. Older
/// clients only close theirs at the end of the session.
const HALF_CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Copies in both directions until both have ended: a half-closed connection continues in the other
/// direction. After the pod has closed its half, the client's ends at the latest after a second
/// without data.
async fn forward(client: Duplex, pod: Duplex) -> io::Result<()> {
    let (mut from_client, mut to_client) = (client.source, client.sink);
    let (mut from_pod, mut to_pod) = (pod.source, pod.sink);
    let chunks = AtomicU64::new(0);
    let up = async {
        // The pod may stop reading and still respond, as after a request that is too long.
        let mut reads = true;
        while let Ok(Some(bytes)) = from_client.read().await {
            chunks.fetch_add(1, Ordering::Relaxed);
            reads = reads && to_pod.write(bytes).await.is_ok();
        }
        let _ = to_pod.close().await;
    };
    let down = copy(&mut *from_pod, &mut *to_client);
    let (mut up, mut down) = (std::pin::pin!(up), std::pin::pin!(down));
    tokio::select! {
        said = down.as_mut() => {
            said?;
            loop {
                let before = chunks.load(Ordering::Relaxed);
                let ended = timeout(HALF_CLOSE_TIMEOUT, up.as_mut()).await.is_ok();
                if ended || chunks.load(Ordering::Relaxed) == before {
                    return Ok(());
                }
            }
        }
        () = up.as_mut() => down.await,
    }
}

/// Connects a client to a port and forwards the connection, until it or its session has ended.
///
/// # Errors
/// The message to the client.
pub(crate) async fn forward_or_end(
    client: Duplex,
    port: u16,
    dialer: &dyn PortDialer,
    told: &mut watch::Receiver<Option<SessionEnding>>,
) -> Result<(), String> {
    let forwarded = async {
        let pod = dialer.dial(port).await;
        let pod = pod.map_err(|error| refused(port, &error))?;
        let ended = forward(client, pod).await;
        ended.map_err(|error| error.to_string())
    };
    tokio::select! {
        forwarded = forwarded => forwarded,
        // An error means that the session is gone.
        ending = told.wait_for(Option::is_some) => match ending.ok().and_then(|ending| *ending) {
            Some(ending) => Err(format!("error forwarding port {port} to pod: {ending}")),
            None => Ok(()),
        },
    }
}

/// Resolves when a port-forward session must end, though its client is there.
pub(crate) async fn ports_end(
    dialer: &dyn PortDialer,
    idle: impl Future<Output = Duration> + Send,
    shutdown: impl Future<Output = ()> + Send,
) -> SessionEnding {
    tokio::select! {
        after = idle => SessionEnding::Idle(after),
        () = shutdown => SessionEnding::Stopping,
        end = dialer.ended() => SessionEnding::Ports(end),
    }
}

fn refused(port: u16, error: &CriError) -> String {
    format!("error forwarding port {port} to pod: {}", words(error))
}
