//! A compressed tar archive whose bytes depend only on its files.

use std::collections::BTreeMap;
use std::io::Write as _;

use anyhow::{Context, Result, bail};

/// A file of the archive.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// Its path.
    pub(super) path: String,
    /// Its mode.
    pub(super) mode: u32,
    /// Its content.
    pub(super) bytes: Vec<u8>,
}

/// Packs the files in the order of their paths, owned by root, all with the same time.
///
/// # Errors
///
/// A path is repeated or invalid.
pub(super) fn tar_gz(entries: &[Entry], seconds: u64) -> Result<Vec<u8>> {
    let mut sorted = BTreeMap::new();
    for entry in entries {
        if sorted.insert(entry.path.as_str(), entry).is_some() {
            bail!("{} is in the archive twice", entry.path);
        }
    }
    let mut tar = tar::Builder::new(Vec::new());
    for (path, entry) in sorted {
        let mut header = tar::Header::new_ustar();
        header.set_size(u64::try_from(entry.bytes.len())?);
        header.set_mode(entry.mode);
        header.set_mtime(seconds);
        header.set_uid(0);
        header.set_gid(0);
        header.set_username("root")?;
        header.set_groupname("root")?;
        tar.append_data(&mut header, path, entry.bytes.as_slice())
            .with_context(|| format!("cannot pack {path}"))?;
    }
    // Neither a file name nor a time in the header.
    let mut gzip = flate2::GzBuilder::new().write(Vec::new(), flate2::Compression::best());
    gzip.write_all(&tar.into_inner()?)?;
    Ok(gzip.finish()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn entry(path: &str, mode: u32) -> Entry {
        Entry {
            path: path.to_owned(),
            mode,
            bytes: path.repeat(100).into_bytes(),
        }
    }

    #[test]
    fn the_order_of_the_files_changes_nothing() {
        let entries = [
            entry("r/b", 0o644),
            entry("r/a", 0o755),
            entry("r/c/d", 0o644),
        ];
        let packed = tar_gz(&entries, 1_767_225_600).unwrap();
        let mut reversed = entries.clone();
        reversed.reverse();
        assert_eq!(tar_gz(&reversed, 1_767_225_600).unwrap(), packed);
        assert_ne!(tar_gz(&entries, 1_767_225_601).unwrap(), packed);
        assert_eq!(packed[4..8], [0; 4], "a time in gzip's header");
    }

    #[test]
    fn tar_lists_paths_modes_owners_and_times() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("r.tar.gz");
        let entries = [entry("r/b", 0o644), entry("r/a", 0o755)];
        std::fs::write(&file, tar_gz(&entries, 1_767_225_600).unwrap()).unwrap();
        let output = Command::new("tar")
            .arg("-tvzf")
            .arg(&file)
            .envs([("TZ", "UTC"), ("LC_ALL", "C")])
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<_> = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(
            lines,
            [
                "-rwxr-xr-x root/root 300 2026-01-01 00:00 r/a",
                "-rw-r--r-- root/root 300 2026-01-01 00:00 r/b"
            ]
        );
    }

    #[test]
    fn a_path_that_is_given_twice_is_refused() {
        let error = tar_gz(&[entry("a", 0), entry("a", 0)], 0).unwrap_err();
        assert_eq!(error.to_string(), "a is in the archive twice");
    }
}
