//! From an endpoint to its response, for an authorized user.

use http::{HeaderValue, Response, StatusCode, header};
use rubelet_http_core::{
    query::Query,
    resource::Resource,
    respond::{self, Body},
    shutdown::Shutdown,
};
use rubelet_server::{
    LogError, LogRequest, NodeView, Object, StatsDocument, StatsRequest,
    health::{self, HealthRoot},
    log,
};

use super::{
    endpoint::{Endpoint, EndpointOptions},
    log_options,
    plain_text::{nowhere, text},
    pod_list, session, system_logs,
};

/// Answers a request.
pub(super) async fn answer(
    view: &dyn NodeView,
    endpoint: Endpoint,
    options: &EndpointOptions,
    query: Option<&str>,
    shutdown: Shutdown,
) -> Response<Body> {
    match endpoint {
        Endpoint::Nowhere => nowhere(),
        Endpoint::NotFound => text(StatusCode::NOT_FOUND, "404: Page Not Found"),
        Endpoint::WrongMethod(allowed) => {
            let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "405: Method Not Allowed");
            let allowed = HeaderValue::from_static(allowed);
            response.headers_mut().insert(header::ALLOW, allowed);
            response
        }
        Endpoint::SwitchedOff(why) => text(StatusCode::METHOD_NOT_ALLOWED, why),
        Endpoint::NotServed(why) => text(StatusCode::NOT_IMPLEMENTED, why),
        Endpoint::MetricsNotServed(why) => {
            // Some parsers read the body whatever the code is, and choke on a line that is no metric
            // and no comment.
            let mut response = respond::metrics(format!("# {why}"));
            *response.status_mut() = StatusCode::NOT_IMPLEMENTED;
            response
        }
        Endpoint::Healthz(check) => healthz(view, check.as_deref(), query),
        Endpoint::Pods => pod_list::pods(view),
        Endpoint::RunningPods => pod_list::running_pods(view),
        Endpoint::Metrics => {
            let logs = stats(view, StatsDocument::LogMetrics).await;
            respond::metrics(view.metrics() + &logs)
        }
        Endpoint::ProbeMetrics => respond::metrics(view.probe_metrics()),
        Endpoint::ResourceMetrics => {
            let document = StatsDocument::ResourceMetrics;
            respond::metrics(stats(view, document).await)
        }
        Endpoint::CadvisorMetrics => {
            let document = StatsDocument::CadvisorMetrics;
            respond::metrics(stats(view, document).await)
        }
        Endpoint::StatsSummary => match Query::parse(query) {
            Ok(query) => {
                let document = StatsDocument::summary(&query);
                respond::json_bytes(stats(view, document).await.into())
            }
            Err(error) => text(error.code, &error.message),
        },
        Endpoint::Configz => {
            let config = serde_json::json!({ "kubeletconfig": view.config() });
            respond::json(&config)
        }
        Endpoint::ContainerLogs {
            namespace,
            pod,
            container,
        } => {
            let asked = LogTarget {
                namespace,
                pod,
                container,
            };
            container_logs(view, asked, options, query, shutdown).await
        }
        Endpoint::SystemLogs { path, slash } => {
            system_logs::answer(view, path, slash, shutdown).await
        }
        Endpoint::Run(path) => session::run(view, path, query).await,
        // Needs the whole request; see `session`.
        Endpoint::Session(..) => nowhere(),
    }
}

/// Numbers that are as old as the node allows: many clients may ask, each at its own interval.
async fn stats(view: &dyn NodeView, document: StatsDocument) -> String {
    let request = StatsRequest {
        document,
        live: false,
    };
    view.stats(request).await
}

fn healthz(view: &dyn NodeView, check: Option<&str>, query: Option<&str>) -> Response<Body> {
    let answer = Query::parse(query)
        .and_then(|query| health::health(view, HealthRoot::Healthz, check, &query));
    answer.unwrap_or_else(|error| text(error.code, &error.message))
}

/// Whose log is requested.
struct LogTarget {
    namespace: String,
    pod: String,
    container: String,
}

async fn container_logs(
    view: &dyn NodeView,
    asked: LogTarget,
    options: &EndpointOptions,
    query: Option<&str>,
    shutdown: Shutdown,
) -> Response<Body> {
    let wanted = match log_options::read(query) {
        Ok(wanted) => wanted,
        Err((code, why)) => return text(code, why),
    };
    if let Err(why) = check_names(view, &asked) {
        return text(StatusCode::NOT_FOUND, &why);
    }
    if let Some(output) = wanted.output
        && !options.split_log_streams
    {
        let why = format!(
            "unable to return the given log stream: {:?}. Please enable PodLogsQuerySplitStreams \
             feature gate in kubelet",
            output.as_str()
        );
        return text(StatusCode::BAD_REQUEST, &why);
    }
    let request = LogRequest {
        namespace: asked.namespace,
        pod: asked.pod,
        container: asked.container,
        follow: wanted.follow,
        previous: wanted.previous,
        since: wanted.since,
        timestamps: wanted.timestamps,
        tail_lines: wanted.tail_lines,
        limit_bytes: wanted.limit_bytes,
        output: wanted.output,
    };
    match view.container_log(request).await {
        Ok(pieces) => respond::text_pieces(log::until(shutdown, pieces)),
        Err(LogError::BadRequest(why)) => text(StatusCode::BAD_REQUEST, &why),
        Err(LogError::NotFound(why)) => text(StatusCode::NOT_FOUND, &why),
        Err(LogError::Internal(why)) => text(StatusCode::INTERNAL_SERVER_ERROR, &why),
    }
}

fn check_names(view: &dyn NodeView, asked: &LogTarget) -> Result<(), String> {
    let items = view.list(Resource::Pods).items;
    let is_meant =
        |object: &&Object| *object.namespace == *asked.namespace && *object.name == *asked.pod;
    let object = items
        .iter()
        .find(is_meant)
        .ok_or_else(|| format!("pod {:?} does not exist", asked.pod))?;
    let pod = object.body.render();
    let lists = ["containers", "initContainers", "ephemeralContainers"];
    let mut names = lists
        .iter()
        .filter_map(|list| pod["spec"][list].as_array())
        .flatten()
        .filter_map(|container| container["name"].as_str());
    if names.any(|name| name == asked.container) {
        return Ok(());
    }
    Err(format!(
        "container {:?} not found in pod {:?}",
        asked.container, asked.pod
    ))
}
