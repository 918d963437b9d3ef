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

/// Nothing in a layer leads out of it, not even to a mount below.
const RESOLVE: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_XDEV);

/// Symbolic links that are resolved on one path, as in the kernel.
const MOST_LINKS: usize = 40;

/// Somebody who renames elsewhere on the machine can make the kernel unsure.
const TRIES: usize = 100;

/// The layers, the topmost first.
#[derive(Debug)]
pub(crate) struct MergedTree(Vec<OwnedFd>);

/// A directory of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MergedDir {
    /// Its path, relative, without links.
    pub(super) path: PathBuf,
    /// The layers that have a part in it, by their place, the topmost first.
    layers: Vec<usize>,
}

/// What is at a path.
#[derive(Debug)]
pub(super) enum Found {
    /// Nothing.
    Nothing,
    /// A directory.
    Dir(MergedDir),
    /// Anything else, in that layer.
    Other(usize, Box<Stat>),
}

/// Where a path leads, symbolic links resolved inside of the tree.
#[derive(Debug)]
pub(super) enum Reached {
    /// To a directory: its path, relative, without links.
    Dir(PathBuf),
    /// Nowhere: the path, as far as it was resolved.
    Missing(PathBuf),
    /// To anything else but a symbolic link.
    Other(OtherFile),
}

/// What is neither a directory nor a symbolic link.
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

    /// The path of a directory that an absolute one leads to, without symbolic links. What is
    /// missing at its end stays as it is written.
    pub(super) fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        match self.walk(path)? {
            Reached::Dir(path) | Reached::Missing(path) => Ok(Path::new("/").join(path)),
            Reached::Other(_) => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    /// What a path leads to. Where it leads through something that is no directory or through too
    /// many links, nothing is there.
    pub(super) fn reach(&self, path: &Path) -> io::Result<Reached> {
        match self.walk(path) {
            Err(error) if is_no_place(&error) => Ok(Reached::Missing(path.to_owned())),
            reached => reached,
        }
    }

    /// Opens what is no directory to read it; `None` if it is not a regular file.
    pub(super) fn regular_file(&self, file: &OtherFile) -> io::Result<Option<File>> {
        if !is(&file.stat, FileType::RegularFile) {
            return Ok(None);
        }
        let parent = self.parent(file.layer, &file.dir)?;
        // A pipe in its place would block.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = File::from(fs::openat(parent, &file.name, flags, Mode::empty())?);
        Ok(opened.metadata()?.is_file().then_some(opened))
    }

    fn walk(&self, path: &Path) -> io::Result<Reached> {
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
                Found::Dir(dir) => done.push(dir),
                Found::Nothing => {
                    // Nothing is below, either: the rest is only a name.
                    let mut missing = here.path.join(name);
                    for name in left {
                        match name == ".." {
                            true => drop(missing.pop()),
                            false => missing.push(name),
                        }
                    }
                    return Ok(Reached::Missing(missing));
                }
                Found::Other(layer, stat) if is(&stat, FileType::Symlink) => {
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
                Found::Other(layer, stat) if left.is_empty() => {
                    return Ok(Reached::Other(OtherFile {
                        dir: here.clone(),
                        name: c_name,
                        layer,
                        stat,
                    }));
                }
                Found::Other(..) => return Err(io::ErrorKind::NotADirectory.into()),
            }
        }
        Ok(Reached::Dir(done.swap_remove(done.len() - 1).path))
    }

    /// What is at an absolute path without links.
    pub(super) fn find(&self, path: &Path) -> io::Result<Found> {
        let mut here = self.root();
        for name in names(path) {
            let name = CString::new(name.as_bytes())?;
            match self.look(&here, &name)? {
                Found::Dir(dir) => here = dir,
                Found::Nothing => return Ok(Found::Nothing),
                Found::Other(..) => return Err(io::ErrorKind::NotADirectory.into()),
            }
        }
        Ok(Found::Dir(here))
    }

    /// All that is in a directory, by name.
    pub(super) fn entries(&self, dir: &MergedDir) -> io::Result<BTreeMap<CString, Found>> {
        let mut entries: BTreeMap<CString, Building> = BTreeMap::new();
        for &layer in &dir.layers {
            let parent = self.parent(layer, dir)?;
            for entry in Dir::read_from(&parent)? {
                let name = entry?.file_name().to_owned();
                if matches!(name.to_bytes(), b"." | b"..") {
                    continue;
                }
                let building = entries.entry(name.clone()).or_default();
                building.add(&parent, &name, layer)?;
            }
        }
        let found = entries.into_iter().map(|(name, building)| {
            let path = dir.path.join(OsStr::from_bytes(name.to_bytes()));
            (name, building.done(path))
        });
        Ok(found.collect())
    }

    /// The part of a directory that a layer has.
    pub(super) fn parent(&self, layer: usize, dir: &MergedDir) -> io::Result<OwnedFd> {
        let path = match dir.path.as_os_str().is_empty() {
            // `openat2` takes no empty path.
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

    /// The directory in the topmost layer that has a part in it: its attributes are those shown.
    pub(super) fn topmost(&self, dir: &MergedDir) -> io::Result<OwnedFd> {
        self.parent(dir.layers[0], dir)
    }

    fn root(&self) -> MergedDir {
        MergedDir {
            path: PathBuf::new(),
            layers: (0..self.0.len()).collect(),
        }
    }

    fn look(&self, dir: &MergedDir, name: &CStr) -> io::Result<Found> {
        let mut building = Building::default();
        for &layer in &dir.layers {
            if building.is_complete() {
                break;
            }
            let parent = self.parent(layer, dir)?;
            building.add(&parent, name, layer)?;
        }
        Ok(building.done(dir.path.join(OsStr::from_bytes(name.to_bytes()))))
    }
}

/// An entry, as far as the layers from the top downwards have told.
#[derive(Default)]
struct Building {
    seen: Seen,
    /// Whether what lower layers have is hidden.
    hides: bool,
}

#[derive(Default)]
enum Seen {
    #[default]
    Nothing,
    Dir(Vec<usize>),
    Other(usize, Box<Stat>),
}

impl Building {
    fn is_complete(&self) -> bool {
        self.hides
    }

    /// Adds what the next lower layer has.
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
            match &mut self.seen {
                Seen::Dir(layers) => layers.push(layer),
                _ => self.seen = Seen::Dir(vec![layer]),
            }
            return Ok(());
        }
        self.hides = true;
        if matches!(self.seen, Seen::Nothing) && !is_whiteout(&stat) {
            self.seen = Seen::Other(layer, Box::new(stat));
        }
        Ok(())
    }

    fn done(self, path: PathBuf) -> Found {
        match self.seen {
            Seen::Nothing => Found::Nothing,
            Seen::Dir(layers) => Found::Dir(MergedDir { path, layers }),
            Seen::Other(layer, stat) => Found::Other(layer, stat),
        }
    }
}

fn is_no_place(error: &io::Error) -> bool {
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
