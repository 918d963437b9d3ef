//! Arguments for the linker, and whether it knows them.

use std::path::Path;
use std::process::{Command, Stdio};

/// Merges functions of the same machine code: generic code has many of them. Smaller code is less
/// memory. Source: ld.lld(1), mold(1), gold's `--help`.
pub(crate) const MERGE: &str = "-Wl,--icf=all";
/// Links a program that is always at the same address. Without optimisation it has a quarter of a million pointers
/// to itself, and to adjust them at each start would take longer than most commands. A released program is at a random
/// address, against attacks. Source: gcc(1).
pub(crate) const NOT_RELOCATED: &str = "-no-pie";

/// How this build links, as cargo tells its build scripts.
pub(crate) struct Linking<'a> {
    /// The compiler.
    pub(crate) rustc: &'a str,
    /// The target.
    pub(crate) target: &'a str,
    /// The configured linker; without one, the target's default.
    pub(crate) linker: Option<&'a str>,
    /// The configured flags of the compiler, separated by 0x1f.
    pub(crate) flags: &'a str,
}

/// Whether the linker knows this argument. GNU ld, for example, merges nothing.
pub(crate) fn accepts(linking: &Linking<'_>, directory: &Path, argument: &str) -> bool {
    let source = directory.join("trial.rs");
    if std::fs::write(&source, "fn main() {}").is_err() {
        return false;
    }
    let mut command = Command::new(linking.rustc);
    command
        .arg(&source)
        .args(["--crate-type", "bin", "--target", linking.target])
        .args(["--edition", "2024", "-C", &format!("link-arg={argument}")])
        .args(linking.linker.map(|linker| format!("-Clinker={linker}")))
        .args(linking.flags.split('\x1f').filter(|flag| !flag.is_empty()))
        .arg("-o")
        .arg(directory.join("trial"))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
