//! When a certificate is good enough, and when it is time for the next. Pure: `now` is an argument.

use super::pair::Leaf;
use aws_lc_rs::digest::{SHA256, digest};
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

/// Between two requests for a certificate, where each is issued and useless.
pub(super) const MIN_PAUSE: Duration = Duration::from_secs(60);

/// Time by which a signer backdates `notBefore`. Source of the rule:
/// `pkg/controller/certificates/signer` of Kubernetes 1.36.
const BACKDATED: SignedDuration = SignedDuration::from_secs(5 * 60);

/// Group of all nodes.
pub const NODES: &str = "system:nodes";

/// The subject and the names that a certificate should have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CertificateTemplate {
    /// CN of the subject.
    pub common_name: String,
    /// Each O of the subject.
    pub organizations: BTreeSet<String>,
    /// Names by which a server is called.
    pub dns_names: BTreeSet<String>,
    /// Addresses at which a server is called.
    pub addresses: BTreeSet<IpAddr>,
}

impl CertificateTemplate {
    /// The desired contents of the certificate of the node `name`.
    #[must_use]
    pub(crate) fn node(name: &str) -> Self {
        Self {
            common_name: format!("system:node:{name}"),
            organizations: BTreeSet::from([NODES.to_owned()]),
            ..Self::default()
        }
    }

    /// The same with names and addresses.
    #[must_use]
    pub(crate) fn with(mut self, names: &ServingNames) -> Self {
        self.dns_names.clone_from(&names.dns_names);
        self.addresses.clone_from(&names.addresses);
        self
    }
}

/// Names and addresses of a node, for the certificate of its port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServingNames {
    /// Host names.
    pub dns_names: BTreeSet<String>,
    /// Addresses.
    pub addresses: BTreeSet<IpAddr>,
}

impl ServingNames {
    /// From `status.addresses` of the Node object: type and address of each.
    ///
    /// Source of the rule: `addressesToHostnamesAndIPs` in `pkg/kubelet/certificate/kubelet.go`.
    pub fn of_node<'a>(addresses: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut names = Self::default();
        for (kind, text) in addresses {
            let ip = text.parse::<IpAddr>().ok();
            match (kind, ip) {
                (_, _) if text.is_empty() => {}
                ("Hostname" | "ExternalIP" | "InternalIP", Some(ip)) => {
                    names.addresses.insert(ip);
                }
                ("Hostname", None) | ("ExternalDNS" | "InternalDNS", _) => {
                    names.dns_names.insert(text.to_owned());
                }
                _ => {}
            }
        }
        names
    }

    /// Whether they are enough for a request: at least one address, or, with the feature gate
    /// AllowDNSOnlyNodeCSR, one name.
    #[must_use]
    pub(crate) fn suffice(&self, dns_only: bool) -> bool {
        !self.addresses.is_empty() || (dns_only && !self.dns_names.is_empty())
    }
}

/// Why a certificate is replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RenewalReason {
    /// There is no certificate.
    Missing,
    /// It is no longer valid.
    Expired(Timestamp),
    /// It was issued for another node.
    OtherName(String),
    /// It lacks this group, name or address.
    Lacks(String),
    /// It has reached the age at which it is renewed.
    Age,
    /// It was given with the kubeconfig and is replaced by the node's own.
    Foreign,
}

impl fmt::Display for RenewalReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("no certificate yet"),
            Self::Expired(at) => write!(f, "the certificate expired at {at}"),
            Self::OtherName(name) => write!(f, "the certificate was issued to {name:?}"),
            Self::Lacks(what) => write!(f, "the certificate lacks {what}"),
            Self::Age => f.write_str("the certificate is due for rotation"),
            Self::Foreign => f.write_str("the certificate came with the kubeconfig"),
        }
    }
}

/// The warning about a certificate that was just issued, is valid until `until`, and is due for replacement
/// nevertheless.
#[must_use]
pub(crate) fn issued_unusable(why: &RenewalReason, until: Timestamp, now: Timestamp) -> String {
    match why {
        RenewalReason::Expired(_) | RenewalReason::Age => format!(
            "the certificate that was just issued is valid until {until}, and this node's clock shows {now}: \
             compare the clocks of the node and of the cluster"
        ),
        why => format!("the issued certificate does not match the request: {why}"),
    }
}

