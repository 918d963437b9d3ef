//! Applies entries one after the other.

use std::{
    ffi::CString,
    io::Read,
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
};

use rustix::{
    fs::{self, AtFlags, FileType, Mode, OFlags},
    io::Errno,
};

use super::{
    AppliedLayer, DirectoryAttributes, UnpackError, UnpackLimits, attributes,
    layer_root::{LayerRoot, StepError},
    name::{Name, shown},
    whiteout::{Whiteout, parse_whiteout},
};
use crate::{
    DiskUsage,
    archive::{Archive, Entry, Kind},
    tree,
};

const BUFFER: usize = 128 * 1024;
/// Free space is checked each time this much was written.
const CHECK_BYTES: u64 = 16 << 20;
const CHECK_ENTRIES: u64 = 1024;
/// Further skipped devices are not listed.
const MAX_LEFT_OUT: usize = 100;
/// Granularity of file sizes on disk.
const DISK_BLOCK: u64 = 4096;

/// Character devices that every container has: major, minor.
const HARMLESS: [(u32, u32); 8] = [
    (1, 3), // null
    (1, 5), // zero
    (1, 7), // full
    (1, 8), // random
    (1, 9), // urandom
    (5, 0), // tty
    (5, 1), // console
    (5, 2), // ptmx
];

pub(super) struct Applier<'a> {
    layer_root: LayerRoot,
    limits: &'a UnpackLimits,
    usage: DiskUsage,
    root: Option<DirectoryAttributes>,
    left_out: Vec<String>,
    entries: u64,
    unchecked: u64,
    buffer: Vec<u8>,
}

type Result<T> = std::result::Result<T, UnpackError>;

impl<'a> Applier<'a> {
    pub(super) fn new(root: OwnedFd, limits: &'a UnpackLimits) -> Self {
        Self {
            layer_root: LayerRoot::new(root, limits.depth),
            limits,
            usage: DiskUsage::default(),
            root: None,
            left_out: Vec::new(),
            entries: 0,
            unchecked: CHECK_BYTES,
            buffer: vec![0; BUFFER],
        }
    }

    pub(super) fn apply<R: Read>(&mut self, entry: &Entry, content: &mut Archive<R>) -> Result<()> {
        self.entries += 1;
        if self.entries > self.limits.entries {
            return Err(UnpackError::LimitExceeded(
                "it has more entries than allowed",
            ));
        }
        if self.entries.is_multiple_of(CHECK_ENTRIES) {
            self.check_space()?;
        }
        let hostile = |why| UnpackError::Hostile {
            path: shown(&entry.path),
            why,
        };
        let name = Name::parse(&entry.path, self.limits.depth).map_err(hostile)?;
        if name.is_root() {
            return match entry.kind {
                Kind::Directory => self.root_directory(entry),
                _ => Err(hostile(
                    "entry would replace the root directory of the layer",
                )),
            };
        }
        let (parent, last) = name.split();
        match parse_whiteout(last) {
            Whiteout::None => {}
            Whiteout::Invalid => return Err(hostile("invalid whiteout name")),
            Whiteout::AufsMetadata => return Ok(()),
            Whiteout::Removed(gone) => return self.hide(&name, parent, gone),
            Whiteout::Opaque => {
                let directory = failing(&name, self.layer_root.directory(parent))?;
                return disk(&name, "mark as opaque", attributes::make_opaque(directory));
            }
        }
        if attributes::owner(entry).is_none() {
            return Err(hostile("uid or gid is out of range"));
        }
        if matches!(entry.kind, Kind::CharDevice | Kind::BlockDevice) && !is_harmless(entry) {
            if name.as_bytes().starts_with(b"dev/") {
                if self.left_out.len() < MAX_LEFT_OUT {
                    self.left_out.push(name.shown());
                }
                return Ok(());
            }
            return Err(hostile("device node would reach beyond the container"));
        }
        match entry.kind {
            Kind::Directory => self.directory(&name, entry),
            Kind::File => self.file(&name, entry, content),
            Kind::HardLink => self.hard_link(&name, entry),
            Kind::Symlink => {
                if entry.link.is_empty() || entry.link.contains(&0) {
                    return Err(hostile("invalid symlink target"));
                }
                self.make(&name, entry, "create the link", |directory, last| {
                    fs::symlinkat(entry.link.as_slice(), directory, last)
                })?;
                // Paths through it now lead elsewhere.
                self.layer_root.forget();
                Ok(())
            }
            Kind::Fifo => self.node(&name, entry, FileType::Fifo),
            Kind::CharDevice => self.node(&name, entry, FileType::CharacterDevice),
            Kind::BlockDevice => Err(hostile("device node would reach beyond the container")),
        }
    }

