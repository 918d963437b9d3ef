//! Which sysctls a pod may set (kubelet: the sysctl allow-list of admission).

use rubelet_api::pod::Pod;

/// Sysctls that are kept apart by namespaces and can't harm other pods.
const SAFE: [&str; 12] = [
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_wmem",
];

/// Reason of a pod that is rejected because of a sysctl.
pub const SYSCTL_FORBIDDEN: &str = "SysctlForbidden";

/// Why a pod may not set a sysctl.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SysctlError {
    /// It is not safe, and `allowedUnsafeSysctls` does not name it.
    #[error("forbidden sysctl: {0:?} not allowlisted")]
    NotAllowed(Box<str>),
    /// It would change the node, because the pod shares the node's namespace.
    #[error("forbidden sysctl: {name:?} not allowed with host {namespace} enabled")]
    HostNamespace {
        /// The sysctl.
        name: Box<str>,
        /// The namespace, as upstream writes it.
        namespace: &'static str,
    },
}

/// Checks all sysctls of a pod; `allowed_unsafe` holds names, or prefixes that end in `*`.
///
/// # Errors
/// The first one that is not allowed.
pub fn check_sysctls(pod: &Pod, allowed_unsafe: &[String]) -> Result<(), SysctlError> {
    for (name, _) in &pod.spec.security.sysctls {
        let dotted = name.replace('/', ".");
        let allowed = SAFE.contains(&dotted.as_str())
            || allowed_unsafe.iter().any(|pattern| {
                let pattern = pattern.replace('/', ".");
                match pattern.strip_suffix('*') {
                    Some(prefix) => dotted.starts_with(prefix),
                    None => pattern == dotted,
                }
            });
        if !allowed {
            return Err(SysctlError::NotAllowed(dotted.into()));
        }
        let host = if dotted.starts_with("net.") {
            pod.spec.host_network.then_some("Net")
        } else {
            pod.spec.host_ipc.then_some("IPC")
        };
        if let Some(namespace) = host {
            return Err(SysctlError::HostNamespace {
                name: dotted.into(),
                namespace,
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_pods;

    #[test]
    fn safe_ones_pass_and_others_need_a_pattern() {
        for (name, allowed, host_network, verdict) in [
            ("net.ipv4.tcp_syncookies", vec![], false, ""),
            ("net.ipv4.tcp_syncookies", vec![], true, "host Net"),
            ("kernel.msgmax", vec![], false, "not allowlisted"),
            ("kernel.msgmax", vec!["kernel.msg*".to_owned()], false, ""),
            ("kernel/msgmax", vec!["kernel.msgmax".to_owned()], false, ""),
            (
                "net.core.somaxconn",
                vec!["net.ipv4.*".to_owned()],
                false,
                "not allowlisted",
            ),
        ] {
            let mut pod = test_pods::pod();
            pod.spec.security.sysctls = vec![(name.into(), "1".into())];
            pod.spec.host_network = host_network;
            let result = check_sysctls(&pod, &allowed);
            let text = result
                .err()
                .map(|error| error.to_string())
                .unwrap_or_default();
            assert_eq!(text.is_empty(), verdict.is_empty(), "{name}: {text}");
            assert!(text.contains(verdict), "{name}: {text}");
        }
    }
}
