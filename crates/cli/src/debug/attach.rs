//! Waits until an ephemeral container runs, and attaches to it.

use anyhow::{Context as _, anyhow};
use rubelet_server::Resource;
use rubelet_streaming::SessionKind;
use serde_json::Value;

use super::super::{
    agent::Agent,
    containers,
    failure::CommandError,
    pod_watch,
    session::{Session, StreamArgs},
    target::{name_of, namespace_of},
    terminal::Terminal,
    url::Url,
};

/// State of the container to attach to.
#[derive(Debug, PartialEq, Eq)]
enum Readiness {
    Runs,
    /// It has run already, with this exit code.
    Ended(i64),
    /// It does not run, and needs a fix to run; why.
    Stuck(String),
    Gone,
}

/// Waits until the container runs, and attaches to it.
pub(super) async fn attach(
    agent: &Agent,
    pod: &Value,
    name: &str,
    streams: StreamArgs,
    namespace: &str,
    terminal: &mut Terminal<'_>,
) -> Result<(), CommandError> {
    let mut now = Value::Null;
    let look = |pod: Option<&Value>| {
        now = pod.cloned().unwrap_or_default();
        readiness(pod, name)
    };
    let ready = tokio::select! {
        ready = pod_watch::until(agent, pod, look) => ready?,
        interrupted = tokio::signal::ctrl_c() => {
            interrupted?;
            return Err(anyhow!("interrupted; container {name} stays part of the pod").into());
        }
    };
    let pod_name = name_of(pod);
    match ready {
        Readiness::Runs => {}
        Readiness::Ended(code) => {
            print_log(agent, pod, name, terminal).await?;
            if code == 0 {
                return Ok(());
            }
            terminal.note(&format!("command terminated with exit code {code}"));
            return Err(CommandError::Exit(
                u8::try_from(code & 0xff).unwrap_or(1).max(1),
            ));
        }
        Readiness::Stuck(why) => {
            return Err(anyhow!(
                "container {name} cannot run: {why}; once it runs, `rubelet attach pod/{pod_name} -c {name} -it{namespace}` \
                 attaches to it"
            )
            .into());
        }
        Readiness::Gone => return Err(anyhow!("pod {pod_name} is gone").into()),
    }
    let session = Session {
        kind: SessionKind::Attach,
        pod: &now,
        container: name,
        command: &[],
        args: streams,
    };
    session.run(agent, terminal).await
}

fn readiness(pod: Option<&Value>, name: &str) -> Option<Readiness> {
    let Some(pod) = pod else {
        return Some(Readiness::Gone);
    };
    let state = &containers::status(pod, name)?["state"];
    if state["running"].is_object() {
        return Some(Readiness::Runs);
    }
    let ended = &state["terminated"];
    if ended.is_object() {
        let reason = ended["reason"].as_str().unwrap_or_default();
        let message = ended["message"].as_str().unwrap_or_default();
        // A container that never started has no log.
        return Some(match reason {
            "StartError" | "ContainerCannotRun" => Readiness::Stuck(format!("{reason}: {message}")),
            _ => Readiness::Ended(ended["exitCode"].as_i64().unwrap_or(1)),
        });
    }
    let waiting = &state["waiting"];
    let reason = waiting["reason"].as_str()?;
    // Waiting reasons of a container that is starting.
    if matches!(reason, "ContainerCreating" | "PodInitializing" | "Pending") {
        return None;
    }
    let message = waiting["message"].as_str().filter(|text| !text.is_empty());
    Some(Readiness::Stuck(match message {
        Some(message) => format!("{reason}: {message}"),
        None => reason.to_owned(),
    }))
}

/// Prints what the container wrote before the session attached.
async fn print_log(
    agent: &Agent,
    pod: &Value,
    name: &str,
    terminal: &mut Terminal<'_>,
) -> Result<(), CommandError> {
    let url = Url::new(&Resource::Pods.path(Some(namespace_of(pod))))
        .segment(name_of(pod))
        .segment("log")
        .with("container", name);
    let mut log = agent.open(&url).await?;
    while let Some(piece) = log.next().await {
        terminal.print(piece.context("the log ended early: the agent closed the connection")?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_container_is_attached_to_as_soon_as_it_runs_and_not_waited_for_in_vain() {
        let stuck = |why: &str| Some(Readiness::Stuck(why.to_owned()));
        for (state, expected) in [
            (json!(null), None),
            (
                json!({ "waiting": { "reason": "ContainerCreating" } }),
                None,
            ),
            (json!({ "running": {} }), Some(Readiness::Runs)),
            (
                json!({ "terminated": { "exitCode": 2, "reason": "Error" } }),
                Some(Readiness::Ended(2)),
            ),
            (
                json!({ "terminated": { "exitCode": 128, "reason": "StartError", "message": "no sh" } }),
                stuck("StartError: no sh"),
            ),
            (
                json!({ "waiting": { "reason": "ErrImagePull", "message": "no such image" } }),
                stuck("ErrImagePull: no such image"),
            ),
            (
                json!({ "waiting": { "reason": "ImagePullBackOff" } }),
                stuck("ImagePullBackOff"),
            ),
        ] {
            let pod = json!({ "status": { "ephemeralContainerStatuses": [
                { "name": "other", "state": { "running": {} } },
                { "name": "look", "state": state },
            ]}});
            assert_eq!(readiness(Some(&pod), "look"), expected, "{state}");
        }
        assert_eq!(readiness(Some(&json!({})), "look"), None);
        assert_eq!(readiness(None, "look"), Some(Readiness::Gone));
    }
}
