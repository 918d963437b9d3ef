//! Seccomp filters: the default profile, profiles from files, and their compilation to BPF
//! programs.
//!
//! Of several rules for one call, those that compare arguments come first, in the order of the
//! profile; a rule without comparisons decides what they leave. A call that is newer than our table
//! fails with `ENOSYS` unless calls are allowed by default, so that programs fall back to older
//! calls, as they do on an older kernel.

mod bpf;
mod compile;
mod default;
mod document;
mod numbers;
#[cfg(test)]
mod tests;

pub use compile::compile;
pub use default::{Socketcall, deciding, runtime_default};
pub use document::{ProfileContext, localhost};

use rubelet_oci::Architecture;

/// Architectures that Rubelet runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arch {
    /// 64-bit x86, which also executes the calls of 32-bit x86 and of x32.
    X86_64,
    /// 64-bit ARM, which also executes the calls of 32-bit ARM.
    Aarch64,
}

impl Arch {
    /// The architecture that this program was built for, or `None` if Rubelet does not run there.
    #[must_use]
    pub const fn native() -> Option<Self> {
        if cfg!(target_arch = "x86_64") {
            Some(Self::X86_64)
        } else if cfg!(target_arch = "aarch64") {
            Some(Self::Aarch64)
        } else {
            None
        }
    }

    /// All architectures whose calls its kernel may execute, its own first.
    const fn executes(self) -> &'static [Architecture] {
        match self {
            Self::X86_64 => &[Architecture::X86_64, Architecture::X86, Architecture::X32],
            Self::Aarch64 => &[Architecture::Aarch64, Architecture::Arm],
        }
    }
}
