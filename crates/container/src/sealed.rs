//! Protects the program file from containers.

use std::{io, os::fd::OwnedFd, path::Path};

use rustix::{
    fs::{CWD, MemfdFlags, Mode, OFlags, SealFlags, fcntl_add_seals, memfd_create, open, sendfile},
    mount::{OpenTreeFlags, open_tree},
};

use crate::{
    LaunchError,
    sys::mount_attr::{self, MountAttr},
};

/// Opens the running program such that its file can't be written through the result, nor through
/// `/proc/<pid>/exe` of a process that executes it. Shims are executed from this descriptor
/// (`/proc/self/fd/<n>`): a process that enters a container exposes its own program file there
/// until it executes another one (CVE-2019-5736).
///
/// The descriptor is on a detached read-only mount. It shares the page cache of the file, and can
/// be used for any number of processes. If the kernel does not support that, it is a sealed copy in
/// memory (memfd_create(2)).
///
/// # Errors
/// The kernel refuses both.
pub fn sealed_executable() -> Result<OwnedFd, LaunchError> {
    let own = Path::new("/proc/self/exe");
    read_only_mount(own)
        .or_else(|_| sealed_copy(own))
        .map_err(|error| LaunchError::step("cannot protect the program file", error))
}

fn read_only_mount(program: &Path) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let mount = open_tree(CWD, program, flags)?;
    let attr = MountAttr {
        propagation: libc::MS_PRIVATE,
        ..MountAttr::read_only()
    };
    mount_attr::change(&mount, &attr, false)?;
    Ok(mount)
}

fn sealed_copy(program: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let program = open(program, flags, Mode::empty())?;
    let copy = memfd_create("rubelet", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    while sendfile(&copy, &program, None, 1 << 30)? > 0 {}
    let seals = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
    fcntl_add_seals(&copy, seals)?;
    Ok(copy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    fn write_through(program: &OwnedFd) -> io::Result<std::fs::File> {
        let path = format!("/proc/self/fd/{}", program.as_raw_fd());
        std::fs::OpenOptions::new().write(true).open(path)
    }

    /// A program that nothing executes, which alone would keep it from being written.
    fn program() -> (tempfile::TempDir, std::path::PathBuf) {
        let dir = tempfile::Builder::new()
            .prefix("rbt-container-")
            .tempdir()
            .unwrap();
        let path = dir.path().join("true");
        std::fs::copy("/bin/true", &path).unwrap();
        (dir, path)
    }

    fn executes(program: &OwnedFd) -> bool {
        let path = format!("/proc/self/fd/{}", program.as_raw_fd());
        std::process::Command::new(path).status().unwrap().success()
    }

    #[test]
    fn the_mount_can_be_executed_and_not_written() {
        let (_dir, path) = program();
        let program = read_only_mount(&path).unwrap();
        let error = write_through(&program).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ReadOnlyFilesystem);
        assert!(executes(&program));
    }

    #[test]
    fn the_copy_can_be_executed_and_not_written() {
        let (_dir, path) = program();
        let program = sealed_copy(&path).unwrap();
        assert!(rustix::io::write(&program, b"x").is_err());
        assert!(executes(&program));
    }

    #[test]
    fn the_own_program_can_be_had() {
        sealed_executable().unwrap();
    }
}
