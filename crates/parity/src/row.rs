//! One row of a table, and the notation of rows.

use rubelet_base::parity::ParityVerdict::{self, Better, Differs, NotYet, Same};

/// Something that the kubelet of Kubernetes 1.36 has, or that only Rubelet has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParityRow {
    /// Its name.
    pub name: &'static str,
    /// How it compares here.
    pub verdict: ParityVerdict,
    /// Why, where it is not the same.
    pub why: &'static str,
}

const fn row(name: &'static str, verdict: ParityVerdict, why: &'static str) -> ParityRow {
    ParityRow { name, verdict, why }
}

pub(super) const fn same(name: &'static str) -> ParityRow {
    row(name, Same, "")
}

pub(super) const fn better(name: &'static str, why: &'static str) -> ParityRow {
    row(name, Better, why)
}

pub(super) const fn differs(name: &'static str, why: &'static str) -> ParityRow {
    row(name, Differs, why)
}

pub(super) const fn not_yet(name: &'static str, why: &'static str) -> ParityRow {
    row(name, NotYet, why)
}
