//! Paths of the kubelet's HTTPS server, and its other sockets.
//!
//! Source: `pkg/kubelet/server/server.go` of Kubernetes 1.36.

use super::row::{ParityRow, better, differs, not_yet, same};

/// Method and path of each; `{}` stands for one segment. A test of the server requests each of
/// them.
pub const ENDPOINTS: &[ParityRow] = &[
    same("GET /healthz"),
    same("GET /healthz/ping"),
    same("GET /healthz/log"),
    same("GET /healthz/syncloop"),
    same("GET /pods"),
    same("GET /runningpods/"),
    same("GET /metrics"),
    same("GET /metrics/probes"),
    same("GET /metrics/cadvisor"),
    same("GET /metrics/resource"),
    differs("GET /metrics/slis", "501; /healthz and /metrics say it"),
    same("GET /stats/summary"),
    same("GET /containerLogs/{}/{}/{}"),
    same("GET /configz"),
    same("GET /exec/{}/{}/{}"),
    same("POST /exec/{}/{}/{}"),
    same("POST /exec/{}/{}/{}/{}"),
    same("GET /attach/{}/{}/{}"),
    same("POST /attach/{}/{}/{}"),
    same("POST /attach/{}/{}/{}/{}"),
    same("GET /portForward/{}/{}"),
    same("POST /portForward/{}/{}"),
    same("POST /portForward/{}/{}/{}"),
    same("POST /run/{}/{}/{}"),
    same("POST /run/{}/{}/{}/{}"),
    not_yet(
        "POST /checkpoint/{}/{}/{}",
        "501, on the node: crictl checkpoint",
    ),
    better(
        "GET /logs/",
        "a link that a container puts into /var/log never leads out of it",
    ),
    differs(
        "GET /debug/pprof/",
        "501; profiles of Go need Go, and perf reads this program",
    ),
    not_yet(
        "PUT /debug/flags/v",
        "501; the verbosity is set at the start",
    ),
    not_yet("GET /statusz", "501"),
    not_yet("GET /flagz", "501"),
];

/// Sockets other than HTTPS that are served or used.
pub(crate) const SOCKETS: &[ParityRow] = &[
    same("healthz port 10248: /healthz"),
    better(
        "healthz port 10248: /metrics",
        "numbers without names of pods, containers and images",
    ),
    same("read-only port"),
    not_yet("pod-resources/kubelet.sock", "not served"),
    not_yet("device-plugins/kubelet.sock", "not served"),
    not_yet(
        "plugins_registry/",
        "not watched: CSI drivers and DRA plugins are not registered",
    ),
    better(
        "the agent's own socket",
        "pods, events, logs, exec, attach, port-forward, why; see cli.md",
    ),
];
