//! The root directory of a guest: busybox, the required modules, and the test's files.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::{cpio::Archive, host_root, kernel, kernel::Kernel, libraries, stripped};
use crate::packages;

const INIT: &str = include_str!("init.sh");
const LINE: &str = include_str!("line.sh");

/// The directory of what `init.sh` adds to the root directory of this machine.
const ADDED: &str = "/added";

/// The root directory of a guest, to be filled.
#[derive(Debug, Clone, Default)]
pub struct Image {
    programs: Vec<(String, PathBuf)>,
    files: Vec<(String, Vec<u8>)>,
    modules: Vec<&'static str>,
    host_root: bool,
}

impl Image {
    /// Adds a program of this machine, without its symbols but with its libraries.
    #[must_use]
    pub fn program(mut self, name: &str, source: impl Into<PathBuf>) -> Self {
        self.programs.push((name.to_owned(), source.into()));
        self
    }

    /// Adds programs at the same paths as on this machine.
    #[must_use]
    pub fn programs<'p>(self, paths: impl IntoIterator<Item = &'p str>) -> Self {
        let paths = paths.into_iter();
        paths.fold(self, |image, path| image.program(path, path))
    }

    /// Adds a file.
    #[must_use]
    pub fn file(mut self, name: &str, content: impl Into<Vec<u8>>) -> Self {
        self.files.push((name.to_owned(), content.into()));
        self
    }

    /// Adds kernel modules, which are loaded before anything else runs. With `loop` a guest without a
    /// disk has `/tmp`, `/var/lib` and `/var/log` on an ext4 in its memory. A disk needs
    /// [`Disk::MODULES`](super::Disk::MODULES).
    #[must_use]
    pub fn modules(mut self, names: &[&'static str]) -> Self {
        self.modules.extend(names);
        self
    }

    /// Has the root directory of this machine below what is added: programs and libraries of it need not be.
    #[must_use]
    pub fn on_host_root(mut self) -> Self {
        self.host_root = true;
        self.modules(&host_root::MODULES)
    }

    /// Whether it is [`Image::on_host_root`].
    #[must_use]
    pub fn is_on_host_root(&self) -> bool {
        self.host_root
    }

    /// Adds the program that makes XFS file systems, and the module that mounts them.
    ///
    /// # Errors
    /// Its package can't be installed.
    pub fn xfs(self) -> Result<Self> {
        packages::ensure_xfs()?;
        let program = "/sbin/mkfs.xfs";
        Ok(self.program(program, program).modules(&["xfs"]))
    }

    /// Adds the program that loads AppArmor's profiles. The kernel has AppArmor enabled.
    ///
    /// # Errors
    /// Its package can't be installed.
    pub fn apparmor(self) -> Result<Self> {
        packages::ensure_apparmor()?;
        let parser = "/sbin/apparmor_parser";
        // As configured by the package. Without the file, rules about address families are ignored.
        let features = "/usr/share/apparmor-features/features";
        let known =
            std::fs::read_to_string(features).with_context(|| format!("cannot read {features}"))?;
        let conf = format!("policy-features={features}\n");
        Ok(self
            .program(parser, parser)
            .file(features, known)
            .file("/etc/apparmor/parser.conf", conf))
    }

    /// Writes the archive; returns the kernel that it is for.
    pub(super) fn write(&self, archive: &Path) -> Result<Kernel> {
        let kernel = kernel::ensure()?;
        let mut archive = Archive::create(archive)?;
        for directory in ["/proc", "/sys", "/dev", "/tmp", "/root", "/run"] {
            archive.directory(directory)?;
        }
        archive.file("/init", INIT.as_bytes(), 0o755)?;
        archive.file("/line.sh", LINE.as_bytes(), 0o755)?;
        archive.copy("/bin/busybox", Path::new(packages::BUSYBOX))?;
        archive.file("/modules", self.modules.join("\n").as_bytes(), 0o644)?;
        for file in kernel.module_files(&self.modules)? {
            archive.copy(&format!("/{file}"), &kernel.root.join(&file))?;
        }
        if self.host_root {
            archive.directory(ADDED)?;
            self.write_files(&mut archive, ADDED)?;
        } else {
            archive.file("/etc/passwd", b"root:x:0:0:root:/root:/bin/sh\n", 0o644)?;
            archive.file("/etc/group", b"root:x:0:\n", 0o644)?;
            archive.file("/etc/hostname", b"guest\n", 0o644)?;
            archive.file("/etc/hosts", b"127.0.0.1 localhost guest\n", 0o644)?;
            archive.file("/etc/resolv.conf", b"", 0o644)?;
            self.write_programs(&mut archive)?;
            self.write_files(&mut archive, "")?;
        }
        archive.finish()?;
        Ok(kernel)
    }

    fn write_programs(&self, archive: &mut Archive) -> Result<()> {
        let mut all = Vec::new();
        for (name, source) in &self.programs {
            all.extend(libraries::of(source)?);
            archive
                .copy(name, &stripped::of(source)?)
                .with_context(|| format!("cannot copy {}", source.display()))?;
        }
        all.sort();
        all.dedup();
        for library in all {
            archive.copy(&library.to_string_lossy(), &library)?;
        }
        Ok(())
    }

    fn write_files(&self, archive: &mut Archive, dir: &str) -> Result<()> {
        for (name, content) in &self.files {
            archive.file(&format!("{dir}{name}"), content, 0o644)?;
        }
        Ok(())
    }
}
