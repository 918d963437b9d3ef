//! SELinux labels.

use rubelet_cri::v1;

use crate::{Refusal, host::HostFacts};

/// Labels of a pod's processes and of its mounts; empty where SELinux is off.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SeLinuxLabels {
    /// Label of processes.
    pub process: String,
    /// Label of files.
    pub mount: String,
}

/// The labels for `options`, or those of `inherited` (the sandbox) where none are given.
///
/// On a host without SELinux there are none, whatever is asked for: options are taken for a wish
/// that concerns other nodes, as upstream does. The level keeps pods apart: without one it is
/// derived from `id`.
///
/// # Errors
/// A part that is no part of a label.
pub fn selinux(
    options: Option<&v1::SeLinuxOption>,
    inherited: Option<&SeLinuxLabels>,
    id: &str,
    host: &HostFacts,
) -> Result<SeLinuxLabels, Refusal> {
    const FIELD: &str = "linux.security_context.selinux_options";
    if !host.selinux {
        return Ok(SeLinuxLabels::default());
    }
    let empty = v1::SeLinuxOption::default();
    let options = options.unwrap_or(&empty);
    if *options == empty
        && let Some(inherited) = inherited
    {
        return Ok(inherited.clone());
    }
    let check = |part: &str, name: &str, also: &str| {
        let fits = part
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_' || also.contains(c));
        if fits {
            Ok(())
        } else {
            Err(Refusal::new(
                format!("{FIELD}.{name}"),
                format!("{part:?} is no part of an SELinux label"),
            ))
        }
    };
    check(&options.user, "user", "")?;
    check(&options.role, "role", "")?;
    check(&options.r#type, "type", ".")?;
    check(&options.level, "level", ":,.-")?;
    let or = |given: &str, default: &str| if given.is_empty() { default } else { given }.to_owned();
    let user = or(&options.user, "system_u");
    let level = if options.level.is_empty() {
        categories(id)
    } else {
        options.level.clone()
    };
    Ok(SeLinuxLabels {
        process: format!(
            "{user}:{}:{}:{level}",
            or(&options.role, "system_r"),
            or(&options.r#type, "container_t")
        ),
        mount: format!("{user}:object_r:container_file_t:{level}"),
    })
}

/// Two of the 1024 categories, different and in order.
fn categories(id: &str) -> String {
    let hash = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let one = hash % 1024;
    let two = (one + 1 + (hash >> 32) % 1023) % 1024;
    format!("s0:c{},c{}", one.min(two), one.max(two))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::tests::host;

    #[test]
    fn labels_keep_pods_apart_and_containers_of_a_pod_together() {
        let on = HostFacts {
            selinux: true,
            ..host()
        };
        let pod = selinux(None, None, "s1", &on).unwrap();
        assert!(
            pod.process
                .starts_with("system_u:system_r:container_t:s0:c")
        );
        assert_ne!(pod, selinux(None, None, "s2", &on).unwrap());
        assert_eq!(pod, selinux(None, Some(&pod), "c1", &on).unwrap());
        let own = v1::SeLinuxOption {
            level: "s0:c1,c2".into(),
            r#type: "spc_t".into(),
            ..Default::default()
        };
        let own = selinux(Some(&own), Some(&pod), "c1", &on).unwrap();
        assert_eq!(own.process, "system_u:system_r:spc_t:s0:c1,c2");
        assert_eq!(own.mount, "system_u:object_r:container_file_t:s0:c1,c2");
        let bad = v1::SeLinuxOption {
            role: "a:b".into(),
            ..Default::default()
        };
        assert!(selinux(Some(&bad), None, "c1", &on).is_err());
        assert_eq!(
            selinux(Some(&bad), None, "c1", &host()),
            Ok(SeLinuxLabels::default())
        );
    }
}
