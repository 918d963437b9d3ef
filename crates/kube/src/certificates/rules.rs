//! When a certificate is good enough, and when it is time for the next. Pure: `now` is an argument.

use super::pair::Leaf;
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

/// Between two requests for a certificate, where each is issued and useless.
pub(super) const SHORTEST: Duration = Duration::from_secs(60);

/// How long before its making a certificate's life begins. Source of the rule:
/// `pkg/controller/certificates/signer` of Kubernetes 1.36.
const BACKDATED: SignedDuration = SignedDuration::from_secs(5 * 60);

/// Group of all nodes.
pub const NODES: &str = "system:nodes";

/// What a certificate should say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// CN of the subject.
    pub common_name: String,
    /// Each O of the subject.
    pub organizations: BTreeSet<String>,
    /// Names by which a server is called.
    pub dns_names: BTreeSet<String>,
    /// Addresses at which a server is called.
    pub addresses: BTreeSet<IpAddr>,
}

impl Wanted {
    /// What the certificate of the node `name` should say.
    #[must_use]
    pub fn node(name: &str) -> Self {
        Self {
            common_name: format!("system:node:{name}"),
            organizations: BTreeSet::from([NODES.to_owned()]),
            ..Self::default()
        }
    }

    /// The same with names and addresses.
    #[must_use]
    pub fn with(mut self, names: &ServingNames) -> Self {
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
    pub fn suffice(&self, dns_only: bool) -> bool {
        !self.addresses.is_empty() || (dns_only && !self.dns_names.is_empty())
    }
}

/// Why a certificate is replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// There is none.
    Missing,
    /// It is no longer valid.
    Expired(Timestamp),
    /// It is somebody else's.
    OtherName(String),
    /// It lacks this group, name or address.
    Lacks(String),
    /// It has reached the age at which it is renewed.
    Age,
    /// It was given with the kubeconfig and is replaced by the node's own.
    Foreign,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("there is no certificate yet"),
            Self::Expired(at) => write!(f, "the certificate expired at {at}"),
            Self::OtherName(name) => write!(f, "the certificate is that of {name:?}"),
            Self::Lacks(what) => write!(f, "the certificate lacks {what}"),
            Self::Age => f.write_str("the certificate has reached the age of its renewal"),
            Self::Foreign => {
                f.write_str("the certificate came with the kubeconfig and is replaced")
            }
        }
    }
}

/// What to say of a certificate that was issued just now, is valid until `until`, and has to be replaced all
/// the same.
#[must_use]
pub fn useless(why: &Why, until: Timestamp, now: Timestamp) -> String {
    match why {
        Why::Expired(_) | Why::Age => format!(
            "a certificate was issued that is valid until {until}, and this node's clock shows {now}: \
             compare the clocks of the node and of the cluster"
        ),
        why => format!("a certificate was issued that is not what was asked for: {why}"),
    }
}

/// How long to wait at most before a certificate is replaced that was issued just now and is due already. It
/// may be good by the cluster's clock, and must not end by that while the node waits.
#[must_use]
pub fn longest_pause(leaf: &Leaf) -> Duration {
    let life = leaf.not_after.duration_since(leaf.not_before);
    Duration::try_from(life / 2)
        .unwrap_or_default()
        .max(SHORTEST)
}

/// When the next certificate is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Due {
    /// Now.
    Now(Why),
    /// Not before then.
    At(Timestamp),
}

/// Whether a certificate can be shown at all.
#[must_use]
pub fn is_valid(expires: Timestamp, now: Timestamp) -> bool {
    now <= expires
}

