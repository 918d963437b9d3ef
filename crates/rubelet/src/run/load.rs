//! The configuration, from the files that the flags name.

use anyhow::anyhow;
use rubelet_cli::ConfigFiles;
use rubelet_config::{Flags, Resolved, Sources};

/// Reads the configuration file and the drop-ins, and resolves them.
pub(crate) fn resolve(flags: &Flags) -> anyhow::Result<Resolved> {
    let files = ConfigFiles::read(flags)?;
    let sources = Sources {
        file: files.file(),
        drop_ins: &files.drop_ins,
        flags,
    };
    rubelet_config::resolve(sources).map_err(|error| match &error.snippet {
        Some(snippet) => anyhow!("{error}\n{}", snippet.trim_end()),
        None => anyhow!("{error}"),
    })
}
