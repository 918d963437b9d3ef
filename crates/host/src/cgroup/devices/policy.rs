//! The meaning of a list of rules: a default, and exceptions that are independent of their order.
//! Both cgroup versions enforce exactly this, so they can't differ.

use std::{collections::BTreeMap, fmt};

use rubelet_oci::{DeviceKind, DeviceRule};

/// Why a rule can't be enforced.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// The access is empty or has another letter.
    #[error("the device rule `{0}` names no access: one or more of `r`, `w` and `m`")]
    Access(String),
    /// Cgroups do not support this type of device.
    #[error("the device rule `{0}` is for a kind of file that cgroups don't restrict")]
    Kind(String),
    /// An invalid device number.
    #[error("the device rule `{0}` has a device number that is out of range")]
    Number(String),
    /// Cgroups support one default and exceptions from it, no exceptions from exceptions.
    #[error(
        "the device rule `{rule}` takes back a part of the earlier rule `{earlier}`, which cgroups \
         cannot express: write rules that don't overlap"
    )]
    Part {
        /// The later rule.
        rule: String,
        /// The earlier one.
        earlier: String,
    },
}

/// Bits of an access, as the kernel's `BPF_DEVCG_ACC_*`.
pub(super) const MKNOD: u8 = 1;
pub(super) const READ: u8 = 2;
pub(super) const WRITE: u8 = 4;
const ALL: u8 = MKNOD | READ | WRITE;

/// The default and the exceptions from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Policy {
    allow: bool,
    exceptions: BTreeMap<Devices, u8>,
}

/// Some devices of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Devices {
    pub(super) block: bool,
    /// `None` means any.
    pub(super) major: Option<u32>,
    pub(super) minor: Option<u32>,
}

/// One exception; displays in version 1's format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exception {
    pub(super) devices: Devices,
    pub(super) access: u8,
}

impl Policy {
    /// Evaluates the rules, from a state in which everything is denied.
    pub(super) fn from_rules(rules: &[DeviceRule]) -> Result<Self, RuleError> {
        let mut policy = Self {
            allow: false,
            exceptions: BTreeMap::new(),
        };
        for rule in rules {
            policy.add(rule)?;
        }
        Ok(policy)
    }

    pub(super) fn allows_by_default(&self) -> bool {
        self.allow
    }

    pub(super) fn exceptions(&self) -> impl Iterator<Item = Exception> {
        self.exceptions.iter().map(|(devices, access)| Exception {
            devices: *devices,
            access: *access,
        })
    }

    fn add(&mut self, rule: &DeviceRule) -> Result<(), RuleError> {
        let access = access(rule)?;
        let major = number(rule, rule.major)?;
        let minor = number(rule, rule.minor)?;
        let kinds: &[bool] = match rule.kind {
            DeviceKind::Char => &[false],
            DeviceKind::Block => &[true],
            DeviceKind::All if access == ALL && major.is_none() && minor.is_none() => {
                self.allow = rule.allow;
                self.exceptions.clear();
                return Ok(());
            }
            DeviceKind::All => &[false, true],
            DeviceKind::Fifo => return Err(RuleError::Kind(text(rule))),
        };
        for block in kinds {
            let devices = Devices {
                block: *block,
                major,
                minor,
            };
            if rule.allow == self.allow {
                self.take_back(rule, devices, access)?;
            } else {
                *self.exceptions.entry(devices).or_default() |= access;
            }
        }
        Ok(())
    }

    /// Removes an access to devices from the exceptions.
    fn take_back(
        &mut self,
        rule: &DeviceRule,
        devices: Devices,
        access: u8,
    ) -> Result<(), RuleError> {
        for (known, known_access) in &mut self.exceptions {
            if *known_access & access == 0 || !known.meets(devices) {
                continue;
            }
            if !devices.covers(*known) {
                let earlier = Exception {
                    devices: *known,
                    access: *known_access,
                };
                return Err(RuleError::Part {
                    rule: text(rule),
                    earlier: format!("{} {earlier}", verb(!rule.allow)),
                });
            }
            *known_access &= !access;
        }
        self.exceptions.retain(|_, access| *access != 0);
        Ok(())
    }
}

impl Devices {
    /// Whether the two have devices in common.
    fn meets(self, other: Self) -> bool {
        let meet = |a: Option<u32>, b: Option<u32>| a.is_none() || b.is_none() || a == b;
        self.block == other.block && meet(self.major, other.major) && meet(self.minor, other.minor)
    }

    /// Whether this one includes all devices of the other.
    fn covers(self, other: Self) -> bool {
        let covers = |a: Option<u32>, b: Option<u32>| a.is_none() || a == b;
        self.block == other.block
            && covers(self.major, other.major)
            && covers(self.minor, other.minor)
    }
}

impl fmt::Display for Exception {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.devices.block { 'b' } else { 'c' };
        let number = |number: Option<u32>| number.map_or_else(|| "*".into(), |n| n.to_string());
        let (major, minor) = (number(self.devices.major), number(self.devices.minor));
        write!(f, "{kind} {major}:{minor} ")?;
        for (letter, bit) in [('r', READ), ('w', WRITE), ('m', MKNOD)] {
            if self.access & bit != 0 {
                write!(f, "{letter}")?;
            }
        }
        Ok(())
    }
}

fn access(rule: &DeviceRule) -> Result<u8, RuleError> {
    let mut access = 0;
    for letter in rule.access.chars() {
        access |= match letter {
            'r' => READ,
            'w' => WRITE,
            'm' => MKNOD,
            _ => return Err(RuleError::Access(text(rule))),
        };
    }
    if access == 0 {
        return Err(RuleError::Access(text(rule)));
    }
    Ok(access)
}

/// OCI runtimes also write -1 for any.
fn number(rule: &DeviceRule, number: Option<i64>) -> Result<Option<u32>, RuleError> {
    /// The kernel has 20 bits for the minor number and 12 for the major one.
    const MOST: u32 = (1 << 20) - 1;
    match number {
        None | Some(-1) => Ok(None),
        Some(number) => match u32::try_from(number) {
            Ok(number) if number <= MOST => Ok(Some(number)),
            _ => Err(RuleError::Number(text(rule))),
        },
    }
}

fn verb(allow: bool) -> &'static str {
    if allow { "allow" } else { "deny" }
}

fn text(rule: &DeviceRule) -> String {
    let kind = match rule.kind {
        DeviceKind::Char => 'c',
        DeviceKind::Block => 'b',
        DeviceKind::Fifo => 'p',
        DeviceKind::All => 'a',
    };
    let number = |number: Option<i64>| match number {
        None | Some(-1) => "*".to_owned(),
        Some(number) => number.to_string(),
    };
    let (major, minor) = (number(rule.major), number(rule.minor));
    format!(
        "{} {kind} {major}:{minor} {}",
        verb(rule.allow),
        rule.access
    )
}
