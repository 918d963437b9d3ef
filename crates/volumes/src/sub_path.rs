//! `subPath`: mounts a part of a volume. The user provides the path, and it leads through files
//! that containers may replace at any moment, so it is opened once, confined to the volume, and
//! from then on only the descriptor is used.

use std::{
    ffi::OsStr,
    fs::{self, OpenOptions},
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::{MetadataExt, OpenOptionsExt},
    },
    path::{Component, Path, PathBuf},
};

use rubelet_host::mount::{self, MountError, UnmountOutcome};
use rustix::{
    fs::{FileType, Mode, OFlags, ResolveFlags},
    io::Errno,
};

use crate::{
    directory,
    dirs::{PodDirs, UnsafeName},
};

/// The part of a volume, and the container that mounts it.
#[derive(Debug, Clone, Copy)]
pub struct SubPathRequest<'a> {
    /// Name of the volume.
    pub volume: &'a str,
    /// Path of the volume on the host.
    pub volume_path: &'a Path,
    /// Name of the container.
    pub container: &'a str,
    /// Position in the container's `volumeMounts`.
    pub index: usize,
    /// The path within the volume, with variables expanded.
    pub sub_path: &'a str,
}

/// A part of a volume can't be mounted.
#[derive(Debug, thiserror::Error)]
pub enum SubPathError {
    /// A name can't be used.
    #[error(transparent)]
    Name(#[from] UnsafeName),
    /// The path is absolute or contains `..`.
    #[error("unable to provision SubPath `{0}`: it must be relative and must not contain `..`")]
    Path(String),
    /// The volume can't be opened.
    #[error("cannot open the volume at {}", path.display())]
    Volume {
        /// Its path.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The path leads out of the volume or does not exist, or can't be created.
    #[error("failed to prepare subPath `{sub_path}` of volume {volume}")]
    Resolve {
        /// The path.
        sub_path: String,
        /// Name of the volume.
        volume: String,
        /// The error.
        source: io::Error,
    },
    /// The mount point can't be created.
    #[error("cannot prepare {}", path.display())]
    Target {
        /// The mount point.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// It can't be mounted.
    #[error(transparent)]
    Mount(#[from] MountError),
}

/// Mounts the part of the volume in the pod's directory and returns the mount point. Missing
/// directories of the path are created with the volume's own mode. An existing mount is kept if it
/// is the same file, else replaced.
///
/// # Errors
/// See [`SubPathError`].
pub fn prepare(dirs: &PodDirs, request: &SubPathRequest<'_>) -> Result<PathBuf, SubPathError> {
    let target = dirs.sub_path(request.volume, request.container, request.index)?;
    let names = components(request.sub_path)?;
    let source = resolve(request, &names)?;
    let at = |path: &Path| {
        let path = path.to_owned();
        move |source| SubPathError::Target { path, source }
    };
    let stat = rustix::fs::fstat(&source).map_err(|error| at(&target)(error.into()))?;
    while let Ok(there) = fs::symlink_metadata(&target) {
        if !mount::is_mount_point(&target)? {
            break;
        }
        if (there.dev(), there.ino()) == (stat.st_dev, stat.st_ino) {
            return Ok(target);
        }
        match mount::unmount(&target, false).map_err(at(&target))? {
            UnmountOutcome::Gone | UnmountOutcome::WasNot => {}
            UnmountOutcome::StillBusy => {
                return Err(at(&target)(io::ErrorKind::ResourceBusy.into()));
            }
        }
    }
    let is_dir = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    make_target(&target, is_dir).map_err(at(&target))?;
    mount::bind_fd(&source, request.sub_path, &target)?;
    Ok(target)
}

fn components(sub_path: &str) -> Result<Vec<&str>, SubPathError> {
    let refused = || SubPathError::Path(sub_path.to_owned());
    let names = Path::new(sub_path)
        .components()
        .map(|component| match component {
            Component::Normal(name) => name.to_str().ok_or_else(refused),
            Component::CurDir => Ok("."),
            _ => Err(refused()),
        });
    let names: Vec<&str> = names.collect::<Result<_, _>>()?;
    if names.is_empty() {
        Err(refused())
    } else {
        Ok(names)
    }
}

/// Opens the path component by component. Symbolic links are resolved as if the volume were the
/// root directory.
fn resolve(request: &SubPathRequest<'_>, names: &[&str]) -> Result<OwnedFd, SubPathError> {
    let open = || {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let volume = rustix::fs::open(request.volume_path, flags, Mode::empty())?;
        let mode = rustix::fs::fstat(&volume)?.st_mode & 0o7777;
        Ok((mode, volume))
    };
    let (mode, volume) = open().map_err(|source| SubPathError::Volume {
        path: request.volume_path.to_owned(),
        source,
    })?;
    let failed = |error: Errno| SubPathError::Resolve {
        sub_path: request.sub_path.to_owned(),
        volume: request.volume.to_owned(),
        source: error.into(),
    };
    let mut above = None;
    for end in 1..=names.len() {
        let path = names[..end].join("/");
        let parent = above.as_ref().unwrap_or(&volume).as_fd();
        let opened = match confined(&volume, &path) {
            Err(Errno::NOENT) => {
                make_dir(parent, names[end - 1], mode).map_err(failed)?;
                confined(&volume, &path)
            }
            opened => opened,
        };
        above = Some(opened.map_err(failed)?);
    }
    above.ok_or_else(|| failed(Errno::NOENT))
}

fn confined(volume: &OwnedFd, path: &str) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let within = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    // The kernel returns EAGAIN if a file is renamed meanwhile.
    let mut tries = 0;
    loop {
        match rustix::fs::openat2(volume, path, flags, Mode::empty(), within) {
            Err(Errno::AGAIN) if tries < 128 => tries += 1,
            answer => return answer,
        }
    }
}

fn make_dir(parent: impl AsFd, name: &str, mode: u32) -> rustix::io::Result<()> {
    match rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(mode)) {
        // Created by another container meanwhile, or a broken link: opening it shows which.
        Err(Errno::EXIST) => return Ok(()),
        made => made?,
    }
    // The umask removed bits that the volume's group needs.
    directory::finish(parent, OsStr::new(name), mode).map(drop)
}

/// A file can be mounted only on a file, a directory only on a directory.
fn make_target(target: &Path, is_dir: bool) -> io::Result<()> {
    if let Some(parent) = target.parent() {
        directory::ensure(parent, 0o750)?;
    }
    if fs::symlink_metadata(target).is_ok_and(|there| there.is_dir() != is_dir) {
        // Left over from a mount of the other type; never with contents.
        if is_dir {
            fs::remove_file(target)?;
        } else {
            fs::remove_dir(target)?;
        }
    }
    if is_dir {
        return directory::ensure(target, 0o750);
    }
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o640)
        .open(target)
        .map(drop)
}

#[cfg(test)]
mod tests;