/// When `current` has to be replaced so that there is always one that says what is `wanted`.
/// `jitter`, from 0 to 1, spreads the nodes of a cluster.
#[must_use]
pub fn due(current: Option<&Leaf>, wanted: &Wanted, jitter: f64, now: Timestamp) -> Due {
    let Some(leaf) = current else {
        return Due::Now(Why::Missing);
    };
    if !is_valid(leaf.not_after, now) {
        return Due::Now(Why::Expired(leaf.not_after));
    }
    if leaf.common_name != wanted.common_name {
        return Due::Now(Why::OtherName(leaf.common_name.clone()));
    }
    let lacks =
        |what: &str, name: &dyn fmt::Display| Due::Now(Why::Lacks(format!("{what} {name}")));
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
        true => Due::Now(Why::Age),
        false => Due::At(at),
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
/// kube-controller-manager dates certificates back by five minutes.
#[must_use]
pub fn rotation_by_arrival(leaf: &Leaf, jitter: f64, arrived: Timestamp) -> Timestamp {
    let begin = arrived.checked_sub(BACKDATED).unwrap_or(Timestamp::MIN);
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
    use sha2::{Digest as _, Sha256};
    let digest = Sha256::digest(certificate);
    let number = u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]);
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
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn leaf() -> Leaf {
        let wanted = wanted();
        Leaf {
            common_name: wanted.common_name,
            organizations: wanted.organizations,
            dns_names: wanted.dns_names,
            addresses: wanted.addresses,
            not_before: at(0),
            not_after: at(1000),
        }
    }

    fn wanted() -> Wanted {
        let names = ServingNames::of_node([("Hostname", "a"), ("InternalIP", "10.0.0.1")]);
        Wanted::node("a").with(&names)
    }

    #[test]
    fn a_certificate_is_renewed_between_seventy_and_ninety_percent_of_its_life() {
        for (jitter, second) in [(0.0, 700), (0.5, 800), (1.0, 900), (7.0, 900)] {
            assert_eq!(rotation(&leaf(), jitter), at(second), "{jitter}");
            assert_eq!(
                due(Some(&leaf()), &wanted(), jitter, at(second - 1)),
                Due::At(at(second))
            );
            assert_eq!(
                due(Some(&leaf()), &wanted(), jitter, at(second)),
                Due::Now(Why::Age)
            );
        }
    }

    #[test]
    fn a_certificate_that_is_useless_at_once_is_told_with_the_reason() {
        for why in [Why::Age, Why::Expired(at(9))] {
            let line = useless(&why, at(9), at(10));
            let clocks = "compare the clocks of the node and of the cluster";
            assert_eq!(
                line,
                format!(
                    "a certificate was issued that is valid until {}, and this node's clock shows {}: {clocks}",
                    at(9),
                    at(10)
                )
            );
        }
        assert_eq!(
            useless(&Why::Lacks("the name a".to_owned()), at(9), at(1)),
            "a certificate was issued that is not what was asked for: the certificate lacks the name a"
        );
        let lives = |seconds| {
            longest_pause(&Leaf {
                not_after: at(seconds),
                ..leaf()
            })
            .as_secs()
        };
        assert_eq!((lives(1000), lives(30), lives(-1)), (500, 60, 60));
    }

    #[test]
    fn a_slow_clock_does_not_delay_the_renewal() {
        let minute = |count: i64| at(60 * count);
        let mut leaf = leaf();
        // An hour of life from the cluster's minute 20 on.
        (leaf.not_before, leaf.not_after) = (minute(15), minute(80));
        for (own_clock, latest) in [(20, 80), (30, 90), (10, 70), (0, 60), (15, 75)] {
            for jitter in [0.0, 1.0] {
                let by_arrival = rotation_by_arrival(&leaf, jitter, minute(own_clock));
                assert!(by_arrival <= rotation(&leaf, jitter), "{own_clock}");
                assert!(
                    by_arrival > minute(own_clock) && by_arrival < minute(latest),
                    "{own_clock}"
                );
                let in_time = own_clock >= 20;
                assert_eq!(
                    by_arrival == rotation(&leaf, jitter),
                    in_time,
                    "{own_clock}"
                );
            }
        }
        assert!(rotation_by_arrival(&leaf, 0.0, Timestamp::MIN) < leaf.not_before);
    }

    #[test]
    fn a_certificate_that_is_not_good_enough_is_replaced_at_once_and_the_reason_is_said() {
        let with = |change: &dyn Fn(&mut Leaf)| {
            let mut leaf = leaf();
            change(&mut leaf);
            match due(Some(&leaf), &wanted(), 0.0, at(10)) {
                Due::Now(why) => why.to_string(),
                Due::At(_) => "good".to_owned(),
            }
        };
        assert_eq!(due(None, &wanted(), 0.0, at(0)), Due::Now(Why::Missing));
        assert_eq!(with(&|_| {}), "good");
        assert_eq!(
            with(&|leaf| leaf.not_after = at(9)),
            format!("the certificate expired at {}", at(9))
        );
        assert_eq!(
            with(&|leaf| leaf.common_name = "system:node:b".to_owned()),
            "the certificate is that of \"system:node:b\""
        );
        assert_eq!(
            with(&|leaf| leaf.organizations.clear()),
            "the certificate lacks the group system:nodes"
        );
        assert_eq!(
            with(&|leaf| leaf.dns_names.clear()),
            "the certificate lacks the name a"
        );
        assert_eq!(
            with(&|leaf| leaf.addresses.clear()),
            "the certificate lacks the address 10.0.0.1"
        );
        let more = |leaf: &mut Leaf| {
            leaf.dns_names.insert("more".to_owned());
            leaf.organizations.insert("others".to_owned());
        };
        assert_eq!(with(&more), "good", "more than wanted is no reason");
    }

    #[test]
    fn names_and_addresses_come_from_the_node() {
        let names = ServingNames::of_node([
            ("InternalIP", "10.0.0.1"),
            ("ExternalIP", "fd00::1"),
            ("InternalIP", "not an address"),
            ("Hostname", "node"),
            ("Hostname", "10.0.0.2"),
            ("InternalDNS", "node.internal"),
            ("ExternalDNS", ""),
        ]);
        let addresses: Vec<String> = names.addresses.iter().map(ToString::to_string).collect();
        assert_eq!(addresses, ["10.0.0.1", "10.0.0.2", "fd00::1"]);
        let dns: Vec<&str> = names.dns_names.iter().map(String::as_str).collect();
        assert_eq!(dns, ["node", "node.internal"]);
        let only = ServingNames::of_node([("Hostname", "node")]);
        assert!(!only.suffice(false) && only.suffice(true) && names.suffice(false));
    }

    #[test]
    fn the_jitter_follows_from_the_certificate() {
        assert_eq!(jitter(b"a").to_bits(), jitter(b"a").to_bits());
        assert!(jitter(b"a") != jitter(b"b"));
        assert!((0.0..=1.0).contains(&jitter(b"c")));
    }

    #[test]
    fn the_time_to_live_is_whole_negative_or_infinite() {
        assert_eq!(ttl_seconds(Some(at(10)), at(0)), 10.0);
        assert_eq!(ttl_seconds(Some(at(0)), at(10)), -10.0);
        assert_eq!(ttl_seconds(None, at(0)), f64::INFINITY);
    }
}
