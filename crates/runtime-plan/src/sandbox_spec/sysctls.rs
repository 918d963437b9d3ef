//! Kernel parameters of a pod.

use std::collections::BTreeMap;

use crate::Refusal;

/// Parameters of the pod's own namespaces only: others would change the host.
pub(super) fn sysctls(
    wanted: BTreeMap<String, String>,
    network: bool,
    ipc: bool,
    user: bool,
) -> Result<BTreeMap<String, String>, Refusal> {
    let mut sysctls = BTreeMap::new();
    for (name, value) in wanted {
        let dotted = dotted(&name);
        let refuse = |why: &str| {
            Err(Refusal::new(
                format!("linux.sysctls[{name}]"),
                why.to_owned(),
            ))
        };
        let safe = dotted.split('.').all(|part| {
            // In a sysctl name a slash means a dot: a part of slashes alone is invalid.
            !part.chars().all(|c| c == '/')
                && part
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '/' | ':' | '@'))
        });
        if !safe || value.contains(['\0', '\n']) {
            return refuse("invalid name or value of a kernel parameter");
        }
        match owner(&dotted) {
            Some(Owner::Network) if !network => {
                return refuse(
                    "the pod uses the host network, so it cannot set network parameters",
                );
            }
            Some(Owner::Ipc) if !ipc => {
                return refuse(
                    "the pod uses the host's IPC namespace, so it cannot set IPC parameters",
                );
            }
            Some(_) => sysctls.insert(dotted, value),
            None => {
                return refuse(
                    "it is not a parameter of the pod's own namespaces: net.*, fs.mqueue.*, kernel.shm*, kernel.msg* and kernel.sem are",
                );
            }
        };
    }
    if network {
        // Inside of a pod, ports below 1024 and echo requests need no privilege.
        sysctls
            .entry("net.ipv4.ip_unprivileged_port_start".to_owned())
            .or_insert_with(|| "0".to_owned());
        if !user {
            sysctls
                .entry("net.ipv4.ping_group_range".to_owned())
                .or_insert_with(|| "0 2147483647".to_owned());
        }
    }
    Ok(sysctls)
}

enum Owner {
    Network,
    Ipc,
}

fn owner(name: &str) -> Option<Owner> {
    const IPC: [&str; 11] = [
        "kernel.msgmax",
        "kernel.msgmnb",
        "kernel.msgmni",
        "kernel.sem",
        "kernel.shmall",
        "kernel.shmmax",
        "kernel.shmmni",
        "kernel.shm_rmid_forced",
        "kernel.msg_next_id",
        "kernel.sem_next_id",
        "kernel.shm_next_id",
    ];
    if name.starts_with("net.") {
        Some(Owner::Network)
    } else if name.starts_with("fs.mqueue.") || IPC.contains(&name) {
        Some(Owner::Ipc)
    } else {
        None
    }
}

/// `net/ipv4/conf/eth0.1/x` and `net.ipv4.conf.eth0/1.x` are the same: where slashes separate, dots
/// are part of a name. The dotted form has them as slashes.
fn dotted(name: &str) -> String {
    match name.find(['.', '/']) {
        Some(at) if name.as_bytes()[at] == b'/' => name
            .chars()
            .map(|c| match c {
                '/' => '.',
                '.' => '/',
                c => c,
            })
            .collect(),
        _ => name.to_owned(),
    }
}
