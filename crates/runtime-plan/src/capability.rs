//! Capabilities: their names, and the sets of a container.

use rubelet_cri::v1;
use rubelet_oci::{CAPABILITIES, Capabilities};

use crate::Refusal;

/// The capabilities of a container that requests none, as in docker and containerd.
const DEFAULT: [&str; 14] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "FSETID",
    "FOWNER",
    "MKNOD",
    "NET_RAW",
    "SETGID",
    "SETUID",
    "SETFCAP",
    "SETPCAP",
    "NET_BIND_SERVICE",
    "SYS_CHROOT",
    "KILL",
    "AUDIT_WRITE",
];

/// A set of capabilities, in the kernel's own form: bit n is capability n.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CapSet(u64);

impl CapSet {
    /// The empty set.
    pub const EMPTY: Self = Self(0);
    /// All capabilities with a name.
    pub const ALL: Self = Self((1 << CAPABILITIES.len()) - 1);

    /// The set of the kernel's bits, as in `CapBnd` of `/proc/self/status`. Bits without a name
    /// are omitted.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits & Self::ALL.0)
    }

    /// The kernel's bits.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The existing capabilities among `names`, with or without `CAP_`, in any case.
    pub fn of<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut set = Self::EMPTY;
        for bit in names.into_iter().filter_map(bit) {
            set.0 |= bit;
        }
        set
    }

    /// Reports whether that capability is in the set.
    #[must_use]
    pub fn has(self, name: &str) -> bool {
        bit(name).is_some_and(|bit| self.0 & bit != 0)
    }

    /// The union.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The intersection.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The capabilities that are not in `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The names with `CAP_`, by number.
    #[must_use]
    pub fn names(self) -> Vec<String> {
        CAPABILITIES
            .iter()
            .enumerate()
            .filter(|(number, _)| self.0 & (1 << number) != 0)
            .map(|(_, name)| format!("CAP_{name}"))
            .collect()
    }
}

fn bit(name: &str) -> Option<u64> {
    let upper = name.to_ascii_uppercase();
    let bare = upper.strip_prefix("CAP_").unwrap_or(&upper);
    let number = CAPABILITIES.iter().position(|known| *known == bare)?;
    Some(1 << number)
}

/// The sets of a container: what it requests, never more than `available`, the agent's own.
///
/// `ALL` is applied first and single names after it, additions before removals. Inheritable and
/// ambient sets are empty unless ambient capabilities are requested, which go into all sets: the
/// kernel requires it.
///
/// # Errors
/// An unknown capability, or one that the agent itself does not have.
pub fn container(
    security: &v1::LinuxContainerSecurityContext,
    available: CapSet,
) -> Result<Capabilities, Refusal> {
    let (granted, ambient) = if security.privileged {
        (available, CapSet::EMPTY)
    } else {
        chosen(security.capabilities.as_ref(), available)?
    };
    let granted = granted.union(ambient);
    Ok(Capabilities {
        bounding: granted.names(),
        effective: granted.names(),
        permitted: granted.names(),
        inheritable: ambient.names(),
        ambient: ambient.names(),
    })
}

fn chosen(wanted: Option<&v1::Capability>, available: CapSet) -> Result<(CapSet, CapSet), Refusal> {
    let mut granted = CapSet::of(DEFAULT).intersection(available);
    let Some(wanted) = wanted else {
        return Ok((granted, CapSet::EMPTY));
    };
    let all = |names: &[String]| names.iter().any(|name| name.eq_ignore_ascii_case("ALL"));
    if all(&wanted.add_capabilities) {
        granted = available;
    }
    if all(&wanted.drop_capabilities) {
        granted = CapSet::EMPTY;
    }
    let added = named(&wanted.add_capabilities, "add_capabilities", available)?;
    let dropped = CapSet::of(wanted.drop_capabilities.iter().map(String::as_str));
    granted = granted.union(added).without(dropped);
    let ambient = if all(&wanted.add_ambient_capabilities) {
        available
    } else {
        named(
            &wanted.add_ambient_capabilities,
            "add_ambient_capabilities",
            available,
        )?
    };
    Ok((granted, ambient.without(dropped)))
}

fn named(names: &[String], list: &str, available: CapSet) -> Result<CapSet, Refusal> {
    let mut set = CapSet::EMPTY;
    for name in names
        .iter()
        .filter(|name| !name.eq_ignore_ascii_case("ALL"))
    {
        let refuse = |message: String| {
            Refusal::new(
                format!("linux.security_context.capabilities.{list}"),
                message,
            )
        };
        let one = CapSet::of([name.as_str()]);
        if one == CapSet::EMPTY {
            return Err(refuse(format!("unknown capability {name:?}")));
        }
        if one.intersection(available) == CapSet::EMPTY {
            return Err(refuse(format!(
                "{name} cannot be granted: the agent itself does not have it on this host"
            )));
        }
        set = set.union(one);
    }
    Ok(set)
}

#[cfg(test)]
mod tests;
