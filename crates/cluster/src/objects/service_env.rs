//! The environment variables by which containers find services.
//!
//! Source of the rules: `pkg/kubelet/envvars` and the kubelet's `getServiceEnvVarMap`.

use std::net::Ipv6Addr;

use serde::{Deserialize, Serialize};

/// The source of service environment variables. Only services with a cluster IP have any.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Service {
    /// Name.
    pub(super) name: Box<str>,
    /// `spec.clusterIP`.
    pub(super) ip: Box<str>,
    /// `spec.ports`.
    pub(super) ports: Vec<ServicePort>,
}

/// One entry of `spec.ports`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ServicePort {
    /// `name`; empty where there is only one.
    pub(super) name: Box<str>,
    /// `port`.
    pub(super) port: u16,
    /// `protocol`: TCP, UDP or SCTP.
    pub(super) protocol: Box<str>,
}

/// The variables of these services. Of two variables with one name the later counts.
pub(super) fn variables<S: AsRef<Service>>(
    services: impl IntoIterator<Item = S>,
) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut set = |name: String, value: String| match found.iter_mut().find(|(n, _)| *n == name) {
        Some(slot) => slot.1 = value,
        None => found.push((name, value)),
    };
    for service in services {
        let service = service.as_ref();
        let (prefix, ip) = (variable_name(&service.name), &service.ip);
        let Some(first) = service.ports.first() else {
            // The API server takes none without a port but headless ones.
            continue;
        };
        set(format!("{prefix}_SERVICE_HOST"), ip.to_string());
        set(format!("{prefix}_SERVICE_PORT"), first.port.to_string());
        for port in service.ports.iter().filter(|port| !port.name.is_empty()) {
            let name = variable_name(&port.name);
            set(
                format!("{prefix}_SERVICE_PORT_{name}"),
                port.port.to_string(),
            );
        }
        for (index, port) in service.ports.iter().enumerate() {
            let protocol = port.protocol.to_lowercase();
            let url = format!("{protocol}://{}", host_port(ip, port.port));
            if index == 0 {
                set(format!("{prefix}_PORT"), url.clone());
            }
            let one = format!("{prefix}_PORT_{}_{}", port.port, protocol.to_uppercase());
            set(one.clone(), url);
            set(format!("{one}_PROTO"), protocol);
            set(format!("{one}_PORT"), port.port.to_string());
            set(format!("{one}_ADDR"), ip.to_string());
        }
    }
    found
}

fn variable_name(name: &str) -> String {
    name.replace('-', "_").to_uppercase()
}

fn host_port(ip: &str, port: u16) -> String {
    match ip.parse::<Ipv6Addr>() {
        Ok(_) => format!("[{ip}]:{port}"),
        Err(_) => format!("{ip}:{port}"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn service(name: &str, ip: &str, ports: &[(&str, u16, &str)]) -> Service {
        Service {
            name: name.into(),
            ip: ip.into(),
            ports: ports
                .iter()
                .map(|(name, port, protocol)| ServicePort {
                    name: (*name).into(),
                    port: *port,
                    protocol: (*protocol).into(),
                })
                .collect(),
        }
    }

    #[test]
    fn a_service_has_the_variables_that_upstream_gives_it() {
        let ports = [("http", 80, "TCP"), ("dns-udp", 53, "UDP")];
        let web = service("my-web", "10.0.0.1", &ports);
        let shown: Vec<_> = variables([Arc::new(web)])
            .into_iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let expected = [
            "MY_WEB_SERVICE_HOST=10.0.0.1",
            "MY_WEB_SERVICE_PORT=80",
            "MY_WEB_SERVICE_PORT_HTTP=80",
            "MY_WEB_SERVICE_PORT_DNS_UDP=53",
            "MY_WEB_PORT=tcp://10.0.0.1:80",
            "MY_WEB_PORT_80_TCP=tcp://10.0.0.1:80",
            "MY_WEB_PORT_80_TCP_PROTO=tcp",
            "MY_WEB_PORT_80_TCP_PORT=80",
            "MY_WEB_PORT_80_TCP_ADDR=10.0.0.1",
            "MY_WEB_PORT_53_UDP=udp://10.0.0.1:53",
            "MY_WEB_PORT_53_UDP_PROTO=udp",
            "MY_WEB_PORT_53_UDP_PORT=53",
            "MY_WEB_PORT_53_UDP_ADDR=10.0.0.1",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn ip_addresses_of_version_6_stand_in_brackets_beside_a_port() {
        let web = service("web", "fd00::1", &[("", 443, "TCP")]);
        let found = variables([Arc::new(web)]);
        let url = ("WEB_PORT".to_owned(), "tcp://[fd00::1]:443".to_owned());
        assert!(found.contains(&url));
        let host = ("WEB_SERVICE_HOST".to_owned(), "fd00::1".to_owned());
        assert!(found.contains(&host));
        assert!(!found.iter().any(|(name, _)| name == "WEB_SERVICE_PORT_"));
    }

    #[test]
    fn each_variable_is_there_once() {
        let (one, other) = (
            service("a-b", "10.0.0.1", &[("", 1, "TCP")]),
            service("a-b", "10.0.0.2", &[("", 1, "TCP")]),
        );
        let found = variables([Arc::new(one), Arc::new(other)]);
        assert_eq!(found.len(), 7);
        assert!(found.iter().all(|(_, value)| value != "10.0.0.1"));
    }
}
