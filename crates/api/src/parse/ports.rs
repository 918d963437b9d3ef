//! Ports of containers.

use std::collections::HashSet;

use k8s_openapi::api::core::v1 as k8s;

use super::{
    Errors, Path, names,
    values::{address, choice, range, room, text},
};
use crate::network::{ContainerPort, Protocol};

pub(super) fn convert(
    ports: Option<&Vec<k8s::ContainerPort>>,
    path: &Path<'_>,
    errors: &mut Errors,
) -> Vec<ContainerPort> {
    let mut seen = HashSet::new();
    let mut converted = room(ports.map(Vec::as_slice));
    for (index, port) in ports.into_iter().flatten().enumerate() {
        let path = path.index(index);
        let name = text(port.name.as_ref());
        if let Some(name) = &name {
            names::port_name(&path.child("name"), name, errors);
            if !seen.insert(name.clone()) {
                errors.duplicate(&path.child("name"), name);
            }
        }
        let number_path = path.child("containerPort");
        match port.container_port {
            0 => errors.required(&number_path, "a port from 1 to 65535"),
            number => range(&number_path, number.into(), 1, 65535, errors),
        }
        if let Some(host_port) = port.host_port
            && host_port != port.container_port
        {
            range(&path.child("hostPort"), host_port.into(), 1, 65535, errors);
        }
        let host_ip = text(port.host_ip.as_ref());
        if let Some(host_ip) = &host_ip {
            address(&path.child("hostIP"), host_ip, errors);
        }
        let known = [
            ("TCP", Protocol::Tcp),
            ("UDP", Protocol::Udp),
            ("SCTP", Protocol::Sctp),
        ];
        converted.push(ContainerPort {
            name,
            container_port: port.container_port.try_into().unwrap_or(0),
            host_port: port.host_port.map(|port| port.try_into().unwrap_or(0)),
            host_ip,
            protocol: choice(
                &path.child("protocol"),
                port.protocol.as_ref(),
                &known,
                errors,
            ),
        });
    }
    converted
}

/// Each host port is used once among the containers that share `used`, and is the container's own
/// with host network.
pub(super) fn check_host_ports(
    container: &k8s::Container,
    host_network: bool,
    used: &mut HashSet<String>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let path = path.child("ports");
    for (index, port) in container.ports.iter().flatten().enumerate() {
        let Some(host_port) = port.host_port else {
            continue;
        };
        let path = path.index(index);
        let path = path.child("hostPort");
        if host_network && host_port != port.container_port {
            let detail = "must equal containerPort where hostNetwork is true";
            errors.invalid(&path, host_port, detail);
            continue;
        }
        let protocol = port.protocol.as_deref().unwrap_or_default();
        let host_ip = port.host_ip.as_deref().unwrap_or_default();
        let own = format!("{protocol}/{host_ip}/{host_port}");
        if used.contains(&own) {
            errors.duplicate(&path, &own);
        } else {
            used.insert(own);
        }
    }
}
