//! The layers of an image as one tree, as overlayfs shows it.

use std::{
    collections::{BTreeMap, VecDeque},
    ffi::{CStr, CString, OsStr, OsString},
    fs::File,
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{self, AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, Stat},
    io::Errno,
};

use crate::{
    StoreError,
    store::disk_error,
    unpack::{is_opaque, is_whiteout},
};

const DIR: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// No path escapes a layer, not even into a mount below.
const RESOLVE: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_XDEV);

/// Symbolic links that are resolved on one path, as in the kernel.
const MOST_LINKS: usize = 40;

/// A rename anywhere on the machine can make openat2(2) fail with EAGAIN.
const TRIES: usize = 100;

/// The layers, the topmost first.
#[derive(Debug)]
pub(crate) struct MergedTree(Vec<OwnedFd>);

/// A directory of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MergedDir {
    /// Its path, relative, without links.
    pub(super) path: PathBuf,
    /// The indices of the layers that have it, the topmost first.
    layers: Vec<usize>,
}

/// The entry at a path.
#[derive(Debug)]
pub(super) enum MergedEntry {
    /// Nothing.
    Nothing,
    /// A directory.
    Dir(MergedDir),
    /// Anything else, in that layer.
    Other(usize, Box<Stat>),
}

/// The target of a path, with symbolic links resolved inside of the tree.
#[derive(Debug)]
pub(super) enum ResolvedPath {
    /// To a directory: its path, relative, without links.
    Dir(PathBuf),
    /// It does not exist: the path, as far as it was resolved.
    Missing(PathBuf),
    /// To a file other than a symbolic link.
    Other(OtherFile),
}

/// A file that is neither a directory nor a symbolic link.
#[derive(Debug)]
pub(super) struct OtherFile {
    dir: MergedDir,
    name: CString,
    layer: usize,
    stat: Box<Stat>,
}

impl MergedTree {
    /// Opens the directories of the layers, the topmost first.
    pub(crate) fn open<P: AsRef<Path>>(layers: &[P]) -> Result<Self, StoreError> {
        let open = |layer: &P| {
            let layer = layer.as_ref();
            fs::openat(CWD, layer, DIR, Mode::empty())
                .map_err(|error| disk_error("open", layer)(error.into()))
        };
        Ok(Self(layers.iter().map(open).collect::<Result<_, _>>()?))
    }

    /// Resolves the symbolic links of an absolute path to a directory. Missing components at its end
    /// are kept.
    pub(super) fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        match self.walk(path)? {
            ResolvedPath::Dir(path) | ResolvedPath::Missing(path) => Ok(Path::new("/").join(path)),
            ResolvedPath::Other(_) => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    /// Resolves a path. One that leads through a file or through too many links is missing.
    pub(super) fn reach(&self, path: &Path) -> io::Result<ResolvedPath> {
        match self.walk(path) {
            Err(error) if is_absent(&error) => Ok(ResolvedPath::Missing(path.to_owned())),
            reached => reached,
        }
    }

    /// Opens a file for reading; `None` if it is not a regular file.
    pub(super) fn regular_file(&self, file: &OtherFile) -> io::Result<Option<File>> {
        if !is(&file.stat, FileType::RegularFile) {
            return Ok(None);
        }
        let parent = self.parent(file.layer, &file.dir)?;
        // Opening a FIFO would block.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = File::from(fs::openat(parent, &file.name, flags, Mode::empty())?);
        Ok(opened.metadata()?.is_file().then_some(opened))
    }

    fn walk(&self, path: &Path) -> io::Result<ResolvedPath> {
        let mut links = 0;
        let mut done = vec![self.root()];
        let mut left: VecDeque<OsString> = names(path).collect();
        while let Some(name) = left.pop_front() {
            if name == ".." {
                if done.len() > 1 {
                    done.pop();
                }
                continue;
            }
            let here = &done[done.len() - 1];
            let c_name = CString::new(name.as_bytes())?;
            match self.look(here, &c_name)? {
                MergedEntry::Dir(dir) => done.push(dir),
                MergedEntry::Nothing => {
                    // Nothing exists below, either: the rest is only a name.
                    let mut missing = here.path.join(name);
                    for name in left {
                        match name == ".." {
                            true => drop(missing.pop()),
                            false => missing.push(name),
                        }
                    }
                    return Ok(ResolvedPath::Missing(missing));
                }
                MergedEntry::Other(layer, stat) if is(&stat, FileType::Symlink) => {
                    links += 1;
                    if links > MOST_LINKS {
                        return Err(Errno::LOOP.into());
                    }
                    let parent = self.parent(layer, here)?;
                    let target = fs::readlinkat(parent, &c_name, Vec::new())?;
                    let target = Path::new(OsStr::from_bytes(target.as_bytes()));
                    if target.is_absolute() {
                        done.truncate(1);
                    }
                    for name in names(target).collect::<Vec<_>>().into_iter().rev() {
                        left.push_front(name);
                    }
                }
                MergedEntry::Other(layer, stat) if left.is_empty() => {
                    return Ok(ResolvedPath::Other(OtherFile {
                        dir: here.clone(),
                        name: c_name,
                        layer,
                        stat,
                    }));
                }
                MergedEntry::Other(..) => return Err(io::ErrorKind::NotADirectory.into()),
            }
        }
        Ok(ResolvedPath::Dir(done.swap_remove(done.len() - 1).path))
    }

    /// The entry at an absolute path without links.
    pub(super) fn find(&self, path: &Path) -> io::Result<MergedEntry> {
        let mut here = self.root();
        for name in names(path) {
            let name = CString::new(name.as_bytes())?;
            match self.look(&here, &name)? {
                MergedEntry::Dir(dir) => here = dir,
                MergedEntry::Nothing => return Ok(MergedEntry::Nothing),
                MergedEntry::Other(..) => return Err(io::ErrorKind::NotADirectory.into()),
            }
        }
        Ok(MergedEntry::Dir(here))
    }

    /// The entries of a directory, by name.
    pub(super) fn entries(&self, dir: &MergedDir) -> io::Result<BTreeMap<CString, MergedEntry>> {
        let mut entries: BTreeMap<CString, EntryBuilder> = BTreeMap::new();
        for &layer in &dir.layers {
            let parent = self.parent(layer, dir)?;
            for entry in Dir::read_from(&parent)? {
                let name = entry?.file_name().to_owned();
                if matches!(name.to_bytes(), b"." | b"..") {
                    continue;
                }
                let builder = entries.entry(name.clone()).or_default();
                builder.add(&parent, &name, layer)?;
            }
        }
        let found = entries.into_iter().map(|(name, builder)| {
            let path = dir.path.join(OsStr::from_bytes(name.to_bytes()));
            (name, builder.done(path))
        });
        Ok(found.collect())
    }

    /// The directory in one layer.
    pub(super) fn parent(&self, layer: usize, dir: &MergedDir) -> io::Result<OwnedFd> {
        let path = match dir.path.as_os_str().is_empty() {
            // openat2(2) rejects an empty path.
            true => Path::new("."),
            false => &dir.path,
        };
        for _ in 0..TRIES {
            match fs::openat2(&self.0[layer], path, DIR, Mode::empty(), RESOLVE) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                opened => return Ok(opened?),
            }
        }
        Err(Errno::AGAIN.into())
    }