    /// The result of the whole layer.
    pub(super) fn finish(mut self) -> Result<AppliedLayer> {
        failing(&Name::default(), self.layer_root.finish())?;
        self.usage.inodes += self.layer_root.made;
        self.usage.bytes += self.layer_root.made * DISK_BLOCK;
        Ok(AppliedLayer {
            usage: self.usage,
            root: self.root,
            implicit: self.layer_root.implicit.into_iter().collect(),
            left_out: self.left_out,
        })
    }

    fn root_directory(&mut self, entry: &Entry) -> Result<()> {
        let name = Name::default();
        let Some(owner) = attributes::owner(entry) else {
            return Err(UnpackError::Hostile {
                path: shown(&entry.path),
                why: "uid or gid is out of range",
            });
        };
        let set = attributes::set_open(self.layer_root.root().as_fd(), entry, owner);
        set.map_err(|(step, error)| error_of(&name, step, error))?;
        self.root = Some(DirectoryAttributes {
            mode: entry.mode,
            uid: owner.0.as_raw(),
            gid: owner.1.as_raw(),
        });
        let layer_root = failing(&name, self.layer_root.directory(b"")).map(drop);
        layer_root?;
        self.layer_root.set_times(b"", attributes::times(entry));
        Ok(())
    }

    /// Creates a whiteout, unless the layer itself contains the name: its entry already hides the
    /// lower one, and an opaque directory hides everything in it.
    fn hide(&mut self, entry: &Name, parent: &[u8], gone: &[u8]) -> Result<()> {
        let directory = failing(entry, self.layer_root.directory(parent))?;
        let none = Mode::empty();
        match fs::mknodat(directory, gone, FileType::CharacterDevice, none, 0) {
            Err(Errno::EXIST) => {}
            made => {
                disk(entry, "create the whiteout", made)?;
                self.usage.inodes += 1;
                return Ok(());
            }
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match fs::openat(directory, gone, flags, none) {
            Ok(own) => disk(entry, "mark as opaque", attributes::make_opaque(own)),
            Err(Errno::NOTDIR | Errno::LOOP) => Ok(()),
            Err(error) => Err(error_of(entry, "mark as opaque", error)),
        }
    }

    fn directory(&mut self, name: &Name, entry: &Entry) -> Result<()> {
        let (parent, last) = name.split();
        let (mut was_gone, mut replaced) = (false, false);
        let directory = failing(name, self.layer_root.directory(parent))?;
        let mode = Mode::from_raw_mode(0o700);
        if let Err(error) = fs::mkdirat(directory, last, mode) {
            if error != Errno::EXIST {
                return Err(error_of(name, "create the directory", error));
            }
            let stat = fs::statat(directory, last, AtFlags::SYMLINK_NOFOLLOW);
            let stat = disk(name, "stat", stat)?;
            if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
                was_gone = attributes::is_whiteout(&stat);
                replaced = true;
                disk(
                    name,
                    "replace",
                    fs::unlinkat(directory, last, AtFlags::empty()),
                )?;
                disk(
                    name,
                    "create the directory",
                    fs::mkdirat(directory, last, mode),
                )?;
            }
        } else {
            self.usage.inodes += 1;
            self.usage.bytes += DISK_BLOCK;
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = disk(
            name,
            "open",
            fs::openat(directory, last, flags, Mode::empty()),
        )?;
        if was_gone {
            disk(name, "mark as opaque", attributes::make_opaque(&made))?;
        }
        if let Some(owner) = attributes::owner(entry) {
            let set = attributes::set_open(made.as_fd(), entry, owner);
            set.map_err(|(step, error)| error_of(name, step, error))?;
        }
        if replaced {
            self.layer_root.forget();
        }
        self.layer_root
            .set_times(name.as_bytes(), attributes::times(entry));
        let path = std::path::Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()));
        self.layer_root.implicit.remove(path);
        Ok(())
    }

    fn file<R: Read>(
        &mut self,
        name: &Name,
        entry: &Entry,
        content: &mut Archive<R>,
    ) -> Result<()> {
        if entry.size > self.limits.bytes {
            return Err(UnpackError::LimitExceeded(
                "one of its files is larger than allowed",
            ));
        }
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o600);
        let file = self.replace_with(name, "create the file", |directory, last| {
            fs::openat(directory, last, flags, mode)
        })?;
        self.usage.inodes += 1;
        match &entry.segments {
            None => self.copy(name, &file, 0, entry.size, content)?,
            Some(segments) => {
                for segment in segments {
                    self.copy(name, &file, segment.offset, segment.length, content)?;
                }
                disk(name, "set the size of", fs::ftruncate(&file, entry.size))?;
            }
        }
        if let Some(owner) = attributes::owner(entry) {
            let set = attributes::set_open(file.as_fd(), entry, owner);
            set.map_err(|(step, error)| error_of(name, step, error))?;
        }
        let set = fs::futimens(&file, &attributes::times(entry));
        disk(name, "set the times of", set)
    }

    fn copy<R: Read>(
        &mut self,
        name: &Name,
        file: &OwnedFd,
        mut offset: u64,
        length: u64,
        content: &mut Archive<R>,
    ) -> Result<()> {
        let end = offset + length;
        while offset < end {
            let most = usize::try_from(end - offset).map_or(BUFFER, |left| left.min(BUFFER));
            let read = content.read(&mut self.buffer[..most])?;
            let mut at = 0;
            while at < read {
                let written = rustix::io::pwrite(file, &self.buffer[at..read], offset + at as u64);
                match written {
                    Err(Errno::INTR) => {}
                    written => at += disk(name, "write", written)?,
                }
            }
            offset += read as u64;
            self.unchecked += read as u64;
            if read == 0 {
                // The archive reader reports its own end; this is a sparse map that exceeds the
                // content.
                return Err(crate::archive::ArchiveError::Truncated.into());
            }
            if self.unchecked >= CHECK_BYTES {
                self.check_space()?;
            }
        }
        self.usage.bytes += length.next_multiple_of(DISK_BLOCK);
        Ok(())
    }

    fn hard_link(&mut self, name: &Name, entry: &Entry) -> Result<()> {
        let hostile = |why| UnpackError::Hostile {
            path: name.shown(),
            why,
        };
        let target = Name::parse(&entry.link, self.limits.depth).map_err(hostile)?;
        if target.is_root() {
            return Err(hostile("hard link to the root directory of the layer"));
        }
        if target == *name {
            return Ok(());
        }
        let (parent, last) = target.split();
        let missing = |error| match error {
            Errno::NOENT | Errno::NOTDIR => hostile("hard link to a file that is not in the layer"),
            error => error_of(name, "find the target of the hard link", error),
        };
        let from = self.layer_root.open(parent).map_err(missing)?;
        let stat = fs::statat(&from, last, AtFlags::SYMLINK_NOFOLLOW).map_err(missing)?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            return Err(hostile("hard link to a directory"));
        }
        self.replace_with(name, "create the link", |directory, to| {
            fs::linkat(&from, last, directory, to, AtFlags::empty())
        })
    }

    fn node(&mut self, name: &Name, entry: &Entry, kind: FileType) -> Result<()> {
        let (major, minor) = entry.device;
        let device = fs::makedev(major, minor);
        self.make(name, entry, "create the node", |directory, last| {
            fs::mknodat(directory, last, kind, Mode::from_raw_mode(0o600), device)
        })
    }

    /// Creates a file without content.
    fn make(
        &mut self,
        name: &Name,
        entry: &Entry,
        step: &'static str,
        make: impl Fn(&OwnedFd, &[u8]) -> std::result::Result<(), Errno>,
    ) -> Result<()> {
        self.replace_with(name, step, make)?;
        self.usage.inodes += 1;
        let (parent, last) = name.split();
        let directory = failing(name, self.layer_root.directory(parent))?;
        if let Some(owner) = attributes::owner(entry) {
            let set = attributes::set_at(directory, last, entry, owner);
            set.map_err(|(step, error)| error_of(name, step, error))?;
        }
        Ok(())
    }

    /// Creates a file, and replaces an existing one.
    fn replace_with<T>(
        &mut self,
        name: &Name,
        step: &'static str,
        make: impl Fn(&OwnedFd, &[u8]) -> std::result::Result<T, Errno>,
    ) -> Result<T> {
        let (parent, last) = name.split();
        let directory = failing(name, self.layer_root.directory(parent))?;
        match make(directory, last) {
            Err(Errno::EXIST) => {}
            made => return disk(name, step, made),
        }
        let last_name = CString::new(last).map_err(|_| error_of(name, step, Errno::INVAL))?;
        tree::remove_at(directory, &last_name).map_err(|source| UnpackError::Disk {
            step: "replace",
            path: name.shown(),
            source,
        })?;
        // It may have been a parent directory of other entries, or a link to one.
        self.layer_root.forget();
        let directory = failing(name, self.layer_root.directory(parent))?;
        disk(name, step, make(directory, last))
    }

    fn check_space(&mut self) -> Result<()> {
        self.unchecked = 0;
        let stat = fs::fstatvfs(self.layer_root.root());
        let stat = disk(&Name::default(), "query the free space of", stat)?;
        if stat.f_bavail.saturating_mul(stat.f_frsize) < self.limits.spare_bytes {
            return Err(UnpackError::NoSpace("the disk is nearly full"));
        }
        if stat.f_files > 0 && stat.f_ffree < self.limits.spare_inodes {
            return Err(UnpackError::NoSpace("the disk has nearly no free inodes"));
        }
        Ok(())
    }
}

