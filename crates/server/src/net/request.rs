//! Requests for probes of the network, and their answers.

use std::{io, pin::Pin};

use bytes::Bytes;
use futures_core::Stream;
use serde_json::Value;

use crate::PodRef;

/// Lines of JSON. An error truncates them.
pub type NetStream = Pin<Box<dyn Stream<Item = Result<Bytes, io::Error>> + Send>>;

/// A request for a probe from inside a pod.
pub struct NetRequest {
    /// The pod.
    pub pod: PodRef,
    /// The probe, as a document.
    pub probe: Value,
    /// Ends when the client wants the probe to stop and to report its results; `None` if it goes on
    /// until it is done.
    pub stop: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

/// Why a probe is not run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NetRefusal {
    /// There is no pod of that name.
    #[error("pod does not exist")]
    NoPod,
    /// The pod has no network at the moment.
    #[error("the pod has no sandbox that is ready")]
    NotReady,
    /// The document is no probe, or a target can't be resolved.
    #[error("{0}")]
    Invalid(String),
    /// Too many probes run.
    #[error("too many probes are under way; try again")]
    Busy,
    /// The node failed.
    #[error("{0}")]
    Internal(String),
}
