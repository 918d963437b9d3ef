//! Where pods come from: a directory, a file or a URL; and handling of invalid manifests.

#![allow(
    clippy::unwrap_used,
    reason = "the location of a failure says which check failed"
)]

#[path = "../outside/outside.rs"]
mod outside;

mod broken;
mod last_good;
mod names;
mod place;
mod restart;
mod url;

use outside::TIMEOUT;
use rubelet_testbed::Agent;
use serde_json::Value;

/// The id of a running pod's container `main`, from the API.
fn container_id(pod: &Value) -> String {
    let status = &pod["status"]["containerStatuses"][0];
    assert_eq!(status["name"], "main", "{pod:#}");
    status["containerID"].as_str().unwrap().to_owned()
}

/// Waits until the message of the manifest contains this text.
fn wait_words(agent: &Agent, file: &str, words: &str) {
    agent
        .wait_for(
            &format!("the manifest {file} says {words}"),
            TIMEOUT,
            |agent| {
                let found = outside::states::manifest(agent, file)?;
                let says = |manifest: &Value| {
                    let message = manifest["status"]["message"].as_str();
                    message.is_some_and(|message| message.contains(words))
                };
                Ok(found.filter(says).map(drop))
            },
        )
        .unwrap();
}
