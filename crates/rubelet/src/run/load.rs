//! The files of the configuration.

use std::{fs, path::Path};

use anyhow::{Context as _, anyhow};
use rubelet_config::{Flags, Resolved, Sources, drop_in_order, resolve as resolve_texts};

/// Reads the configuration file and the drop-ins that the flags name, and resolves them.
pub(crate) fn resolve(flags: &Flags) -> anyhow::Result<Resolved> {
    let file = match flags.config() {
        Some(path) => Some((path, read(Path::new(path))?)),
        None => None,
    };
    let mut drop_ins = Vec::new();
    if let Some(folder) = flags.config_dir() {
        let mut paths = Vec::new();
        collect(Path::new(folder), &mut paths)?;
        for path in drop_in_order(paths) {
            let text = read(Path::new(&path))?;
            drop_ins.push((path, text));
        }
    }
    resolve_texts(Sources {
        file: file.as_ref().map(|(path, text)| (*path, text.as_str())),
        drop_ins: &drop_ins,
        flags,
    })
    .map_err(|error| anyhow!("{error}"))
}

fn read(path: &Path) -> anyhow::Result<String> {
    let bytes = fs::read(path)
        .with_context(|| format!("cannot read the configuration {}", path.display()))?;
    String::from_utf8(bytes)
        .map_err(|_| anyhow!("the configuration {} is not UTF-8 text", path.display()))
}

/// All files below a folder, as the kubelet walks `--config-dir`.
fn collect(folder: &Path, paths: &mut Vec<String>) -> anyhow::Result<()> {
    let failed = || format!("cannot read the drop-in folder {}", folder.display());
    for entry in fs::read_dir(folder).with_context(failed)? {
        let path = entry.with_context(failed)?.path();
        if path.is_dir() {
            collect(&path, paths)?;
        } else {
            let text = path.to_str().ok_or_else(|| {
                anyhow!(
                    "the drop-in {} has a name that is not UTF-8",
                    path.display()
                )
            })?;
            paths.push(text.to_owned());
        }
    }
    Ok(())
}