    /// The directory in the topmost layer that has it: overlayfs shows its attributes.
    pub(super) fn topmost(&self, dir: &MergedDir) -> io::Result<OwnedFd> {
        self.parent(dir.layers[0], dir)
    }

    fn root(&self) -> MergedDir {
        MergedDir {
            path: PathBuf::new(),
            layers: (0..self.0.len()).collect(),
        }
    }

    fn look(&self, dir: &MergedDir, name: &CStr) -> io::Result<MergedEntry> {
        let mut builder = EntryBuilder::default();
        for &layer in &dir.layers {
            if builder.is_complete() {
                break;
            }
            let parent = self.parent(layer, dir)?;
            builder.add(&parent, name, layer)?;
        }
        Ok(builder.done(dir.path.join(OsStr::from_bytes(name.to_bytes()))))
    }
}

/// An entry, built from the layers from the top downwards.
#[derive(Default)]
struct EntryBuilder {
    top: TopEntry,
    /// Lower layers are hidden.
    hides: bool,
}

#[derive(Default)]
enum TopEntry {
    #[default]
    Nothing,
    Dir(Vec<usize>),
    Other(usize, Box<Stat>),
}

impl EntryBuilder {
    fn is_complete(&self) -> bool {
        self.hides
    }

    /// Adds the entry of the next lower layer.
    fn add(&mut self, parent: impl AsFd, name: &CStr, layer: usize) -> io::Result<()> {
        if self.hides {
            return Ok(());
        }
        let stat = match fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(()),
            stat => stat?,
        };
        if is(&stat, FileType::Directory) {
            let dir = fs::openat(&parent, name, DIR, Mode::empty())?;
            self.hides = is_opaque(&dir);
            match &mut self.top {
                TopEntry::Dir(layers) => layers.push(layer),
                _ => self.top = TopEntry::Dir(vec![layer]),
            }
            return Ok(());
        }
        self.hides = true;
        if matches!(self.top, TopEntry::Nothing) && !is_whiteout(&stat) {
            self.top = TopEntry::Other(layer, Box::new(stat));
        }
        Ok(())
    }

    fn done(self, path: PathBuf) -> MergedEntry {
        match self.top {
            TopEntry::Nothing => MergedEntry::Nothing,
            TopEntry::Dir(layers) => MergedEntry::Dir(MergedDir { path, layers }),
            TopEntry::Other(layer, stat) => MergedEntry::Other(layer, stat),
        }
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::LOOP | Errno::NAMETOOLONG)
    ) || error.kind() == io::ErrorKind::NotADirectory
}

pub(super) fn is(stat: &Stat, kind: FileType) -> bool {
    FileType::from_raw_mode(stat.st_mode) == kind
}

fn names(path: &Path) -> impl Iterator<Item = OsString> + '_ {
    path.components().filter_map(|component| match component {
        Component::Normal(_) | Component::ParentDir => Some(component.as_os_str().to_owned()),
        _ => None,
    })
}
