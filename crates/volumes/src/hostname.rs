//! Host name and domain of a pod. Pure.

use rubelet_api::{parse::is_dns_subdomain, pod::Pod};

/// The most bytes of a host name: what a label of DNS may have.
const MAX_NAME: usize = 63;
/// The most bytes of the kernel's node name.
const MAX_KERNEL_NAME: usize = 64;

/// Host name of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodHostname {
    /// `hostname`, or the pod's name.
    pub name: String,
    /// Domain, if the pod has a `subdomain`.
    pub domain: Option<String>,
    /// The name was too long and was cut.
    pub truncated: bool,
}

/// Why a pod has no host name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostnameError {
    /// Nothing is left of the name after it was cut.
    #[error("hostname for pod \"{pod}\" was invalid: \"{hostname}\"")]
    Invalid {
        /// Name of the pod.
        pod: String,
        /// The name.
        hostname: String,
    },
    /// Name and domain are too long for the kernel together.
    #[error(
        "failed to construct FQDN from pod hostname and cluster domain, FQDN {fqdn} is too long \
         ({MAX_KERNEL_NAME} characters is the max, {} characters requested)",
        fqdn.len()
    )]
    Fqdn {
        /// Name and domain.
        fqdn: String,
    },
}

impl PodHostname {
    /// Name and domain together, if there is a domain.
    #[must_use]
    pub fn fqdn(&self) -> Option<String> {
        self.domain
            .as_ref()
            .map(|domain| format!("{}.{domain}", self.name))
    }

    /// What the kernel of the sandbox is told. With `setHostnameAsFQDN` the domain belongs to it.
    ///
    /// # Errors
    /// Name and domain are longer than 64 bytes.
    pub fn kernel_name(&self, as_fqdn: bool) -> Result<String, HostnameError> {
        match self.fqdn() {
            Some(fqdn) if as_fqdn && fqdn.len() > MAX_KERNEL_NAME => {
                Err(HostnameError::Fqdn { fqdn })
            }
            Some(fqdn) if as_fqdn => Ok(fqdn),
            _ => Ok(self.name.clone()),
        }
    }
}

/// The host name of a pod: its `hostname` or its own name, cut to 63 bytes, without dashes and
/// dots at the end of what was cut. The domain is `<subdomain>.<namespace>.svc.<cluster domain>`. A
/// `hostnameOverride` stands in for both, cut alike (kubelet: `GeneratePodHostNameAndDomain`).
///
/// # Errors
/// Nothing is left of the name, or the override is no DNS name.
pub fn pod_hostname(pod: &Pod, cluster_domain: &str) -> Result<PodHostname, HostnameError> {
    let set = |text: &Option<Box<str>>| {
        text.as_deref()
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
    };
    let own = pod.spec.hostname_override.as_deref();
    let full = match own {
        Some(name) => name.to_owned(),
        None => set(&pod.spec.hostname).unwrap_or_else(|| pod.name.name.to_string()),
    };
    let truncated = full.len() > MAX_NAME;
    let name = if truncated {
        let cut = &full[..full.floor_char_boundary(MAX_NAME)];
        cut.trim_end_matches(['-', '.']).to_owned()
    } else {
        full.clone()
    };
    if name.is_empty() || own.is_some_and(|name| !is_dns_subdomain(name)) {
        return Err(HostnameError::Invalid {
            pod: pod.name.name.to_string(),
            hostname: full,
        });
    }
    let domain = set(&pod.spec.subdomain)
        .filter(|_| own.is_none())
        .map(|subdomain| format!("{subdomain}.{}.svc.{cluster_domain}", pod.name.namespace));
    Ok(PodHostname {
        name,
        domain,
        truncated,
    })
}

#[cfg(test)]
mod tests {
    use rubelet_base::PodName;

    use super::*;
    use crate::test_support::pod;

    #[test]
    fn names_come_from_the_pod_and_are_cut_to_a_label() {
        let long = "x".repeat(62);
        for (pod_name, hostname, expected, truncated) in [
            ("web", None, "web", false),
            ("web", Some("db"), "db", false),
            ("web", Some(""), "web", false),
            (&*"x".repeat(63), None, &*"x".repeat(63), false),
            (&*"x".repeat(64), None, &*"x".repeat(63), true),
            (&*format!("{long}-yz"), None, &*long, true),
            (
                &*format!("{}.-.yz", "x".repeat(60)),
                None,
                &*"x".repeat(60),
                true,
            ),
        ] {
            let mut pod = pod();
            pod.name = PodName::new("default", pod_name);
            pod.spec.hostname = hostname.map(Into::into);
            let name = pod_hostname(&pod, "cluster.local").unwrap();
            assert_eq!(
                (&*name.name, name.truncated),
                (expected, truncated),
                "{pod_name}"
            );
            assert_eq!(name.kernel_name(true).unwrap(), expected);
        }
        let mut pod = pod();
        pod.name = PodName::new("default", &"-".repeat(70));
        let error = pod_hostname(&pod, "").unwrap_err().to_string();
        assert!(error.starts_with("hostname for pod \"---"), "{error}");
    }

    #[test]
    fn an_override_stands_in_for_name_and_domain() {
        let mut pod = pod();
        pod.spec.hostname = Some("db".into());
        pod.spec.subdomain = Some("sub".into());
        let long = "x".repeat(64);
        for (name, expected) in [
            ("node-7.example.com", Ok("node-7.example.com")),
            (&*long, Ok(&long[..63])),
            ("", Err(())),
            ("no name", Err(())),
        ] {
            pod.spec.hostname_override = Some(name.into());
            let made = pod_hostname(&pod, "cluster.local");
            let made = made.map_err(drop).map(|made| {
                assert_eq!(made.domain, None);
                made.kernel_name(true).unwrap()
            });
            assert_eq!(made, expected.map(str::to_owned), "{name}");
        }
    }

    #[test]
    fn a_subdomain_gives_a_domain_that_the_kernel_may_be_told() {
        let mut pod = pod();
        pod.spec.subdomain = Some("db".into());
        let name = pod_hostname(&pod, "cluster.local").unwrap();
        assert_eq!(name.domain.as_deref(), Some("db.default.svc.cluster.local"));
        assert_eq!(name.kernel_name(false).unwrap(), "web");
        assert_eq!(
            name.kernel_name(true).unwrap(),
            "web.db.default.svc.cluster.local"
        );

        // 36 bytes for the rest.
        let fqdn = |length: usize| {
            pod.clone_with_hostname(length)
                .and_then(|name| name.kernel_name(true))
        };
        assert_eq!(fqdn(35).unwrap().len(), 64);
        let error = fqdn(36).unwrap_err().to_string();
        assert!(
            error.ends_with("(64 characters is the max, 65 characters requested)"),
            "{error}"
        );
    }

    trait WithHostname {
        fn clone_with_hostname(&self, length: usize) -> Result<PodHostname, HostnameError>;
    }

    impl WithHostname for Pod {
        fn clone_with_hostname(&self, length: usize) -> Result<PodHostname, HostnameError> {
            let mut pod = self.clone();
            pod.spec.hostname = Some("h".repeat(length).into());
            pod_hostname(&pod, "cluster.local")
        }
    }
}
