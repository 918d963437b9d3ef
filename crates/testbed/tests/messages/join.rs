//! Agents that can't join their cluster.

use std::net::ToSocketAddrs as _;

use rubelet_testbed::agent::AgentBuilder;
use rubelet_testbed::node::TIMEOUT;
use rubelet_testbed::{Agent, Cluster, TestRuntime};
use serde_json::{Value, json};
use sim_api::{Credentials, User};

use crate::own_words;
use crate::snapshot::Snapshot;

/// The name of the node.
const NODE: &str = "worker";
/// A name that no host has (RFC 6761).
const UNKNOWN_NAME: &str = "no-such-host.invalid";

#[test]
fn agents_that_cannot_join() {
    if !own_words() {
        return;
    }
    let runtime = TestRuntime::start().unwrap();
    let cluster = Cluster::start_model().unwrap();
    let other = Cluster::start_model().unwrap();
    let certificate = |cluster: &Cluster, user: &User| {
        Credentials::Certificate(cluster.api().client_certificate(user).unwrap())
    };
    let kubeconfig = |credentials: &Credentials| -> Value {
        serde_json::from_str(&cluster.api().kubeconfig(credentials)).unwrap()
    };
    let of_node = kubeconfig(&certificate(&cluster, &User::node(NODE)));
    let server = of_node["clusters"][0]["cluster"]["server"].clone();

    let mut away = of_node.clone();
    away["clusters"][0]["cluster"]["server"] = json!("https://127.0.0.1:1");
    let mut unknown_name = of_node.clone();
    unknown_name["clusters"][0]["cluster"]["server"] =
        json!(format!("https://{UNKNOWN_NAME}:6443"));
    let of_other = other.api().kubeconfig(&Credentials::None);
    let of_other: Value = serde_json::from_str(&of_other).unwrap();
    let mut other_ca = of_node.clone();
    let of_other_node = certificate(&other, &User::node(NODE));
    let of_other_node: Value =
        serde_json::from_str(&other.api().kubeconfig(&of_other_node)).unwrap();
    let ca = "certificate-authority-data";
    other_ca["clusters"][0]["cluster"][ca] = of_other["clusters"][0]["cluster"][ca].clone();

    let mut other_client = of_other_node;
    other_client["clusters"] = of_node["clusters"].clone();

    let mut said = Snapshot::default();
    said.replace(server.as_str().unwrap_or_default(), "SERVER");
    // The words of this machine's resolver: without a name server they are others.
    let unresolved = (UNKNOWN_NAME, 6443).to_socket_addrs().unwrap_err();
    said.replace(unresolved.to_string(), "REASON");
    // A name server may not answer at all.
    said.replace("no name server answered within 9s", "REASON");
    let mut row = |problem: &str, config: &Value, bootstrap: bool, part: &str| {
        let builder = builder(&cluster, &runtime, config, bootstrap);
        let mut agent = builder.start().unwrap();
        said.add(problem, &status(&agent, part));
        agent.kill9().unwrap();
    };
    row("The API server is away", &away, false, "refused");
    row(
        "The name of the API server is unknown",
        &unknown_name,
        false,
        UNKNOWN_NAME,
    );
    row(
        "The API server has a certificate of another CA",
        &other_ca,
        false,
        "certificate",
    );
    row(
        "The client certificate is of another CA",
        &other_client,
        false,
        "client certificate",
    );
    row(
        "The certificate is of another node",
        &kubeconfig(&certificate(&cluster, &User::node("other"))),
        false,
        "forbidden",
    );
    row(
        "The bootstrap token is wrong or has expired",
        &kubeconfig(&Credentials::Token("unknown.0123456789abcdef".to_owned())),
        true,
        "nauthorized",
    );
    row(
        "The request for a certificate is not approved yet",
        &kubeconfig(&cluster.api().bootstrap_credentials()),
        true,
        "approve",
    );
    said.compare("join");
}

/// An agent with this kubeconfig, or one that requests a certificate with it.
fn builder(
    cluster: &Cluster,
    runtime: &TestRuntime,
    kubeconfig: &Value,
    bootstrap: bool,
) -> AgentBuilder {
    let agent = Agent::builder(runtime);
    let (builder, file) = match bootstrap {
        true => (cluster.bootstrap(agent, NODE), "bootstrap.kubeconfig"),
        false => (cluster.join(agent, NODE), "node.kubeconfig"),
    };
    let builder = builder.unwrap();
    std::fs::write(cluster.path(file), kubeconfig.to_string()).unwrap();
    builder
}

/// What `rubelet status` says of the node once that line contains a text.
fn status(agent: &Agent, part: &str) -> String {
    let mut last = String::new();
    let seen = agent.wait_for("the node says what it waits for", TIMEOUT, |agent| {
        last = agent.cli(&["status"])?.stdout;
        let mut lines = last.lines();
        let line = lines.find(|line| line.starts_with("node:") && line.contains(part));
        Ok(line.map(str::to_owned))
    });
    let line = seen.unwrap_or_else(|error| panic!("{error:#}: {last}"));
    let words = line.split(' ');
    // The name of a request is made from a new key.
    let words = words.map(|word| match word.strip_prefix("node-csr-") {
        Some(rest) if rest.ends_with(':') => "node-csr-KEY:",
        Some(_) => "node-csr-KEY",
        None => word,
    });
    words.collect::<Vec<_>>().join(" ")
}
