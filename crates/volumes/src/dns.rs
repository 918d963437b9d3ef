//! The DNS settings of a pod. Pure.

use std::net::IpAddr;

use rubelet_api::{network::DnsPolicy, pod::Pod};

/// Maximum number of name servers that resolvers use.
const MAX_SERVERS: usize = 3;
/// Maximum number of search domains.
const MAX_SEARCHES: usize = 32;
/// Maximum length of all search domains with the spaces between them.
const MAX_SEARCH_CHARS: usize = 2048;
/// Maximum length of one search domain. Some resolvers abort on longer ones.
const MAX_DOMAIN: usize = 253;

/// The DNS configuration of the node.
#[derive(Debug, Clone, Copy)]
pub struct DnsInputs<'a> {
    /// Text of the file that `resolvConf` names; `None` if the setting is empty.
    pub host_resolv_conf: Option<&'a str>,
    /// `clusterDNS`.
    pub cluster_dns: &'a [String],
    /// `clusterDomain`; may be empty.
    pub cluster_domain: &'a str,
    /// Addresses of the node.
    pub node_ips: &'a [IpAddr],
}

/// The sandbox's `dns_config`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DnsSettings {
    /// Name servers.
    pub servers: Vec<String>,
    /// Search domains.
    pub searches: Vec<String>,
    /// Options, as they are in a resolv.conf.
    pub options: Vec<String>,
}

/// Settings of one pod, and warnings for events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodDns {
    /// The settings.
    pub settings: DnsSettings,
    /// Events to record.
    pub warnings: Vec<DnsWarning>,
}

/// An event about a pod's DNS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DnsWarning {
    /// The pod requests cluster DNS, and the node has no `clusterDNS`.
    MissingClusterDns,
    /// There were too many name servers.
    TooManyServers {
        /// The ones that are used.
        applied: Vec<String>,
    },
    /// There were too many or too long search domains.
    SearchLimits {
        /// The ones that are used.
        applied: Vec<String>,
    },
}

impl DnsWarning {
    /// The event's reason.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::MissingClusterDns => "MissingClusterDNS",
            Self::TooManyServers { .. } | Self::SearchLimits { .. } => "DNSConfigForming",
        }
    }

    /// The event's message. [`Self::MissingClusterDns`] is also recorded for the node, without
    /// `pod`.
    #[must_use]
    pub fn message(&self, pod: Option<&Pod>) -> String {
        match self {
            Self::MissingClusterDns => {
                let text = "kubelet does not have ClusterDNS IP configured and cannot create Pod \
                            using \"ClusterFirst\" policy. Falling back to \"Default\" policy.";
                match pod {
                    None => text.to_owned(),
                    Some(Pod { name, uid, .. }) => {
                        format!("pod: \"{}_{}({uid})\". {text}", name.name, name.namespace)
                    }
                }
            }
            Self::TooManyServers { applied } => format!(
                "Nameserver limits were exceeded, some nameservers have been omitted, the applied \
                 nameserver line is: {}",
                applied.join(" ")
            ),
            Self::SearchLimits { applied } => format!(
                "Search Line limits were exceeded, some search paths have been omitted, the \
                 applied search line is: {}",
                applied.join(" ")
            ),
        }
    }
}

/// The node's resolv.conf is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid resolv.conf of the node: line {line} has no nameserver address")]
pub struct ResolvConfError {
    /// Number of the line, from 1.
    pub line: usize,
}

/// Computes a pod's settings: those of its policy, then its own `dnsConfig`, then the limits.
///
/// # Errors
/// The node's resolv.conf is malformed.
pub fn pod_dns(pod: &Pod, inputs: &DnsInputs<'_>) -> Result<PodDns, ResolvConfError> {
    let mut warnings = Vec::new();
    let host = parse_resolv_conf(inputs.host_resolv_conf.unwrap_or_default())?;
    let mut settings = match source(pod) {
        Source::Nothing => DnsSettings::default(),
        Source::Host => host_settings(host, inputs),
        Source::Cluster if inputs.cluster_dns.is_empty() => {
            warnings.push(DnsWarning::MissingClusterDns);
            host_settings(host, inputs)
        }
        Source::Cluster => DnsSettings {
            servers: inputs.cluster_dns.to_vec(),
            searches: cluster_searches(pod, inputs.cluster_domain, host.searches),
            options: vec!["ndots:5".to_owned()],
        },
    };
    let own = &pod.spec.dns_config;
    settings
        .servers
        .extend(own.nameservers.iter().map(ToString::to_string));
    settings
        .searches
        .extend(own.searches.iter().map(ToString::to_string));
    for (name, value) in &own.options {
        let option = match value.as_deref() {
            Some(value) if !value.is_empty() => format!("{name}:{value}"),
            _ => name.to_string(),
        };
        set_option(&mut settings.options, &option);
    }
    // Duplicates are removed where the kubelet removes them: only in merged lists.
    if *own != Default::default() {
        settings.servers = without_doubles(settings.servers);
        settings.searches = without_doubles(settings.searches);
    }
    limit_servers(&mut settings.servers, &mut warnings);
    limit_searches(&mut settings.searches, &mut warnings);
    Ok(PodDns { settings, warnings })
}

