//! The checks before the tests: the rules of the repository, format, lints, documentation, dependencies.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use rubelet_testbed::command::output_of;
use rubelet_testbed::{absent, target_dir};

use super::{deny, stages::Stages};
use crate::{cargo, codegen, tidy};

/// The arguments of clippy itself.
const LINTS: [&str; 2] = ["-D", "warnings"];
/// The environment variable with the directory of what cargo compiles on the way to a result.
const BUILD_DIR: &str = "CARGO_BUILD_BUILD_DIR";

/// Runs them, a stage each.
pub(super) fn run(root: &Path, stages: &mut Stages) {
    let cargo = |arguments: &[&str]| cargo::run(&mut cargo::command(root, arguments));
    stages.run("tidy", || tidy::run(root));
    stages.run("codegen", || codegen::check(root));
    stages.run("format", || cargo(&["fmt", "--all", "--check"]));
    stages.run("clippy", || {
        let clippy = ["clippy", "--workspace", "--all-targets", "--"];
        cargo(&[&clippy[..], &LINTS].concat())
    });
    stages.run("documentation", || document(root));
    stages.run("deny", || deny::check(root).map(drop));
}

/// Builds the documentation. What rustdoc reads of the crates that a crate depends on is what clippy
/// has left: in the environment of `cargo clippy`, cargo takes it as its own. In another one it
/// compiles the workspace once more.
fn document(root: &Path) -> Result<()> {
    let target = target_dir::target()?;
    let place = target.join("documentation");
    forget_index(&place.join("doc"))?;
    let mut command = cargo::command(root, &["doc", "--workspace", "--no-deps"]);
    // Everything but the pages themselves is where clippy has left it.
    command.env("CARGO_TARGET_DIR", place);
    if std::env::var_os(BUILD_DIR).is_none() {
        command.env(BUILD_DIR, target);
    }
    // Without a name, cargo selects no examples, and then other features: nothing could be shared.
    command.args(["--lib", "--examples", "--bin", "rubelet", "--bin", "xtask"]);
    if let Some(driver) = clippy_driver(root) {
        let lints = LINTS.map(|word| format!("{word}__CLIPPY_HACKERY__"));
        command
            .env("RUSTC_WORKSPACE_WRAPPER", driver)
            .env("CLIPPY_ARGS", lints.concat());
    }
    cargo::run(command.env("RUSTDOCFLAGS", "-D warnings"))
}

/// Removes what rustdoc writes for all crates together. It reads and writes all of that for each crate, one after the other,
/// which takes twice as long as the documentation; nobody reads these pages.
fn forget_index(directory: &Path) -> Result<()> {
    for name in ["search.index", "trait.impl", "type.impl"] {
        let path = directory.join(name);
        absent::is_fine(std::fs::remove_dir_all(&path))
            .with_context(|| format!("cannot remove {}", path.display()))?;
    }
    Ok(())
}

/// The compiler that `cargo clippy` runs.
fn clippy_driver(root: &Path) -> Option<PathBuf> {
    let mut rustc = Command::new("rustc");
    rustc.args(["--print", "sysroot"]).current_dir(root);
    let output = output_of(&mut rustc).ok()?;
    let sysroot = String::from_utf8(output.stdout).ok()?;
    let driver = Path::new(sysroot.trim()).join("bin/clippy-driver");
    driver.exists().then_some(driver)
}
