//! Rubelet's own options.

use super::{Check, CheckResult, not_zero, one_of, violation};
use crate::quantity::{Sign, sign};
use crate::rubelet_options::{AuditOptions, EmbeddedRuntime, PeerPingOptions};
use std::{net::IpAddr, time::Duration};

/// Maximum length of a unix socket's path in Linux.
const MAX_SOCKET_PATH: usize = 107;

pub(super) fn validate(check: &Check<'_>) -> CheckResult {
    let options = check.rubelet;
    let socket = options.socket.as_str();
    if !socket.starts_with('/') || socket.ends_with('/') || socket.len() > MAX_SOCKET_PATH {
        let message = format!(
            "must be the absolute path of a unix socket of at most {MAX_SOCKET_PATH} bytes, is \
             {socket:?}"
        );
        return violation(["rubelet.socket"], message);
    }
    let group = options.socket_group.as_str();
    if group.contains(|c: char| c.is_whitespace() || c == ':') {
        return violation(
            ["rubelet.socketGroup"],
            format!("must be a group's name, is {group:?}"),
        );
    }
    not_zero("rubelet.relistPeriod", options.relist_period)?;
    let at_rest = options.secrets_at_rest.as_str();
    one_of("rubelet.secretsAtRest", at_rest, &["encrypted", "none"])?;
    let key = options.secrets_key_file.as_str();
    if !key.starts_with('/') || key.ends_with('/') {
        let message = format!("must be the absolute path of a file, is {key:?}");
        return violation(["rubelet.secretsKeyFile"], message);
    }
    let edits = options.static_pod_edits.as_str();
    if !["", "InPlace", "Replace"].contains(&edits) {
        let message = format!("must be empty, `InPlace` or `Replace`, is {edits:?}");
        return violation(["rubelet.staticPodEdits"], message);
    }
    audit(&options.audit)?;
    peer_pings(&options.peer_pings)?;
    runtime(&options.runtime)
}

fn audit(options: &AuditOptions) -> CheckResult {
    for (field, path) in [
        ("rubelet.audit.path", &options.path),
        ("rubelet.audit.policyFile", &options.policy_file),
    ] {
        if !path.is_empty() && (!path.starts_with('/') || path.ends_with('/')) {
            let message = format!("must be the absolute path of a file, is {path:?}");
            return violation([field], message);
        }
    }
    let level = options.level.as_str();
    if !matches!(level, "" | "None" | "Metadata") {
        let message = format!("must be None or Metadata, is {level:?}");
        return violation(["rubelet.audit.level"], message);
    }
    if !level.is_empty() && !options.policy_file.is_empty() {
        let message = "cannot be given with policyFile, whose rules set the levels".to_owned();
        return violation(["rubelet.audit.level", "rubelet.audit.policyFile"], message);
    }
    if options.path.is_empty() && !(options.policy_file.is_empty() && level.is_empty()) {
        let message = "must be given with policyFile or level: without it nothing is recorded";
        return violation(["rubelet.audit.path"], message.to_owned());
    }
    Ok(())
}

/// Maximum number of peers: each has a socket.
const MAX_PEERS: usize = 256;
/// Maximum length of a host name in DNS.
const MAX_HOST: usize = 253;
const MIN_PING_INTERVAL: Duration = Duration::from_millis(100);

fn peer_pings(options: &PeerPingOptions) -> CheckResult {
    let peers = &options.peers;
    if peers.len() > MAX_PEERS {
        let message = format!("must have at most {MAX_PEERS} peers, has {}", peers.len());
        return violation(["rubelet.peerPings.peers"], message);
    }
    let is_host = |peer: &String| {
        (1..=MAX_HOST).contains(&peer.len())
            && !peer.contains(|c: char| c.is_whitespace() || c == '/')
    };
    if let Some(peer) = peers.iter().find(|peer| !is_host(peer)) {
        let message = format!("must be addresses or host names, has {peer:?}");
        return violation(["rubelet.peerPings.peers"], message);
    }
    if options.interval < MIN_PING_INTERVAL {
        let message = format!("must be at least 100ms, is {:?}", options.interval);
        return violation(["rubelet.peerPings.interval"], message);
    }
    Ok(())
}

