//! A private apt: the machine's own sources with another suite, its own lists and cache.
//!
//! Of the host's package state only the sources are read, and nothing is written.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::suite;
use crate::command::stdout_of;

const SOURCES_LIST: &str = "/etc/apt/sources.list";
const SOURCES_DIR: &str = "/etc/apt/sources.list.d";

/// Downloads package `name` from Debian's suite `to` into `dir`; the path of the .deb file.
pub(super) fn download(name: &str, from: &str, to: &str, dir: &Path) -> Result<PathBuf> {
    let config = configure(from, to, dir)?;
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command
            .arg("--config-file")
            .arg(&config)
            .args(arguments)
            .current_dir(dir);
        stdout_of(&mut command)
    };
    apt(&["update"]).with_context(|| format!("cannot read Debian's package lists of {to}"))?;
    apt(&["download", name])
        .with_context(|| format!("cannot download the package {name} of Debian {to}"))?;
    std::fs::read_dir(dir)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|ext| ext == "deb"))
        .with_context(|| format!("apt-get left no .deb file of {name} in {}", dir.display()))
}

/// Writes the private configuration; the path of its main file.
fn configure(from: &str, to: &str, dir: &Path) -> Result<PathBuf> {
    let parts = dir.join("sources.list.d");
    for directory in [
        &parts,
        &dir.join("lists/partial"),
        &dir.join("cache/archives/partial"),
    ] {
        std::fs::create_dir_all(directory)
            .with_context(|| format!("cannot create {}", directory.display()))?;
    }
    let mut found = false;
    for path in host_sources() {
        let Ok(text) = std::fs::read_to_string(&path) else {
            continue;
        };
        let deb822 = path.extension().is_some_and(|ext| ext == "sources");
        let derive = if deb822 {
            suite::derive_deb822
        } else {
            suite::derive_list
        };
        let derived = derive(&text, from, to);
        if !derived.is_empty() {
            let name = path.file_name().unwrap_or_default();
            std::fs::write(parts.join(name), derived)?;
            found = true;
        }
    }
    if !found {
        bail!(
            "no entry for Debian {from} found in {SOURCES_LIST} or {SOURCES_DIR}, so there is \
             nothing to derive a source for {to} from"
        );
    }
    let text = format!(
        "Dir::Etc::sourcelist \"/dev/null\";\nDir::Etc::sourceparts \"{parts}\";\n\
         Dir::Etc::preferences \"/dev/null\";\nDir::Etc::preferencesparts \"/dev/null\";\n\
         Dir::State::lists \"{dir}/lists\";\nDir::Cache \"{dir}/cache\";\n\
         Acquire::Languages \"none\";\nAPT::Sandbox::User \"root\";\n",
        parts = parts.display(),
        dir = dir.display(),
    );
    let config = dir.join("apt.conf");
    std::fs::write(&config, text)?;
    Ok(config)
}

fn host_sources() -> Vec<PathBuf> {
    let mut paths = vec![PathBuf::from(SOURCES_LIST)];
    if let Ok(entries) = std::fs::read_dir(SOURCES_DIR) {
        paths.extend(
            entries
                .filter_map(|entry| Some(entry.ok()?.path()))
                .filter(|path| {
                    path.extension()
                        .is_some_and(|ext| ext == "list" || ext == "sources")
                }),
        );
    }
    paths.sort();
    paths
}
