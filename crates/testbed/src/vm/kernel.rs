//! A kernel for guests: Debian's cloud kernel, unpacked from its package into a private directory.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::command::stdout_of;
use crate::packages;
use crate::scratch::lock::HostLock;
use crate::target_dir;

/// The metapackage of the newest kernel.
const LATEST: &str = "linux-image-cloud-amd64";

/// One unpacked kernel.
#[derive(Debug, Clone)]
pub(super) struct Kernel {
    /// The kernel image.
    pub(super) image: PathBuf,
    /// The directory that has its modules' directory `lib/modules/VERSION`, with `modules.dep`.
    pub(super) root: PathBuf,
    /// Its version, as `uname -r` prints it.
    pub(super) version: String,
}

/// The kernel to test with: one unpacked by an earlier run if there is one, else the newest of the
/// machine's own suite.
pub(super) fn ensure() -> Result<Kernel> {
    let _lock = HostLock::take()?;
    let cache = target_dir::cache()?;
    if let Some(found) = unpacked(&cache) {
        return Ok(found);
    }
    fetch(&cache).context("cannot get a kernel for the guest")
}

fn unpacked(cache: &Path) -> Option<Kernel> {
    let entries = std::fs::read_dir(cache).ok()?.filter_map(Result::ok);
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.starts_with("kernel-"))
        .collect();
    names.sort();
    let name = names.pop()?;
    let version = name.strip_prefix("kernel-")?.to_owned();
    let root = cache.join(&name);
    Some(Kernel {
        image: root.join(format!("boot/vmlinuz-{version}")),
        root,
        version,
    })
}

fn fetch(cache: &Path) -> Result<Kernel> {
    let work = tempfile::Builder::new()
        .prefix("fetch-")
        .tempdir_in(cache)?;
    let package = packages::dependency_of(LATEST)?;
    let deb = packages::download(&package, work.path())?;
    let root = work.path().join("unpacked");
    stdout_of(
        Command::new("dpkg-deb")
            .arg("--extract")
            .arg(deb)
            .arg(&root),
    )?;
    let version = package
        .strip_prefix("linux-image-")
        .with_context(|| format!("{package} is not a kernel package"))?
        .to_owned();
    // Normally done by the package's installation.
    let mut depmod = Command::new(packages::BUSYBOX);
    stdout_of(depmod.args(["depmod", "-b"]).arg(&root).arg(&version))?;
    // The rename comes last, so that a directory with this name is always complete.
    let dir = cache.join(format!("kernel-{version}"));
    std::fs::rename(&root, &dir)
        .with_context(|| format!("cannot rename {} to {}", root.display(), dir.display()))?;
    unpacked(cache).context("the package has no kernel")
}

impl Kernel {
    /// Files of modules and their dependencies, below [`Kernel::root`]. Names are those of
    /// `modprobe`; built-in ones have no files.
    pub(super) fn module_files(&self, names: &[&str]) -> Result<Vec<String>> {
        let dir = format!("lib/modules/{}", self.version);
        let path = self.root.join(&dir).join("modules.dep");
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let mut files = vec![format!("{dir}/modules.dep")];
        for name in names {
            let end = format!("/{}.ko", name.replace('_', "-"));
            let found = text.lines().find(|line| {
                let file = line.split(':').next().unwrap_or_default();
                format!("/{file}").replace('_', "-").ends_with(&end)
            });
            let words = found.unwrap_or_default().split([':', ' ']);
            files.extend(
                words
                    .filter(|word| !word.is_empty())
                    .map(|file| format!("{dir}/{file}")),
            );
        }
        files.sort();
        files.dedup();
        Ok(files)
    }
}
