//! The embedded runtime: the agent that runs its pods by itself, and the runtime alone.

pub(super) mod hundred;
pub(super) mod pods;
pub(super) mod restarts;
pub(super) mod thousand;

use anyhow::Result;
use rubelet_testbed::agent::AgentBuilder;
use rubelet_testbed::{Agent, Embedded};

use super::Request;
use super::hundred_pods::{file_name, manifest};

/// An agent without a runtime endpoint and with so many pods in its folder, not started yet.
fn agent_with(request: &Request<'_>, embedded: &Embedded, pods: usize) -> AgentBuilder {
    let mut builder = Agent::builder(embedded).program(&request.program);
    for number in 0..pods {
        builder = builder.manifest(file_name(number), manifest(number));
    }
    builder
}

/// The surroundings that the release binary gets, images included.
fn surroundings(request: &Request<'_>) -> Result<Embedded> {
    Embedded::start_program(&request.program)
}
