//! The progress of a container's restart.

use serde_json::Value;

/// The progress.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// A new instance runs, or has completed already.
    Done,
    /// A new instance was started and failed.
    Failed(String),
    /// Not yet; the container's current state.
    Waits(String),
}

/// Checks whether another instance than `replaced` was started.
pub(super) fn progress(pod: &Value, container: &str, replaced: &str) -> Progress {
    let lists = [
        "initContainerStatuses",
        "containerStatuses",
        "ephemeralContainerStatuses",
    ];
    let status = lists
        .iter()
        .filter_map(|list| pod["status"][list].as_array())
        .flatten()
        .find(|status| status["name"] == container);
    let Some(status) = status else {
        return Progress::Waits("is not there yet".to_owned());
    };
    let (state, last) = (&status["state"], &status["lastState"]["terminated"]);
    let is_new = |id: &Value| {
        let id = id.as_str().unwrap_or_default();
        !id.is_empty() && id != replaced
    };
    if state["running"].is_object() {
        return match is_new(&status["containerID"]) {
            true => Progress::Done,
            false => Progress::Waits("is being stopped".to_owned()),
        };
    }
    let ended = [&state["terminated"], last]
        .into_iter()
        .find(|end| end.is_object() && is_new(&end["containerID"]));
    if let Some(end) = ended {
        return match end["exitCode"].as_i64() {
            Some(0) => Progress::Done,
            code => Progress::Failed(format!(
                "was restarted and ended with exit code {}",
                code.unwrap_or(-1)
            )),
        };
    }
    let waiting = &state["waiting"];
    match (waiting["reason"].as_str(), waiting["message"].as_str()) {
        (Some(reason), Some(message)) => Progress::Waits(format!("waits ({reason}: {message})")),
        (Some(reason), None) => Progress::Waits(format!("waits ({reason})")),
        _ => Progress::Waits("has not been started again yet".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(list: &str, status: Value) -> Progress {
        let mut status = status;
        status["name"] = "web".into();
        progress(&json!({ "status": { list: [status] } }), "web", "c://old")
    }

    #[test]
    fn a_restart_is_done_when_another_instance_runs() {
        let running = json!({ "running": { "startedAt": "2026-03-01T12:00:00Z" } });
        for list in ["containerStatuses", "initContainerStatuses"] {
            let new = json!({ "containerID": "c://new", "state": running });
            assert_eq!(of(list, new), Progress::Done);
            let old = json!({ "containerID": "c://old", "state": running });
            assert_eq!(
                of(list, old),
                Progress::Waits("is being stopped".to_owned())
            );
        }
    }

    #[test]
    fn an_instance_that_has_already_ended_counts_by_its_exit_code() {
        let end =
            |id: &str, code: i32| json!({ "terminated": { "containerID": id, "exitCode": code } });
        for (status, expected) in [
            (json!({ "state": end("c://new", 0) }), Progress::Done),
            (
                json!({ "state": end("c://new", 3) }),
                Progress::Failed("was restarted and ended with exit code 3".to_owned()),
            ),
            (
                json!({ "state": { "waiting": { "reason": "CrashLoopBackOff" } },
                        "lastState": end("c://new", 3) }),
                Progress::Failed("was restarted and ended with exit code 3".to_owned()),
            ),
            (
                json!({ "state": end("c://old", 3) }),
                Progress::Waits("has not been started again yet".to_owned()),
            ),
            (
                json!({ "state": { "waiting": { "reason": "ErrImagePull", "message": "no" } },
                        "lastState": end("c://old", 3) }),
                Progress::Waits("waits (ErrImagePull: no)".to_owned()),
            ),
        ] {
            assert_eq!(
                of("containerStatuses", status.clone()),
                expected,
                "{status}"
            );
        }
        assert_eq!(
            progress(&json!({}), "web", ""),
            Progress::Waits("is not there yet".to_owned())
        );
    }
}
