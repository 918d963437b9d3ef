//! Host name and domain of a pod. Pure.

use rubelet_api::{parse::is_dns_subdomain, pod::Pod};

/// Maximum length of a hostname: the limit of a DNS label.
const MAX_NAME: usize = 63;
/// Maximum length of the kernel's node name.
const MAX_KERNEL_NAME: usize = 64;

/// Host name of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodHostname {
    /// `hostname`, or the pod's name.
    pub name: String,
    /// Domain, if the pod has a `subdomain`.
    pub domain: Option<String>,
    /// The name was too long and was truncated.
    pub truncated: bool,
}

/// A pod has no valid host name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostnameError {
    /// Nothing is left of the name after truncation.
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
    /// Name and domain, if there is a domain.
    #[must_use]
    pub fn fqdn(&self) -> Option<String> {
        self.domain
            .as_ref()
            .map(|domain| format!("{}.{domain}", self.name))
    }

    /// The hostname that the kernel reports in the sandbox; with `setHostnameAsFQDN` including the
    /// domain.
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

/// The host name of a pod: its `hostname` or its own name, truncated to 63 bytes, without trailing
/// dashes and dots. The domain is `<subdomain>.<namespace>.svc.<cluster domain>`. A
/// `hostnameOverride` replaces both, truncated alike (kubelet: `GeneratePodHostNameAndDomain`).
///
/// # Errors
/// Nothing is left of the name, or the override is not a DNS name.
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
mod tests;
