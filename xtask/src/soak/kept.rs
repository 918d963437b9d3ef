//! What is kept of a seed that failed.

use std::path::PathBuf;

use anyhow::Result;
use rubelet_testbed::target_dir;

/// Copies files to a persistent directory by these names, with a report beside them; returns a line that names it.
pub(super) fn keep_logs(seed: u64, files: &[(&str, PathBuf)], report: &str) -> String {
    let kept = || -> Result<PathBuf> {
        let directory = target_dir::target()?.join("soak").join(seed.to_string());
        std::fs::create_dir_all(&directory)?;
        for (name, file) in files {
            std::fs::copy(file, directory.join(name))?;
        }
        std::fs::write(directory.join("report"), report)?;
        Ok(directory)
    };
    match kept() {
        Ok(directory) => format!("report and logs: {}", directory.display()),
        Err(error) => format!("the logs could not be kept: {error:#}"),
    }
}