/// How long to wait at most before a certificate is replaced that was issued just now and is due already. It
/// may be good by the cluster's clock, and must not end by that while the node waits.
#[must_use]
pub fn longest_pause(leaf: &Leaf) -> Duration {
    let life = leaf.not_after.duration_since(leaf.not_before);
    Duration::try_from(life / 2)
        .unwrap_or_default()
        .max(MIN_PAUSE)
}

/// When the next certificate is requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextRenewal {
    /// Now.
    Now(RenewalReason),
    /// Not before then.
    At(Timestamp),
}

/// Whether a certificate can be shown at all.
#[must_use]
pub fn is_valid(expires: Timestamp, now: Timestamp) -> bool {
    now <= expires
}

/// When `current` has to be replaced so that there is always one with the contents `wanted`.
/// `jitter`, from 0 to 1, spreads the nodes of a cluster.
#[must_use]
pub(crate) fn due(
    current: Option<&Leaf>,
    wanted: &CertificateTemplate,
    jitter: f64,
    now: Timestamp,
) -> NextRenewal {
    let Some(leaf) = current else {
        return NextRenewal::Now(RenewalReason::Missing);
    };
    if !is_valid(leaf.not_after, now) {
        return NextRenewal::Now(RenewalReason::Expired(leaf.not_after));
    }
    if leaf.common_name != wanted.common_name {
        return NextRenewal::Now(RenewalReason::OtherName(leaf.common_name.clone()));
    }
    let lacks = |what: &str, name: &dyn fmt::Display| {
        NextRenewal::Now(RenewalReason::Lacks(format!("{what} {name}")))
    };
    if let Some(group) = wanted.organizations.difference(&leaf.organizations).next() {
        return lacks("the group", group);
    }
    if let Some(name) = wanted.dns_names.difference(&leaf.dns_names).next() {
        return lacks("the name", name);
    }
    if let Some(address) = wanted.addresses.difference(&leaf.addresses).next() {
        return lacks("the address", address);
    }
    let at = rotation(leaf, jitter);
    match at <= now {
        true => NextRenewal::Now(RenewalReason::Age),
        false => NextRenewal::At(at),
    }
}

/// The moment at 70 % to 90 % of a certificate's life, by `jitter` from 0 to 1.
#[must_use]
pub fn rotation(leaf: &Leaf, jitter: f64) -> Timestamp {
    let life = leaf.not_after.duration_since(leaf.not_before);
    let share = 0.7 + 0.2 * jitter.clamp(0.0, 1.0);
    let age = SignedDuration::try_from_secs_f64(life.as_secs_f64() * share).unwrap_or(life);
    leaf.not_before.checked_add(age).unwrap_or(leaf.not_after)
}

/// The latest moment at which a certificate is renewed that arrived at `arrived`, whatever the clocks show: by a
/// clock that is slow its life seems to begin later, and it would be renewed when it has ended for the cluster.
/// kube-controller-manager dates certificates back by five minutes; another signer may not, so that no more than
/// half of a life counts as gone by, and a new certificate is never due at once.
#[must_use]
pub fn rotation_by_arrival(leaf: &Leaf, jitter: f64, arrived: Timestamp) -> Timestamp {
    let life = leaf.not_after.duration_since(leaf.not_before);
    let backdated = BACKDATED.min(life / 2);
    let begin = arrived.checked_sub(backdated).unwrap_or(Timestamp::MIN);
    let earlier = leaf
        .not_before
        .duration_since(begin)
        .max(SignedDuration::ZERO);
    let at = rotation(leaf, jitter);
    at.checked_sub(earlier).unwrap_or(Timestamp::MIN)
}

/// A number from 0 to 1 that follows from the certificate: the same after a restart, another for
/// each node.
#[must_use]
pub fn jitter(certificate: &[u8]) -> f64 {
    let digest = digest(&SHA256, certificate);
    let first = digest.as_ref().first_chunk().copied();
    let number = u32::from_be_bytes(first.expect("SHA-256 has 32 bytes"));
    f64::from(number) / f64::from(u32::MAX)
}

/// Seconds until `expires`, whole, below zero when it is past: the value of
/// `certificate_manager_client_ttl_seconds` and `certificate_manager_server_ttl_seconds`. Without a
/// certificate it is infinite.
#[must_use]
pub fn ttl_seconds(expires: Option<Timestamp>, now: Timestamp) -> f64 {
    expires.map_or(f64::INFINITY, |expires| {
        expires.duration_since(now).as_secs_f64().trunc()
    })
}

#[cfg(test)]
mod tests;
