//! The endpoints of the kubelet API by path, and the router's responses to other paths.

use http::Method;
use rubelet_streaming::SessionKind;

use super::{path::CleanPath, session_path::SessionPath};

/// The enabled endpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndpointOptions {
    /// `enableDebuggingHandlers`: logs, exec and others.
    pub debugging_handlers: bool,
    /// `enableSystemLogHandler`.
    pub system_log_handler: bool,
    /// `enableProfilingHandler`.
    pub profiling_handler: bool,
    /// `enableDebugFlagsHandler`.
    pub debug_flags_handler: bool,
    /// Gate `PodLogsQuerySplitStreams`: a log may be requested by stream.
    pub split_log_streams: bool,
}

impl Default for EndpointOptions {
    fn default() -> Self {
        Self {
            debugging_handlers: true,
            system_log_handler: true,
            profiling_handler: true,
            debug_flags_handler: true,
            split_log_streams: false,
        }
    }
}

impl EndpointOptions {
    /// The plain port: it has what needs no right, and nothing else.
    pub(super) const READ_ONLY: Self = Self {
        debugging_handlers: false,
        system_log_handler: false,
        profiling_handler: false,
        debug_flags_handler: false,
        split_log_streams: false,
    };
}

/// The target of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Endpoint {
    /// The path never exists: answered to anybody, as in the kubelet.
    Nowhere,
    /// Below a path that exists; answered only to authorized users.
    NotFound,
    /// The path exists for other methods.
    WrongMethod(&'static str),
    /// Disabled; the text says by which option.
    SwitchedOff(&'static str),
    /// Part of the kubelet's API that this agent does not serve; the text says what to use.
    NotServed(&'static str),
    /// As [`Self::NotServed`], for a path of metrics: who reads them expects their format.
    MetricsNotServed(&'static str),
    Healthz(Option<String>),
    Pods,
    RunningPods,
    Metrics,
    ProbeMetrics,
    ResourceMetrics,
    CadvisorMetrics,
    StatsSummary,
    Configz,
    ContainerLogs {
        namespace: String,
        pod: String,
        container: String,
    },
    /// Names below `/var/log`.
    SystemLogs {
        path: Vec<String>,
        /// Whether the path ends with a slash.
        slash: bool,
    },
    Session(SessionKind, SessionPath),
    Run(SessionPath),
}

const DEBUG_DISABLED: Endpoint = Endpoint::SwitchedOff("Debug endpoints are disabled.\n");

/// Finds what a path stands for. `None` is an ambiguous path.
pub(super) fn endpoint(
    method: &Method,
    path: Option<&CleanPath>,
    options: &EndpointOptions,
) -> Endpoint {
    let Some(path) = path else {
        return Endpoint::Nowhere;
    };
    let segments = path.segments();
    if let Some(found) = always(method, &segments, path.ends_with_slash()) {
        return found;
    }
    if options.debugging_handlers {
        debugging(method, &segments, path.ends_with_slash(), options)
    } else {
        let off = matches!(
            segments.as_slice(),
            [
                "run"
                    | "exec"
                    | "attach"
                    | "portForward"
                    | "containerLogs"
                    | "runningpods"
                    | "logs",
                ..
            ] | ["debug", "pprof", ..]
        );
        if off {
            DEBUG_DISABLED
        } else {
            Endpoint::Nowhere
        }
    }
}

/// Endpoints that need no option, and are on the plain port as well.
fn always(method: &Method, segments: &[&str], slash: bool) -> Option<Endpoint> {
    let found = match segments {
        ["pods"] => only(method, &["GET"], Endpoint::Pods),
        ["pods", ..] => Endpoint::NotFound,
        ["stats", "summary"] => only(method, &["GET", "POST"], Endpoint::StatsSummary),
        ["stats", ..] => Endpoint::NotFound,
        // These match their exact path and every method, as in the kubelet.
        _ if slash => return None,
        ["healthz"] => Endpoint::Healthz(None),
        ["healthz", check @ ("ping" | "log" | "syncloop")] => {
            Endpoint::Healthz(Some((*check).to_owned()))
        }
        ["metrics"] => Endpoint::Metrics,
        ["metrics", "probes"] => Endpoint::ProbeMetrics,
        ["metrics", "resource"] => Endpoint::ResourceMetrics,
        ["metrics", "cadvisor"] => Endpoint::CadvisorMetrics,
        ["metrics", "slis"] => Endpoint::MetricsNotServed(
            "this node keeps no record of its health checks; ask /healthz, or see /metrics\n",
        ),
        _ => return None,
    };
    Some(found)
}

fn debugging(
    method: &Method,
    segments: &[&str],
    slash: bool,
    options: &EndpointOptions,
) -> Endpoint {
    const GET: &[&str] = &["GET"];
    const GET_POST: &[&str] = &["GET", "POST"];
    match segments {
        ["containerLogs", namespace, pod, container] => {
            let found = Endpoint::ContainerLogs {
                namespace: (*namespace).to_owned(),
                pod: (*pod).to_owned(),
                container: (*container).to_owned(),
            };
            only(method, GET, found)
        }
        ["runningpods"] => only(method, GET, Endpoint::RunningPods),
        ["exec", pod @ .., container] if (2..=3).contains(&pod.len()) => {
            let path = SessionPath::new(pod, container);
            only(method, GET_POST, Endpoint::Session(SessionKind::Exec, path))
        }
        ["attach", pod @ .., container] if (2..=3).contains(&pod.len()) => {
            let path = SessionPath::new(pod, container);
            only(
                method,
                GET_POST,
                Endpoint::Session(SessionKind::Attach, path),
            )
        }
        ["portForward", pod @ ..] if (2..=3).contains(&pod.len()) => {
            let found = Endpoint::Session(SessionKind::PortForward, SessionPath::new(pod, ""));
            only(method, GET_POST, found)
        }
        ["run", pod @ .., container] if (2..=3).contains(&pod.len()) => only(
            method,
            &["POST"],
            Endpoint::Run(SessionPath::new(pod, container)),
        ),
        ["checkpoint", _, _, _] => only(
            method,
            &["POST"],
            Endpoint::NotServed(
                "checkpoints are not served by this node yet; on the node, use: crictl \
                 checkpoint\n",
            ),
        ),
        ["logs", ..] if !options.system_log_handler => {
            Endpoint::SwitchedOff("logs endpoint is disabled.\n")
        }
        ["logs", path @ ..] => {
            let path = path.iter().map(|name| (*name).to_owned()).collect();
            only(method, GET, Endpoint::SystemLogs { path, slash })
        }
        ["debug", "pprof", ..] if !options.profiling_handler => {
            Endpoint::SwitchedOff("profiling endpoint is disabled.\n")
        }
        ["debug", "pprof", ..] => only(
            method,
            GET,
            Endpoint::NotServed(
                "this agent has no profiles in the form of Go; on the node, use: perf\n",
            ),
        ),
        ["debug", "flags", "v"] if !slash && !options.debug_flags_handler => {
            Endpoint::SwitchedOff("flags endpoint is disabled.\n")
        }
        ["debug", "flags", "v"] if !slash => Endpoint::NotServed(
            "the log level cannot be changed while the agent runs; set it at its start\n",
        ),
        [
            "containerLogs" | "runningpods" | "exec" | "attach" | "portForward" | "run"
            | "checkpoint",
            ..,
        ] => Endpoint::NotFound,
        ["configz"] if !slash => Endpoint::Configz,
        ["statusz" | "flagz"] if !slash => Endpoint::NotServed(
            "this page is not served by this node; the configuration in force is at /configz, \
             numbers are at /metrics\n",
        ),
        _ => Endpoint::Nowhere,
    }
}

fn only(method: &Method, allowed: &'static [&'static str], found: Endpoint) -> Endpoint {
    if allowed.contains(&method.as_str()) {
        return found;
    }
    Endpoint::WrongMethod(match allowed {
        ["GET"] => "GET",
        ["POST"] => "POST",
        _ => "GET, POST",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(method: &str, path: &str, options: &EndpointOptions) -> Endpoint {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        endpoint(&method, CleanPath::read(path).as_ref(), options)
    }

    #[test]
    fn paths_lead_where_they_lead_with_the_kubelet() {
        let all = EndpointOptions::default();
        for path in ["/pods", "/pods/"] {
            assert_eq!(at("GET", path, &all), Endpoint::Pods);
            assert_eq!(at("POST", path, &all), Endpoint::WrongMethod("GET"));
        }
        assert_eq!(at("GET", "/runningpods/", &all), Endpoint::RunningPods);
        assert_eq!(at("GET", "/healthz", &all), Endpoint::Healthz(None));
        assert_eq!(
            at("HEAD", "/healthz/syncloop", &all),
            Endpoint::Healthz(Some("syncloop".to_owned()))
        );
        assert_eq!(at("GET", "/metrics", &all), Endpoint::Metrics);
        assert_eq!(at("GET", "/metrics/probes", &all), Endpoint::ProbeMetrics);
        assert_eq!(at("GET", "/configz", &all), Endpoint::Configz);
        let logs = |path: &[&str], slash| Endpoint::SystemLogs {
            path: path.iter().map(|name| (*name).to_owned()).collect(),
            slash,
        };
        assert_eq!(at("GET", "/logs/", &all), logs(&[], true));
        assert_eq!(at("GET", "/logs/a/b%20c", &all), logs(&["a", "b c"], false));
        assert_eq!(at("GET", "/logs/a/../b", &all), Endpoint::Nowhere);
        assert_eq!(
            at("GET", "/containerLogs/a/b/c", &all),
            Endpoint::ContainerLogs {
                namespace: "a".to_owned(),
                pod: "b".to_owned(),
                container: "c".to_owned(),
            }
        );
    }

    #[test]
    fn what_is_nowhere_differs_from_what_is_below_a_path() {
        let all = EndpointOptions::default();
        for path in [
            "/",
            "/x",
            "/healthz/",
            "/healthz/x",
            "/metrics/",
            "/metrics/x",
            "/configz/",
            "/api/v1/pods",
            "//pods",
            "/metrics/../pods",
            "/debug",
        ] {
            assert_eq!(at("GET", path, &all), Endpoint::Nowhere, "{path}");
        }
        for path in [
            "/pods/x",
            "/stats/x",
            "/containerLogs",
            "/containerLogs/a/b",
            "/containerLogs/a/b/c/d",
            "/exec/a/b",
            "/portForward/a",
            "/runningpods/x",
        ] {
            assert_eq!(at("GET", path, &all), Endpoint::NotFound, "{path}");
        }
    }

    #[test]
    fn what_is_not_served_says_so_to_the_right_methods_only() {
        let all = EndpointOptions::default();
        for (method, path) in [
            ("POST", "/checkpoint/a/b/c"),
            ("GET", "/metrics/slis"),
            ("GET", "/debug/pprof/heap"),
            ("PUT", "/debug/flags/v"),
            ("GET", "/statusz"),
        ] {
            let found = at(method, path, &all);
            let refused = matches!(
                found,
                Endpoint::NotServed(_) | Endpoint::MetricsNotServed(_)
            );
            assert!(refused, "{method} {path}");
        }
        for (method, path, allowed) in [
            ("PUT", "/exec/a/b/c", "GET, POST"),
            ("GET", "/run/a/b/c", "POST"),
            ("POST", "/containerLogs/a/b/c", "GET"),
        ] {
            let found = at(method, path, &all);
            assert_eq!(found, Endpoint::WrongMethod(allowed), "{method} {path}");
        }
    }

    #[test]
    fn switches_are_obeyed() {
        let off = EndpointOptions {
            debugging_handlers: false,
            ..EndpointOptions::default()
        };
        for options in [off, EndpointOptions::READ_ONLY] {
            for path in [
                "/run/a/b/c",
                "/exec/a/b/c",
                "/attach/a/b/c",
                "/portForward/a/b",
                "/containerLogs/a/b/c",
                "/runningpods/",
                "/logs/",
                "/debug/pprof/",
            ] {
                assert_eq!(at("GET", path, &options), DEBUG_DISABLED, "{path}");
            }
            for path in ["/configz", "/checkpoint/a/b/c", "/debug/flags/v", "/flagz"] {
                assert_eq!(at("GET", path, &options), Endpoint::Nowhere, "{path}");
            }
            assert_eq!(at("GET", "/pods", &options), Endpoint::Pods);
            assert_eq!(at("GET", "/metrics", &options), Endpoint::Metrics);
        }
        let one_by_one = EndpointOptions {
            system_log_handler: false,
            profiling_handler: false,
            debug_flags_handler: false,
            ..EndpointOptions::default()
        };
        for path in ["/logs/", "/debug/pprof/heap", "/debug/flags/v"] {
            let found = at("GET", path, &one_by_one);
            assert!(matches!(found, Endpoint::SwitchedOff(_)), "{path}");
        }
    }

    #[test]
    fn what_docs_parity_says_of_a_path_is_so() {
        use rubelet_base::parity::ParityVerdict;
        use rubelet_parity::ENDPOINTS;
        for row in ENDPOINTS {
            let (method, path) = row.name.split_once(' ').unwrap();
            let path = path.replace("{}", "x");
            let found = at(method, &path, &EndpointOptions::default());
            let refused = matches!(
                found,
                Endpoint::NotServed(_) | Endpoint::MetricsNotServed(_)
            );
            let there = !matches!(
                found,
                Endpoint::Nowhere | Endpoint::NotFound | Endpoint::WrongMethod(_)
            );
            assert!(there, "{}: {found:?}", row.name);
            let served = row.verdict == ParityVerdict::Same || !row.why.contains("501");
            assert_eq!(refused, !served, "{}", row.name);
        }
    }
}
