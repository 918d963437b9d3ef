//! Container logs: the options of a request, and the response that follows the log.

use std::io;

use futures_util::{StreamExt as _, stream};
use jiff::Timestamp;
use rubelet_http_core::{
    query::{Query, invalid},
    resource::Resource,
    respond::{self, ApiResult},
    shutdown::Shutdown,
    status::ApiError,
};
use serde_json::Value;

use crate::{LogError, LogOutput, LogRequest, LogSince, LogStream, NodeView, Object};

/// Answers with the log of one container of a pod.
pub(crate) async fn log(
    view: &dyn NodeView,
    namespace: String,
    pod: String,
    query: &Query,
    shutdown: Shutdown,
) -> ApiResult {
    let items = view.list(Resource::Pods).items;
    let is_meant = |object: &&Object| *object.namespace == *namespace && *object.name == *pod;
    let object = items.iter().find(is_meant);
    let object = object.ok_or_else(|| ApiError::not_found(Resource::Pods, &pod))?;
    let container = container(
        &object.to_json(Resource::Pods),
        &pod,
        query.get("container"),
    )?;
    // The list must not be kept for as long as the log is followed.
    drop(items);
    let request = LogRequest {
        namespace,
        pod,
        container,
        follow: query.flag("follow")?,
        previous: query.flag("previous")?,
        since: since(query)?,
        timestamps: query.flag("timestamps")?,
        tail_lines: query.number("tailLines", 0)?,
        limit_bytes: query.number("limitBytes", 1)?,
        output: output(query)?,
    };
    let log = view
        .container_log(request)
        .await
        .map_err(|error| match error {
            LogError::BadRequest(message) => ApiError::bad_request(message),
            LogError::NotFound(message) => ApiError::gone(message),
            LogError::Internal(message) => ApiError::internal(message),
        })?;
    Ok(respond::text_pieces(until(shutdown, log)))
}

fn output(query: &Query) -> Result<Option<LogOutput>, ApiError> {
    let output = match query.get("stream") {
        None | Some("" | "All") => return Ok(None),
        Some("Stdout") => LogOutput::Stdout,
        Some("Stderr") => LogOutput::Stderr,
        Some(other) => {
            return Err(invalid("stream", other, "must be All, Stdout or Stderr"));
        }
    };
    if query.get("tailLines").is_some() {
        return Err(ApiError::bad_request(
            "`tailLines` and specific `stream` are mutually exclusive for now",
        ));
    }
    Ok(Some(output))
}

fn since(query: &Query) -> Result<Option<LogSince>, ApiError> {
    let seconds = query.number("sinceSeconds", 1)?.map(LogSince::Seconds);
    let time = query
        .get("sinceTime")
        .filter(|text| !text.is_empty())
        .map(|text| {
            let time = text.parse::<Timestamp>();
            time.map(LogSince::Time)
                .map_err(|_| invalid("sinceTime", text, "must be a time in RFC 3339"))
        });
    match (seconds, time.transpose()?) {
        (Some(_), Some(_)) => Err(ApiError::bad_request(
            "at most one of `sinceTime` or `sinceSeconds` may be specified",
        )),
        (seconds, time) => Ok(seconds.or(time)),
    }
}

/// The container that is meant: the named one, or the only one.
fn container(pod: &Value, name: &str, wanted: Option<&str>) -> Result<String, ApiError> {
    let names = |list: &str| -> Vec<String> {
        let entries = pod["spec"][list]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let names = entries
            .iter()
            .filter_map(|container| container["name"].as_str());
        names.map(str::to_owned).collect()
    };
    let (init, regular) = (names("initContainers"), names("containers"));
    let ephemeral = names("ephemeralContainers");
    match (
        wanted.filter(|wanted| !wanted.is_empty()),
        regular.as_slice(),
    ) {
        (None, [only]) => Ok(only.clone()),
        (None, _) => {
            let all = [init, regular, ephemeral].concat().join(" ");
            Err(ApiError::bad_request(format!(
                "a container name must be specified for pod {name}, choose one of: [{all}]"
            )))
        }
        (Some(wanted), _)
            if init
                .iter()
                .chain(&regular)
                .chain(&ephemeral)
                .any(|name| name == wanted) =>
        {
            Ok(wanted.to_owned())
        }
        (Some(wanted), _) => {
            let init = init.iter().map(|name| format!("{name} (init)"));
            let ephemeral = ephemeral.iter().map(|name| format!("{name} (ephem)"));
            let all = regular.iter().cloned().chain(ephemeral).chain(init);
            let all: Vec<String> = all.collect();
            Err(ApiError::bad_request(format!(
                "container {wanted} is not valid for pod {name}; it has {}",
                all.join(", ")
            )))
        }
    }
}

/// The log, truncated when the agent stops: a clean end would mean that the container has exited.
pub fn until(shutdown: Shutdown, log: LogStream) -> LogStream {
    Box::pin(stream::unfold(Some((shutdown, log)), |state| async move {
        let (mut shutdown, mut log) = state?;
        // Cancel safe: a stream keeps what it has not returned.
        let piece = tokio::select! {
            biased;
            () = shutdown.requested() => Some(Err(io::Error::other("the agent stops"))),
            piece = log.next() => piece,
        };
        match piece? {
            Ok(bytes) => Some((Ok(bytes), Some((shutdown, log)))),
            Err(error) => {
                tracing::debug!(%error, "Container log stream broke");
                Some((Err(error), None))
            }
        }
    }))
}
