//! From where a probe is sent: from this command, or from inside a pod, where the agent runs it. Both
//! report in lines of JSON.

use std::convert::Infallible;

use anyhow::{Context as _, anyhow};
use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt as _, stream::poll_fn};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use rubelet_netprobe::{
    request::{ProbeInputs, ProbeRequest},
    sockets::OwnNamespace,
};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;

use super::{engine::Engine, resolve::resolve};
use crate::{
    agent::{Agent, ResponseStream},
    failure::CommandError,
    signals::EndSignals,
    target::{find_pod, parse_pod, pod_url},
};

/// The longest report that is accepted. That of a hop with all its probes is far shorter.
const LONGEST_LINE: usize = 1 << 20;

/// From where a probe is sent.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct PlaceArgs {
    /// Probe from inside a pod: NAME, pod/NAME, or a unique prefix of its name
    #[arg(long, value_name = "POD")]
    pod: Option<String>,
    /// Namespace of that pod
    #[arg(
        long,
        value_name = "NAMESPACE",
        default_value = "default",
        requires = "pod"
    )]
    namespace: String,
}

impl PlaceArgs {
    /// Starts a probe.
    pub(super) async fn start(
        &self,
        agent: &Agent,
        probe: ProbeRequest,
    ) -> Result<Reports, CommandError> {
        match &self.pod {
            None => own(probe).await,
            Some(pod) => start_in_pod(agent, pod, &self.namespace, &probe).await,
        }
    }
}

/// Has the agent run a probe in the network namespace of a pod.
pub(super) async fn start_in_pod(
    agent: &Agent,
    pod: &str,
    namespace: &str,
    probe: &ProbeRequest,
) -> Result<Reports, CommandError> {
    let pod = find_pod(agent, parse_pod(pod)?, Some(namespace)).await?;
    let url = pod_url(&pod, "net").with("probe", serde_json::to_string(probe)?);
    let signals = EndSignals::catch()?;
    // Nothing is ever sent: the end of the body stops the probe.
    let (running, mut held) = mpsc::channel::<Bytes>(1);
    let frames = poll_fn(move |context| held.poll_recv(context));
    let frames = frames.map(|bytes| Ok::<_, Infallible>(Frame::data(bytes)));
    let body = StreamBody::new(frames).boxed_unsync();
    Ok(Reports::OfPod(Box::new(PodReports {
        pieces: agent.exchange(&url, body).await?,
        unread: BytesMut::new(),
        running: Some(running),
        signals,
    })))
}

/// Runs it in a thread of this process.
async fn own(probe: ProbeRequest) -> Result<Reports, CommandError> {
    let mut addresses = Vec::with_capacity(probe.targets().len());
    for name in probe.targets() {
        addresses.push(resolve(name, probe.family()).await?);
    }
    let engine = Engine::start(move |stop, line| {
        Ok(probe.run(&addresses, ProbeInputs::None, &OwnNamespace, stop, line)?)
    })?;
    Ok(Reports::Own(engine))
}

/// The reports of a probe.
pub(super) enum Reports {
    /// One that runs in this process.
    Own(Engine),
    /// One that the agent runs.
    OfPod(Box<PodReports>),
}

impl Reports {
    /// The next report; `None` at the end. A signal stops the probe, which then reports its results.
    pub(super) async fn next<E: DeserializeOwned>(&mut self) -> Result<Option<E>, CommandError> {
        let line = match self {
            Self::Own(engine) => engine.next().await,
            Self::OfPod(reports) => reports.next().await?,
        };
        let Some(line) = line else { return Ok(None) };
        let event = serde_json::from_str(&line).context("a report cannot be read")?;
        Ok(Some(event))
    }

    /// Waits for the end; the error with which the probe ended, if there was one.
    pub(super) fn finish(self) -> Result<(), CommandError> {
        match self {
            Self::Own(engine) => engine.finish(),
            Self::OfPod(_) => Ok(()),
        }
    }
}

/// The reports of a probe that the agent runs.
pub(super) struct PodReports {
    pieces: ResponseStream,
    unread: BytesMut,
    /// Keeps the request open.
    running: Option<mpsc::Sender<Bytes>>,
    signals: EndSignals,
}

impl PodReports {
    async fn next(&mut self) -> anyhow::Result<Option<String>> {
        loop {
            if let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                let line = self.unread.split_to(end + 1);
                return Ok(Some(String::from_utf8_lossy(&line).into_owned()));
            }
            if self.unread.len() > LONGEST_LINE {
                return Err(anyhow!("the agent's report is too long"));
            }
            // Cancel safe: a body keeps what it has not returned, and a signal is kept.
            let piece = tokio::select! {
                piece = self.pieces.next() => piece,
                _ = self.signals.next(), if self.running.is_some() => {
                    self.running = None;
                    continue;
                }
            };
            let Some(piece) = piece else { return Ok(None) };
            let piece = piece.context("the probe failed, or the agent closed the connection")?;
            self.unread.extend_from_slice(&piece);
        }
    }
}