enum Source {
    Nothing,
    Host,
    Cluster,
}

fn source(pod: &Pod) -> Source {
    match pod.spec.dns_policy {
        DnsPolicy::None => Source::Nothing,
        DnsPolicy::ClusterFirstWithHostNet => Source::Cluster,
        DnsPolicy::ClusterFirst if !pod.spec.host_network => Source::Cluster,
        DnsPolicy::ClusterFirst | DnsPolicy::Default => Source::Host,
    }
}

/// Without a resolv.conf, resolvers fall back to the local machine; stating that explicitly keeps
/// runtimes from adding their own file.
fn host_settings(host: DnsSettings, inputs: &DnsInputs<'_>) -> DnsSettings {
    if inputs.host_resolv_conf.is_some() {
        return host;
    }
    let local = |ip: &IpAddr| if ip.is_ipv6() { "::1" } else { "127.0.0.1" }.to_owned();
    let mut servers: Vec<String> = inputs.node_ips.iter().map(local).collect();
    if servers.is_empty() {
        servers.push("127.0.0.1".to_owned());
    }
    DnsSettings {
        servers,
        searches: vec![".".to_owned()],
        options: Vec::new(),
    }
}

fn cluster_searches(pod: &Pod, domain: &str, host: Vec<String>) -> Vec<String> {
    if domain.is_empty() {
        return host;
    }
    let namespace = &pod.name.namespace;
    let cluster = [
        format!("{namespace}.svc.{domain}"),
        format!("svc.{domain}"),
        domain.to_owned(),
    ];
    without_doubles(cluster.into_iter().chain(host))
}

fn without_doubles(names: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut seen = Vec::new();
    for name in names {
        if !seen.contains(&name) {
            seen.push(name);
        }
    }
    seen
}

/// An option replaces an earlier one of the same name, in place.
fn set_option(options: &mut Vec<String>, option: &str) {
    let name = |option: &str| option.split(':').next().unwrap_or_default().to_owned();
    match options.iter_mut().find(|old| name(old) == name(option)) {
        Some(old) => option.clone_into(old),
        None => options.push(option.to_owned()),
    }
}

fn limit_servers(servers: &mut Vec<String>, warnings: &mut Vec<DnsWarning>) {
    if servers.len() > MAX_SERVERS {
        servers.truncate(MAX_SERVERS);
        warnings.push(DnsWarning::TooManyServers {
            applied: servers.clone(),
        });
    }
}

fn limit_searches(searches: &mut Vec<String>, warnings: &mut Vec<DnsWarning>) {
    let before = searches.len();
    searches.truncate(MAX_SEARCHES);
    searches.retain(|domain| domain.len() <= MAX_DOMAIN);
    let length = |list: &[String]| {
        list.iter().map(String::len).sum::<usize>() + list.len().saturating_sub(1)
    };
    while length(searches) > MAX_SEARCH_CHARS {
        searches.pop();
    }
    if searches.len() < before {
        warnings.push(DnsWarning::SearchLimits {
            applied: searches.clone(),
        });
    }
}

/// Parses the relevant lines: name servers accumulate, the last search list counts, options of the
/// same name replace each other.
fn parse_resolv_conf(text: &str) -> Result<DnsSettings, ResolvConfError> {
    let mut settings = DnsSettings::default();
    for (index, line) in text.lines().enumerate() {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("nameserver") => {
                let server = words.next().ok_or(ResolvConfError { line: index + 1 })?;
                settings.servers.push(server.to_owned());
            }
            Some("search") => {
                // A trailing dot means the same domain; "." means none.
                settings.searches = words
                    .filter(|&word| word != ".")
                    .map(|word| word.strip_suffix('.').unwrap_or(word).to_owned())
                    .collect();
            }
            Some("options") => words.for_each(|word| set_option(&mut settings.options, word)),
            _ => {}
        }
    }
    Ok(settings)
}

#[cfg(test)]
mod tests;
