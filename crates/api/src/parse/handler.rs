//! What probes and hooks do: commands, requests and connections.

use std::fmt::Write as _;

use k8s_openapi::{api::core::v1 as k8s, apimachinery::pkg::util::intstr::IntOrString};

use super::{
    Errors, Path, names,
    values::{choice, range, room, text, texts},
};
use crate::{
    network::ContainerPort,
    probe::{HttpGet, TargetPort, TcpSocket},
};

const PORT: &str = "a port from 1 to 65535, or the name of one";

/// What the container that a handler belongs to adds to its meaning.
#[derive(Clone, Copy)]
pub(super) struct Owner<'a> {
    /// The ports among which a name is looked up.
    pub(super) ports: &'a [ContainerPort],
    /// Refuse what an API server takes although it can never work. Pods of the API server fail
    /// with upstream's kubelet only when the handler runs, so they must be held.
    pub(super) strict: bool,
}

/// Exactly one of the handlers is given; others are refused beside the first.
pub(super) fn exactly_one<const N: usize>(
    what: &str,
    handlers: [(&str, bool); N],
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let mut given = handlers.iter().filter(|(_, given)| *given);
    let Some((first, _)) = given.next() else {
        let (last, others) = handlers
            .split_last()
            .map_or(("", &[][..]), |(last, rest)| (last.0, rest));
        let others: Vec<&str> = others.iter().map(|(name, _)| *name).collect();
        let detail = format!("{what} needs one of {} and {last}", others.join(", "));
        return errors.required(path, &detail);
    };
    for (other, _) in given {
        let detail = format_args!("{what} has one handler; {first} is given too");
        errors.forbidden(&path.child(other), detail);
    }
}

/// The words of a command; at least one.
pub(super) fn exec(
    action: &k8s::ExecAction,
    path: &Path<'_>,
    errors: &mut Errors,
) -> Vec<Box<str>> {
    let command = texts(action.command.as_ref());
    if command.is_empty() {
        errors.required(&path.child("command"), "");
    }
    command
}

pub(super) fn http_get(
    action: &k8s::HTTPGetAction,
    owner: Owner<'_>,
    path: &Path<'_>,
    errors: &mut Errors,
) -> HttpGet {
    HttpGet {
        host: text(action.host.as_ref()),
        port: port(&action.port, owner, &path.child("port"), errors),
        path: text(action.path.as_ref()).unwrap_or_else(|| "/".into()),
        https: choice(
            &path.child("scheme"),
            action.scheme.as_ref(),
            &[("HTTP", false), ("HTTPS", true)],
            errors,
        ),
        headers: headers(action, owner, &path.child("httpHeaders"), errors),
    }
}

pub(super) fn tcp_socket(
    action: &k8s::TCPSocketAction,
    owner: Owner<'_>,
    path: &Path<'_>,
    errors: &mut Errors,
) -> TcpSocket {
    TcpSocket {
        host: text(action.host.as_ref()),
        port: port(&action.port, owner, &path.child("port"), errors),
    }
}

/// A port by its number; 0 for an invalid one.
pub(super) fn number(port: i32, required: &str, path: &Path<'_>, errors: &mut Errors) -> u16 {
    match port {
        0 => errors.required(path, required),
        port => range(path, port.into(), 1, 65535, errors),
    }
    port.try_into().unwrap_or(0)
}

fn headers(
    action: &k8s::HTTPGetAction,
    owner: Owner<'_>,
    path: &Path<'_>,
    errors: &mut Errors,
) -> Vec<(Box<str>, Box<str>)> {
    let mut headers = room(action.http_headers.as_deref());
    for (index, header) in action.http_headers.iter().flatten().enumerate() {
        let path = path.index(index);
        if header.name.is_empty() {
            errors.required(&path.child("name"), "");
        } else {
            names::header(&path.child("name"), &header.name, errors);
        }
        if owner.strict
            && header
                .value
                .bytes()
                .any(|b| b.is_ascii_control() && b != b'\t')
        {
            let detail = "must not contain line breaks or other control characters";
            errors.invalid(&path.child("value"), &header.value, detail);
        }
        headers.push((header.name.as_str().into(), header.value.as_str().into()));
    }
    headers
}

fn port(port: &IntOrString, owner: Owner<'_>, path: &Path<'_>, errors: &mut Errors) -> TargetPort {
    let name = match port {
        IntOrString::Int(port) => return TargetPort::Number(number(*port, PORT, path, errors)),
        IntOrString::String(name) => name.as_str(),
    };
    let found = owner
        .ports
        .iter()
        .find(|port| port.name.as_deref() == Some(name));
    if let Some(found) = found {
        return TargetPort::Number(found.container_port);
    }
    if name.is_empty() {
        errors.required(path, PORT);
    } else if name.bytes().all(|b| b.is_ascii_digit()) {
        errors.invalid(path, name, "write a number without quotes");
    } else if !names::is_port_name(name) {
        names::port_name(path, name, errors);
    } else if owner.strict {
        errors.not_found(path, name, &known_names(owner.ports));
    }
    TargetPort::Unknown(name.into())
}

fn known_names(ports: &[ContainerPort]) -> String {
    let mut names = ports.iter().filter_map(|port| port.name.as_deref());
    let Some(first) = names.next() else {
        return "no port of the container has a name; write a number, or name one under ports"
            .to_owned();
    };
    let mut text = format!("the named ports of the container are {first:?}");
    for name in names {
        write!(text, ", {name:?}").expect("a String takes any text");
    }
    text
}