fn is_harmless(entry: &Entry) -> bool {
    // Overlayfs interprets 0:0 as a whiteout.
    let is_whiteout = entry.device == (0, 0);
    entry.kind == Kind::CharDevice && (is_whiteout || HARMLESS.contains(&entry.device))
}

fn failing<T>(name: &Name, found: std::result::Result<T, StepError>) -> Result<T> {
    found.map_err(|StepError(step, error)| match error {
        Errno::NOTDIR => UnpackError::Hostile {
            path: name.shown(),
            why: "a component of its path is not a directory",
        },
        Errno::TOOBIG => {
            UnpackError::LimitExceeded("it has too many directories without their own entries")
        }
        Errno::LOOP => UnpackError::Hostile {
            path: name.shown(),
            why: "too many levels of symbolic links in its path",
        },
        error => error_of(name, step, error),
    })
}

fn disk<T>(name: &Name, step: &'static str, done: std::result::Result<T, Errno>) -> Result<T> {
    done.map_err(|error| error_of(name, step, error))
}

fn error_of(name: &Name, step: &'static str, error: Errno) -> UnpackError {
    match error {
        Errno::NOSPC | Errno::DQUOT => UnpackError::NoSpace("the disk is full"),
        error => UnpackError::Disk {
            step,
            path: name.shown(),
            source: error.into(),
        },
    }
}