/// Maximum length of a network interface's name in Linux.
const MAX_INTERFACE: usize = 15;

fn runtime(options: &EmbeddedRuntime) -> CheckResult {
    let is_absolute = |path: &str| path.starts_with('/') && path.len() > 1 && !path.ends_with('/');
    let directories = [
        ("rubelet.runtime.rootDir", &options.root_dir),
        ("rubelet.runtime.runDir", &options.run_dir),
        ("rubelet.runtime.cniConfDir", &options.cni_conf_dir),
        ("rubelet.runtime.cgroup", &options.cgroup),
    ];
    let directories = directories.into_iter().chain(
        options
            .cni_bin_dirs
            .iter()
            .map(|dir| ("rubelet.runtime.cniBinDirs", dir)),
    );
    let devices = options.cdi_spec_dirs.iter();
    let directories = directories.chain(devices.map(|dir| ("rubelet.runtime.cdiSpecDirs", dir)));
    let hosts = options.registry_hosts_dirs.iter();
    let directories =
        directories.chain(hosts.map(|dir| ("rubelet.runtime.registryHostsDirs", dir)));
    for (field, path) in directories {
        if !is_absolute(path) {
            return violation(
                [field],
                format!("must be an absolute path other than /, is {path:?}"),
            );
        }
    }
    if let Some(socket) = options.socket_path()
        && (!is_absolute(&socket) || socket.len() > MAX_SOCKET_PATH)
    {
        let message = format!(
            "must be `none` or the absolute path of a unix socket of at most {MAX_SOCKET_PATH} \
             bytes, is {socket:?}"
        );
        return violation(["rubelet.runtime.socket"], message);
    }
    let log = options.container_log_max_total.as_str();
    if !log.is_empty() && !matches!(sign(log), Some(Sign::Zero | Sign::Positive)) {
        let message = format!("must be empty or a quantity such as 100Mi, is {log:?}");
        return violation(["rubelet.runtime.containerLogMaxTotal"], message);
    }
    let networks = ["", "bridge", "cni"];
    if !networks.contains(&options.network.as_str()) {
        let message = format!("must be empty, `bridge` or `cni`, is {:?}", options.network);
        return violation(["rubelet.runtime.network"], message);
    }
    let bridge = options.bridge.as_str();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if bridge.is_empty() || bridge.len() > MAX_INTERFACE || !bridge.chars().all(plain) {
        let message = format!(
            "must be a network interface's name of at most {MAX_INTERFACE} characters, is \
             {bridge:?}"
        );
        return violation(["rubelet.runtime.bridge"], message);
    }
    for (field, subnets) in [
        ("rubelet.runtime.bridgeSubnets", &options.bridge_subnets),
        (
            "rubelet.runtime.masqueradeExempt",
            &options.masquerade_exempt,
        ),
    ] {
        for subnet in subnets {
            if let Err(why) = is_subnet(subnet) {
                return violation([field], why);
            }
        }
    }
    for registry in &options.insecure_registries {
        if registry.is_empty() || registry.contains(['/', '@']) {
            let message = format!("must be registries such as example.com:5000, has {registry:?}");
            return violation(["rubelet.runtime.insecureRegistries"], message);
        }
    }
    Ok(())
}

fn is_subnet(text: &str) -> Result<(), String> {
    let wrong = || format!("must be subnets such as 10.88.0.0/16, has {text:?}");
    let (address, length) = text.split_once('/').ok_or_else(wrong)?;
    let address: IpAddr = address.parse().map_err(|_| wrong())?;
    let length: u8 = length.parse().map_err(|_| wrong())?;
    match length > 0 && length <= if address.is_ipv4() { 32 } else { 128 } {
        true => Ok(()),
        false => Err(wrong()),
    }
}
