//! Where pods come from: a directory, a file or a URL, and what becomes of manifests that can't be used.

#![allow(
    clippy::unwrap_used,
    reason = "what fails in a test says so by its place"
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

/// The id of the one container `main` of a pod that runs, as the API tells it.
fn container_id(pod: &Value) -> String {
    let status = &pod["status"]["containerStatuses"][0];
    assert_eq!(status["name"], "main", "{pod:#}");
    status["containerID"].as_str().unwrap().to_owned()
}

/// Waits until the message of the manifest holds these words.
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
