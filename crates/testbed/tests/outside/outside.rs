//! Common parts of tests that use `rubelet` from outside.

#![allow(
    dead_code,
    unused_imports,
    reason = "each test program uses only a part of it"
)]

pub(crate) mod chance;
pub(crate) mod children;
pub(crate) mod http_server;
pub(crate) mod kubectl;
pub(crate) mod pod_text;
pub(crate) mod raw_http;
pub(crate) mod relay;
pub(crate) mod states;
pub(crate) mod terminal;
pub(crate) mod truth;

use rubelet_testbed::agent::AgentRuntime;
use rubelet_testbed::{Agent, TestRuntime};

pub(crate) use pod_text::PodText;
pub(crate) use rubelet_testbed::node::TIMEOUT;
pub(crate) use truth::Instances;

/// An agent with these pods in its directory, one per file, on a private runtime: two agents on one
/// runtime would remove each other's pods. All pods are ready.
pub(crate) fn with_pods(pods: &[PodText]) -> (TestRuntime, Agent) {
    let runtime = TestRuntime::start().unwrap();
    let agent = agent_on(&runtime, pods);
    (runtime, agent)
}

/// An agent with these pods in its directory, one per file; all pods are ready.
pub(crate) fn agent_on(runtime: &impl AgentRuntime, pods: &[PodText]) -> Agent {
    let mut builder = Agent::builder(runtime);
    for pod in pods {
        builder = builder.manifest(pod.file(), pod.yaml());
    }
    let agent = builder.start().unwrap();
    states::wait_all_ready(&agent, pods.len());
    agent
}
