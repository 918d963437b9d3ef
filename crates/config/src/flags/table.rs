//! The table of all flags, from which the command line is parsed and documented.

mod cadvisor;
mod fields;
mod own;
mod runtime;

use super::{Flag, FlagKind, Role};

/// Every flag, by subject.
pub fn all() -> impl Iterator<Item = &'static Flag> {
    own::FLAGS
        .iter()
        .chain(fields::FLAGS)
        .chain(runtime::FLAGS)
        .chain(cadvisor::FLAGS)
}

/// The flag of this name, spelled with `-`.
pub(super) fn find(name: &str) -> Option<&'static Flag> {
    all().find(|flag| flag.name == name)
}

const fn flag(
    name: &'static str,
    kind: FlagKind,
    role: Role,
    default: &'static str,
    help: &'static str,
) -> Flag {
    Flag {
        name,
        kind,
        role,
        help,
        default,
    }
}
