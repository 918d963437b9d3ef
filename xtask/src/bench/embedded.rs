//! The embedded runtime: in an agent, and alone.

pub(super) mod copies;
pub(super) mod hundred;
pub(super) mod pods;
pub(super) mod restarts;
pub(super) mod takeover;
pub(super) mod thousand;

use anyhow::Result;
use rubelet_testbed::agent::AgentBuilder;
use rubelet_testbed::{Agent, Embedded};

use super::Request;
use super::hundred_pods::{file_name, manifest};

/// An agent without a runtime endpoint and with this many pods in its directory, not started yet.
pub(super) fn agent_with(request: &Request<'_>, embedded: &Embedded, pods: usize) -> AgentBuilder {
    let mut builder = Agent::builder(embedded).program(&request.program);
    for number in 0..pods {
        builder = builder.manifest(file_name(number), manifest(number));
    }
    builder
}

/// The environment of the release binary, images included, with the run directory in memory as on
/// users' machines.
pub(super) fn environment(request: &Request<'_>) -> Result<Embedded> {
    Embedded::start_program(&request.program)?.with_run_dir_in_memory()
}
