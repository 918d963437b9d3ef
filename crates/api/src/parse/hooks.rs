//! Lifecycle hooks.

use std::time::Duration;

use k8s_openapi::api::core::v1 as k8s;

use super::{
    Errors, Path, defaults,
    handler::{self, Owner},
    ports,
};
use crate::probe::{Hook, Lifecycle};

/// Converts hooks that have their defaults. `grace` is the pod's grace period in seconds, where it
/// is valid.
pub(super) fn convert(
    lifecycle: Option<&k8s::Lifecycle>,
    owner: Owner<'_>,
    grace: Option<i64>,
    path: &Path<'_>,
    errors: &mut Errors,
) -> Option<Box<Lifecycle>> {
    let lifecycle = lifecycle?;
    let mut convert = |field: &'static str, handler: Option<&k8s::LifecycleHandler>| {
        hook(handler?, owner, grace, &path.child(field), errors)
    };
    let post_start = convert("postStart", lifecycle.post_start.as_ref());
    let pre_stop = convert("preStop", lifecycle.pre_stop.as_ref());
    if post_start.is_none() && pre_stop.is_none() {
        return None;
    }
    let pre_stop_json = lifecycle.pre_stop.as_ref().map(|handler| {
        serde_json::to_string(handler)
            .expect("a hook has only texts for keys")
            .into()
    });
    Some(Box::new(Lifecycle {
        post_start,
        pre_stop,
        pre_stop_json,
    }))
}

fn hook(
    handler: &k8s::LifecycleHandler,
    owner: Owner<'_>,
    grace: Option<i64>,
    path: &Path<'_>,
    errors: &mut Errors,
) -> Option<Hook> {
    let handlers = [
        ("exec", handler.exec.is_some()),
        ("httpGet", handler.http_get.is_some()),
        ("tcpSocket", handler.tcp_socket.is_some()),
        ("sleep", handler.sleep.is_some()),
    ];
    handler::exactly_one("a hook", handlers, path, errors);
    if let Some(action) = &handler.exec {
        let command = handler::exec(action, &path.child("exec"), errors);
        return Some(Hook::Exec(command));
    }
    if let Some(action) = &handler.http_get {
        let action = handler::http_get(action, owner, &path.child("httpGet"), errors);
        return Some(Hook::Http(action));
    }
    if let Some(action) = &handler.tcp_socket {
        let action = handler::tcp_socket(action, owner, &path.child("tcpSocket"), errors);
        return Some(Hook::Tcp(action));
    }
    let seconds = handler.sleep.as_ref()?.seconds;
    if let Some(grace) = grace
        && !(0..=grace).contains(&seconds)
    {
        let detail =
            format_args!("must be from 0 to terminationGracePeriodSeconds, which is {grace}");
        let path = path.child("sleep");
        errors.invalid(&path.child("seconds"), seconds, detail);
    }
    let seconds = seconds.max(0).unsigned_abs();
    Some(Hook::Sleep(Duration::from_secs(seconds)))
}

/// A hook as a runtime's annotations hold it; `None` where it is not one. A name that none of the
/// ports has stays a name.
pub(crate) fn from_annotation(
    mut handler: k8s::LifecycleHandler,
    mut ports: Vec<k8s::ContainerPort>,
) -> Option<Hook> {
    defaults::hook(&mut handler);
    for port in &mut ports {
        defaults::port(port, false);
    }
    let root = Path::root();
    let owner = Owner {
        ports: &ports::convert(Some(&ports), &root, &mut Errors::default()),
        strict: false,
    };
    let mut errors = Errors::default();
    let hook = hook(&handler, owner, None, &root, &mut errors);
    hook.filter(|_| errors.is_empty())
}
