//! DNS and host aliases.

use k8s_openapi::api::core::v1 as k8s;

use super::{
    Errors, Path, names,
    values::{address, choice, text, texts},
};
use crate::network::{DnsConfig, DnsPolicy, HostAlias};

/// What the C library reads of resolv.conf.
const MAX_NAMESERVERS: usize = 3;
const MAX_SEARCHES: usize = 32;
const MAX_SEARCH_CHARS: usize = 2048;

pub(super) fn dns_policy(spec: &k8s::PodSpec, path: &Path<'_>, errors: &mut Errors) -> DnsPolicy {
    let known = [
        ("ClusterFirst", DnsPolicy::ClusterFirst),
        (
            "ClusterFirstWithHostNet",
            DnsPolicy::ClusterFirstWithHostNet,
        ),
        ("Default", DnsPolicy::Default),
        ("None", DnsPolicy::None),
    ];
    choice(
        &path.child("dnsPolicy"),
        spec.dns_policy.as_ref(),
        &known,
        errors,
    )
}

pub(super) fn dns_config(spec: &k8s::PodSpec, path: &Path<'_>, errors: &mut Errors) -> DnsConfig {
    let path = path.child("dnsConfig");
    let nameservers_path = path.child("nameservers");
    let empty = k8s::PodDNSConfig::default();
    let config = spec.dns_config.as_ref().unwrap_or(&empty);
    let nameservers = texts(config.nameservers.as_ref());
    if nameservers.is_empty() && spec.dns_policy.as_deref() == Some("None") {
        errors.required(&nameservers_path, "dnsPolicy None needs at least one");
    }
    if nameservers.len() > MAX_NAMESERVERS {
        let detail = format_args!("must not be more than {MAX_NAMESERVERS}");
        errors.invalid(&nameservers_path, nameservers.len(), detail);
    }
    for (index, server) in nameservers.iter().enumerate() {
        address(&nameservers_path.index(index), server, errors);
    }
    DnsConfig {
        nameservers,
        searches: searches(config, &path.child("searches"), errors),
        options: options(config, &path.child("options"), errors),
    }
}

fn searches(config: &k8s::PodDNSConfig, path: &Path<'_>, errors: &mut Errors) -> Vec<Box<str>> {
    let searches = texts(config.searches.as_ref());
    if searches.len() > MAX_SEARCHES {
        let detail = format_args!("must not be more than {MAX_SEARCHES}");
        errors.invalid(path, searches.len(), detail);
    }
    let chars = searches
        .iter()
        .map(|search| search.len() + 1)
        .sum::<usize>()
        .saturating_sub(1);
    if chars > MAX_SEARCH_CHARS {
        let detail = format_args!("all together must not exceed {MAX_SEARCH_CHARS} characters");
        errors.invalid(path, chars, detail);
    }
    for (index, search) in searches.iter().enumerate() {
        names::search_domain(&path.index(index), search, errors);
    }
    searches
}

fn options(
    config: &k8s::PodDNSConfig,
    path: &Path<'_>,
    errors: &mut Errors,
) -> Vec<(Box<str>, Option<Box<str>>)> {
    let mut options = Vec::new();
    for (index, option) in config.options.iter().flatten().enumerate() {
        match text(option.name.as_ref()) {
            Some(name) => options.push((name, option.value.as_deref().map(Into::into))),
            None => errors.required(&path.index(index).child("name"), ""),
        }
    }
    options
}

pub(super) fn host_aliases(
    spec: &k8s::PodSpec,
    path: &Path<'_>,
    errors: &mut Errors,
) -> Vec<HostAlias> {
    let path = path.child("hostAliases");
    let mut aliases = Vec::new();
    for (index, alias) in spec.host_aliases.iter().flatten().enumerate() {
        let path = path.index(index);
        address(&path.child("ip"), &alias.ip, errors);
        let hostnames_path = path.child("hostnames");
        let hostnames = texts(alias.hostnames.as_ref());
        for (index, hostname) in hostnames.iter().enumerate() {
            names::subdomain(&hostnames_path.index(index), hostname, errors);
        }
        aliases.push(HostAlias {
            ip: alias.ip.as_str().into(),
            hostnames,
        });
    }
    aliases
}
