//! The files of a configuration.

use std::{fs, path::Path};

use anyhow::{Context as _, anyhow};
use rubelet_config::{Flags, drop_in_order};

/// Texts of the configuration file and the drop-ins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigFiles {
    /// Path and text of `--config`.
    pub file: Option<(String, String)>,
    /// Path and text of each drop-in of `--config-dir`, in the order in which they take effect.
    pub drop_ins: Vec<(String, String)>,
}

impl ConfigFiles {
    /// Reads the files that the flags name. Subdirectories of the drop-in directory are included.
    ///
    /// # Errors
    /// A file or directory can't be read.
    pub fn read(flags: &Flags) -> anyhow::Result<Self> {
        let file = flags.config().map(read).transpose()?;
        let mut paths = Vec::new();
        if let Some(directory) = flags.config_dir() {
            collect(Path::new(directory), &mut paths)?;
        }
        let drop_ins = drop_in_order(paths).into_iter().map(|path| read(&path));
        Ok(Self {
            file,
            drop_ins: drop_ins.collect::<Result<_, _>>()?,
        })
    }

    /// Path and text of `--config`, as [`rubelet_config::Sources`] expects them.
    #[must_use]
    pub fn file(&self) -> Option<(&str, &str)> {
        self.file
            .as_ref()
            .map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// The files that were read, for messages.
    pub(super) fn names(&self) -> Vec<&str> {
        let files = self
            .file
            .iter()
            .chain(&self.drop_ins)
            .map(|(path, _)| path.as_str());
        let names: Vec<&str> = files.collect();
        if names.is_empty() {
            vec!["defaults and flags"]
        } else {
            names
        }
    }
}

fn read(path: &str) -> anyhow::Result<(String, String)> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
    Ok((path.to_owned(), text))
}

fn collect(directory: &Path, paths: &mut Vec<String>) -> anyhow::Result<()> {
    let unreadable = || {
        format!(
            "cannot read the directory of drop-ins {}",
            directory.display()
        )
    };
    for entry in fs::read_dir(directory).with_context(unreadable)? {
        let path = entry.with_context(unreadable)?.path();
        // Follows links, so that a mounted ConfigMap works.
        if fs::metadata(&path)
            .with_context(|| format!("cannot read {}", path.display()))?
            .is_dir()
        {
            collect(&path, paths)?;
        } else {
            let text = path.to_str().ok_or_else(|| {
                anyhow!("the name of the drop-in {} is not UTF-8", path.display())
            })?;
            paths.push(text.to_owned());
        }
    }
    Ok(())
}
