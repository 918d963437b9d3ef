//! Waiting for a change of one pod.

use std::time::Duration;

use http::StatusCode;
use rubelet_server::Resource;
use serde_json::Value;

use super::{
    agent::{Agent, CallError},
    failure::CommandError,
    watch::Selection,
};

/// Delay before listing again when a watch has ended.
pub(super) const PAUSE: Duration = Duration::from_millis(200);

/// Calls `look` with the pod's current state and after each change, with `None` if it is gone,
/// until it returns a value. Retries while the agent does not answer.
pub(super) async fn until<T>(
    agent: &Agent,
    pod: &Value,
    mut look: impl FnMut(Option<&Value>) -> Option<T>,
) -> Result<T, CommandError> {
    let mut selection = Selection {
        resource: Resource::Pods,
        namespace: None,
        labels: None,
        fields: None,
    };
    selection.narrow_to(pod);
    let uid = &pod["metadata"]["uid"];
    loop {
        match agent.list(&selection.list_url()).await {
            Ok(listed) => {
                let mut items = listed.items.iter();
                let found = items.find(|found| found["metadata"]["uid"] == *uid);
                if let Some(said) = look(found) {
                    return Ok(said);
                }
                let changes = changes(agent, &selection, &listed.version, uid, &mut look);
                if let Some(said) = changes.await? {
                    return Ok(said);
                }
            }
            Err(CallError::Away(_) | CallError::Broken(_)) => {}
            Err(error) => return Err(error.into()),
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Follows one watch until `look` returns a value or the watch ends.
async fn changes<T>(
    agent: &Agent,
    selection: &Selection,
    version: &str,
    uid: &Value,
    look: &mut impl FnMut(Option<&Value>) -> Option<T>,
) -> Result<Option<T>, CommandError> {
    let mut stream = match agent.open(&selection.watch_url(version)).await {
        Ok(stream) => stream,
        Err(CallError::Refused(code, error)) if code != StatusCode::GONE => {
            return Err(error.into());
        }
        Err(_) => return Ok(None),
    };
    let mut buffer = Vec::new();
    while let Some(Ok(piece)) = stream.next().await {
        buffer.extend_from_slice(&piece);
        while let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = buffer.drain(..=end).collect();
            let event: Value = serde_json::from_slice(&line).unwrap_or_default();
            let object = &event["object"];
            let seen = match event["type"].as_str() {
                _ if object["metadata"]["uid"] != *uid => continue,
                Some("ADDED" | "MODIFIED") => Some(object),
                Some("DELETED") => None,
                _ => continue,
            };
            if let Some(said) = look(seen) {
                return Ok(Some(said));
            }
        }
    }
    Ok(None)
}
