//! Passes build information for `rubelet version -o json` to the compiler: commit, compiler,
//! features and linked libraries. None of it depends on the time or directory of the build. Makes
//! released binaries smaller, and others start sooner, where the linker can.
#![allow(clippy::print_stdout)] // That is how a build script speaks to cargo.

mod commit;
mod git;
mod libraries;
mod linker;

use std::path::{Path, PathBuf};
use std::process::Command;

use commit::{Commit, Given};
use linker::Linking;

fn main() {
    if let Err(message) = run() {
        // Fails the build with a single line for its user.
        println!("cargo::error={message}");
    }
}

fn run() -> Result<(), String> {
    let package = PathBuf::from(required("CARGO_MANIFEST_DIR")?);
    let root = package
        .ancestors()
        .nth(2)
        .ok_or("the package is not in a workspace")?;
    for path in [
        package.join("build"),
        package.join("commit.txt"),
        root.join("Cargo.lock"),
        root.join("Cargo.toml"),
    ] {
        watch(&path);
    }

    let release = required("PROFILE")? == "release";
    let linked = libraries::linked(root, &required("TARGET")?)?;
    for member in linked
        .iter()
        .filter_map(|library| library.directory.as_ref())
    {
        watch(&member.join("Cargo.toml"));
        // An edit changes the tree's state. It causes a rebuild of the binary anyway, except edits
        // of tests, which is why development builds ignore the state.
        if release {
            watch(&member.join("src"));
        }
    }

    let argument = match release {
        true => linker::MERGE,
        false => linker::NOT_RELOCATED,
    };
    link_with(argument)?;

    let commit = commit(root, &package, release)?;
    set("COMMIT", &commit.id);
    set(
        "COMMIT_TIME",
        &commit.seconds.unwrap_or_default().to_string(),
    );
    set("TREE_STATE", commit.tree);
    set("RUSTC_VERSION", &rustc_version()?);
    set("TARGET", &required("TARGET")?);
    set("PROFILE", &required("PROFILE")?);
    set("FEATURES", &libraries::features(&linked).join(","));
    set("LIBRARIES", &libraries::versions(&linked).join(","));
    Ok(())
}

/// Gives the linker this argument if it knows it.
fn link_with(argument: &str) -> Result<(), String> {
    let linker = std::env::var("RUSTC_LINKER").ok();
    let linking = Linking {
        rustc: &required("RUSTC")?,
        target: &required("TARGET")?,
        linker: linker.as_deref(),
        flags: &std::env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default(),
    };
    let directory = PathBuf::from(required("OUT_DIR")?);
    if linker::accepts(&linking, &directory, argument) {
        println!("cargo::rustc-link-arg-bins={argument}");
    }
    Ok(())
}

/// The commit of the build: see [`commit::choose`] for the order of its sources.
fn commit(root: &Path, package: &Path, release: bool) -> Result<Commit, String> {
    for name in ["RUBELET_COMMIT", "SOURCE_DATE_EPOCH"] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    let variable = std::env::var("RUBELET_COMMIT").ok();
    let epoch = std::env::var("SOURCE_DATE_EPOCH").ok();
    let file = std::fs::read_to_string(package.join("commit.txt")).ok();
    let given = Given {
        variable: variable.as_deref(),
        epoch: epoch.as_deref(),
        file: file.as_deref(),
    };
    commit::choose(given, || {
        let checkout = git::look(root, release)?;
        checkout.watched.iter().for_each(|path| watch(path));
        Some(checkout.commit)
    })
}

fn rustc_version() -> Result<String, String> {
    let rustc = required("RUSTC")?;
    let output = Command::new(&rustc)
        .arg("--version")
        .output()
        .map_err(|error| format!("cannot run {rustc}: {error}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn set(name: &str, value: &str) {
    println!("cargo::rustc-env=RUBELET_BUILD_{name}={value}");
}

/// Reruns this script when the file changes. Cargo would rerun it each time for a missing one.
fn watch(path: &Path) {
    if path.exists() {
        println!("cargo::rerun-if-changed={}", path.display());
    }
}

fn required(name: &str) -> Result<String, String> {
    std::env::var(name).map_err(|_| format!("cargo does not set {name}"))
}
