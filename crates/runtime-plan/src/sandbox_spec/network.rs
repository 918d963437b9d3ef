//! Ports of the host and the resolver of a pod.

use rubelet_cri::v1;

use crate::Refusal;

/// `resolv.conf` as containerd writes it.
pub(super) fn resolv_conf(dns: &v1::DnsConfig) -> Result<String, Refusal> {
    let mut text = String::new();
    let mut line = |keyword: &str, words: &[String]| {
        if words
            .iter()
            .any(|word| word.is_empty() || word.contains(char::is_whitespace))
        {
            return Err(Refusal::new(
                "dns_config",
                format!(
                    "{keyword:?} has an entry that is empty or contains white space: {words:?}"
                ),
            ));
        }
        if !words.is_empty() {
            text.push_str(&format!("{keyword} {}\n", words.join(" ")));
        }
        Ok(())
    };
    line("search", &dns.searches)?;
    for server in &dns.servers {
        line("nameserver", std::slice::from_ref(server))?;
    }
    line("options", &dns.options)?;
    Ok(text)
}

/// The ports to map; none with the host network.
pub(super) fn ports(
    config: &v1::PodSandboxConfig,
    network: bool,
) -> Result<Vec<v1::PortMapping>, Refusal> {
    if !network {
        return Ok(Vec::new());
    }
    let mut ports = Vec::new();
    for (index, port) in config.port_mappings.iter().enumerate() {
        // A mapping without a host port maps nothing.
        if port.host_port <= 0 {
            continue;
        }
        let refuse = |field: &str, message: String| {
            Err(Refusal::new(
                format!("port_mappings[{index}].{field}"),
                message,
            ))
        };
        if v1::Protocol::try_from(port.protocol).is_err() {
            return refuse("protocol", format!("unknown protocol {}", port.protocol));
        }
        for (field, number) in [
            ("host_port", port.host_port),
            ("container_port", port.container_port),
        ] {
            if !(1..=65535).contains(&number) {
                return refuse(field, format!("{number} is not between 1 and 65535"));
            }
        }
        if !port.host_ip.is_empty() && port.host_ip.parse::<std::net::IpAddr>().is_err() {
            return refuse(
                "host_ip",
                format!("{:?} is not an IP address", port.host_ip),
            );
        }
        ports.push(port.clone());
    }
    Ok(ports)
}
