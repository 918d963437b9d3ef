//! Functions of the same machine code, merged by the linker: generic code has many of them. Smaller
//! code is less memory.

use std::path::Path;
use std::process::{Command, Stdio};

/// The argument for the linker. Source: ld.lld(1), mold(1), gold's `--help`.
const MERGE: &str = "-Wl,--icf=all";

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

/// The argument that makes the linker merge such functions; `None` if it knows none, as GNU ld.
pub(crate) fn merging_argument(linking: &Linking<'_>, directory: &Path) -> Option<&'static str> {
    let source = directory.join("merged.rs");
    std::fs::write(&source, "fn main() {}").ok()?;
    let mut command = Command::new(linking.rustc);
    command
        .arg(&source)
        .args(["--crate-type", "bin", "--target", linking.target])
        .args(["--edition", "2024", "-C", &format!("link-arg={MERGE}")])
        .args(linking.linker.map(|linker| format!("-Clinker={linker}")))
        .args(linking.flags.split('\x1f').filter(|flag| !flag.is_empty()))
        .arg("-o")
        .arg(directory.join("merged"))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let linked = command.status().is_ok_and(|status| status.success());
    linked.then_some(MERGE)
}
