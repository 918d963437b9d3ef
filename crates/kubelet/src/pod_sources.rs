//! What the agent is to run.

use std::sync::Arc;

use rubelet_sources::desired::Desired;
use tokio::sync::watch;

/// Desired pods of each source, level-triggered.
pub type PodSources = Vec<watch::Receiver<Arc<Desired>>>;
