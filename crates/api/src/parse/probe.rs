//! Probes.

use std::time::Duration;

use k8s_openapi::api::core::v1 as k8s;

use super::{
    Errors, Path,
    handler::{self, Owner},
    values::text,
};
use crate::probe::{GrpcCheck, Probe, ProbeHandler};

/// What a probe is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Liveness,
    Readiness,
    Startup,
}

/// Converts a probe that has its defaults.
pub(super) fn convert(
    probe: Option<&k8s::Probe>,
    kind: Kind,
    owner: Owner<'_>,
    path: &Path<'_>,
    errors: &mut Errors,
) -> Option<Box<Probe>> {
    let probe = probe?;
    let handler = handler(probe, owner, path, errors);
    let mut number = |field: &'static str, value: Option<i32>| {
        let value = value.unwrap_or(0);
        if value < 0 {
            errors.invalid(&path.child(field), value, "must not be negative");
        }
        u32::try_from(value).unwrap_or(0)
    };
    let initial_delay = number("initialDelaySeconds", probe.initial_delay_seconds);
    let timeout = number("timeoutSeconds", probe.timeout_seconds);
    let period = number("periodSeconds", probe.period_seconds);
    let success_threshold = number("successThreshold", probe.success_threshold);
    let failure_threshold = number("failureThreshold", probe.failure_threshold);
    if success_threshold > 1 && kind != Kind::Readiness {
        let detail = "must be 1; only a readiness probe may ask for more";
        errors.invalid(&path.child("successThreshold"), success_threshold, detail);
    }
    // That a readiness probe must not have it, the support matrix says.
    let grace = probe
        .termination_grace_period_seconds
        .filter(|_| kind != Kind::Readiness);
    if let Some(seconds) = grace.filter(|seconds| *seconds <= 0) {
        let path = path.child("terminationGracePeriodSeconds");
        errors.invalid(&path, seconds, "must be at least 1");
    }
    let seconds = |seconds: u32| Duration::from_secs(seconds.into());
    Some(Box::new(Probe {
        handler: handler?,
        initial_delay: seconds(initial_delay),
        period: seconds(period),
        timeout: seconds(timeout),
        success_threshold,
        failure_threshold,
        termination_grace: grace.map(|seconds| Duration::from_secs(seconds.max(0).unsigned_abs())),
    }))
}

fn handler(
    probe: &k8s::Probe,
    owner: Owner<'_>,
    path: &Path<'_>,
    errors: &mut Errors,
) -> Option<ProbeHandler> {
    let handlers = [
        ("exec", probe.exec.is_some()),
        ("httpGet", probe.http_get.is_some()),
        ("tcpSocket", probe.tcp_socket.is_some()),
        ("grpc", probe.grpc.is_some()),
    ];
    handler::exactly_one("a probe", handlers, path, errors);
    if let Some(action) = &probe.exec {
        let command = handler::exec(action, &path.child("exec"), errors);
        return Some(ProbeHandler::Exec(command));
    }
    if let Some(action) = &probe.http_get {
        let action = handler::http_get(action, owner, &path.child("httpGet"), errors);
        return Some(ProbeHandler::Http(action));
    }
    if let Some(action) = &probe.tcp_socket {
        let action = handler::tcp_socket(action, owner, &path.child("tcpSocket"), errors);
        return Some(ProbeHandler::Tcp(action));
    }
    let action = probe.grpc.as_ref()?;
    Some(ProbeHandler::Grpc(grpc(
        action,
        &path.child("grpc"),
        errors,
    )))
}

fn grpc(action: &k8s::GRPCAction, path: &Path<'_>, errors: &mut Errors) -> GrpcCheck {
    match action.mode.as_deref().unwrap_or_default() {
        "" | "Plaintext" => {}
        "TLS" => errors.not_yet(&path.child("mode"), "gRPC probes use no TLS"),
        other => errors.unsupported(&path.child("mode"), other, &["Plaintext", "TLS"]),
    }
    let required = "a port from 1 to 65535";
    GrpcCheck {
        port: handler::number(action.port, required, &path.child("port"), errors),
        service: text(action.service.as_ref()).unwrap_or_default(),
    }
}
