//! SELinux: labels are not supported, and containers that request them are refused.

use rubelet_cri::v1;

use crate::{Refusal, host::HostFacts};

/// Refuses labels that would have to be applied.
///
/// On a host without SELinux, options are ignored, as in other runtimes: they may concern other
/// nodes. On a host with SELinux, containers run under the label of this program, as they do with
/// containerd unless its `enable_selinux` is set.
///
/// # Errors
/// Options on a host with SELinux.
pub fn selinux(options: Option<&v1::SeLinuxOption>, host: &HostFacts) -> Result<(), Refusal> {
    let asked = options.is_some_and(|options| *options != v1::SeLinuxOption::default());
    if !asked || !host.selinux {
        return Ok(());
    }
    Err(Refusal::new(
        "linux.security_context.selinux_options",
        "SELinux is enabled on this host, and this runtime does not apply its labels: remove seLinuxOptions from the pod, or use containerd for such pods",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::tests::host;

    #[test]
    fn labels_are_refused_where_they_would_matter() {
        let on = HostFacts {
            selinux: true,
            ..host()
        };
        let asks = v1::SeLinuxOption {
            level: "s0:c1,c2".into(),
            ..Default::default()
        };
        assert_eq!(selinux(Some(&asks), &host()), Ok(()));
        assert_eq!(selinux(Some(&v1::SeLinuxOption::default()), &on), Ok(()));
        assert_eq!(selinux(None, &on), Ok(()));
        let refusal = selinux(Some(&asks), &on).unwrap_err();
        assert!(refusal.message.contains("seLinuxOptions"), "{refusal:?}");
    }
}
