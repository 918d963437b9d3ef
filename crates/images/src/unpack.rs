//! Applying a layer's archive to a folder that overlayfs can use.
//!
//! What an archive can and can't do:
//!
//! - Names are relative to the folder; `..` in one is refused. Links in the path of an entry are
//!   followed as a container would see them, with the folder as the root, by the kernel
//!   (`openat2` with `RESOLVE_IN_ROOT`), so that no race and no chain of links leads out.
//! - `.wh.name` becomes overlayfs's whiteout, a character device 0:0; `.wh..wh..opq` makes its
//!   folder opaque (`trusted.overlay.opaque`).
//! - Extended attributes: `security.capability`, `user.*` and POSIX access lists are set. Those of
//!   overlayfs, of SELinux and of integrity checks belong to the machine the archive was made on
//!   and are left out.
//! - Devices: those that every container has anyway (`null`, `zero`, `full`, `random`, `urandom`,
//!   `tty`, `console`, `ptmx`) are made. Other ones are left out below `dev`, which a container's
//!   own `/dev` covers, and refused anywhere else.
//! - Owner first, then capabilities and the setuid and setgid bits, which a change of owner clears.
//! - Size, number of entries, depth, and the ratio to the compressed size are bounded, and some
//!   space of the disk stays free.

mod applier;
mod attributes;
mod decompress;
mod name;
mod place;
mod whiteout;

use std::{
    io::{self, Read},
    path::{Path, PathBuf},
};

use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};

pub(crate) use self::attributes::{is_content, is_opaque, is_whiteout};
use self::{applier::Applier, decompress::Counter};
use crate::{
    Digest, Usage,
    archive::{Archive, ArchiveError},
    digest::{Algorithm, Hasher},
};

/// Bounds on what a layer may become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnpackLimits {
    /// Entries of the archive.
    pub entries: u64,
    /// Bytes of the plain archive, and of each file in it with its holes.
    pub bytes: u64,
    /// How many times larger than what was downloaded the plain archive may be...
    pub ratio: u64,
    /// ...once it is larger than this, in bytes.
    pub ratio_from: u64,
    /// Folders in folders.
    pub depth: usize,
    /// Bytes of the disk that stay free.
    pub spare_bytes: u64,
    /// Inodes of the disk that stay free, on file systems that have a fixed number.
    pub spare_inodes: u64,
}

impl Default for UnpackLimits {
    fn default() -> Self {
        Self {
            entries: 4_000_000,
            bytes: 256 << 30,
            ratio: 200,
            ratio_from: 1 << 30,
            depth: 512,
            spare_bytes: 128 << 20,
            spare_inodes: 1000,
        }
    }
}

/// Why a layer can't be used.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    /// The archive is damaged, or of a kind that is not supported.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// What was downloaded can't be read to its end.
    #[error("the layer cannot be read")]
    Read(#[source] io::Error),
    /// No honest archive has this.
    #[error("the layer's entry {path:?} is refused: {why}")]
    Hostile {
        /// The entry.
        path: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// It grows beyond all bounds.
    #[error("the layer is refused: {0}")]
    Bomb(&'static str),
    /// The disk has no room.
    #[error("no space for the layer: {0}")]
    NoSpace(&'static str),
    /// The disk fails.
    #[error("cannot {step} {path:?} of the layer")]
    Disk {
        /// What was being done.
        step: &'static str,
        /// The entry.
        path: String,
        /// Why.
        source: io::Error,
    },
}

/// Owner and permissions of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FolderAttributes {
    /// Permissions.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

/// What became of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// Files, folders and the like that were made, and the blocks of their content.
    pub usage: Usage,
    /// What the archive says of the root folder itself.
    pub root: Option<FolderAttributes>,
    /// Folders that entries are in, but that have no entry of their own. Their attributes are
    /// those of the layers below, if there are any.
    pub implicit: Vec<PathBuf>,
    /// Devices below `dev` that were not made.
    pub left_out: Vec<String>,
}

/// What became of a blob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unpacked {
    /// What was made of it.
    pub applied: Applied,
    /// The digest of the plain archive.
    pub diff_id: Digest,
    /// The digest of the blob as it came.
    pub blob: Digest,
    /// Bytes of the blob.
    pub blob_bytes: u64,
}

/// Applies the plain archive `source` to the empty folder `target`.
///
/// # Errors
/// See [`UnpackError`]. The folder holds a part then.
pub fn apply(
    source: impl Read,
    target: &Path,
    limits: &UnpackLimits,
) -> Result<Applied, UnpackError> {
    apply_archive(&mut Archive::new(source), target, limits)
}

fn apply_archive<R: Read>(
    archive: &mut Archive<R>,
    target: &Path,
    limits: &UnpackLimits,
) -> Result<Applied, UnpackError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::open(target, flags, Mode::empty());
    let root = root.map_err(|source| UnpackError::Disk {
        step: "open the folder",
        path: target.display().to_string(),
        source: source.into(),
    })?;
    let mut applier = Applier::new(root, limits);
    while let Some(entry) = archive.next_entry()? {
        applier.apply(&entry, archive)?;
    }
    applier.finish()
}

/// Applies the blob `source` (a tar archive, plain, or compressed with gzip or zstd) to the empty
/// folder `target`, and takes the digests of blob and archive. The caller compares them.
///
/// # Errors
/// See [`UnpackError`]. The folder holds a part then.
pub fn unpack(
    source: impl Read + Send,
    algorithms: (Algorithm, Algorithm),
    target: &Path,
    limits: &UnpackLimits,
) -> Result<Unpacked, UnpackError> {
    let (blob_algorithm, diff_algorithm) = algorithms;
    let arrived = Counter::default();
    let mut tap = Tap::new(source, blob_algorithm, arrived.clone());
    let plain = decompress::plain(&mut tap).map_err(UnpackError::Read)?;
    let bounded = decompress::Bounded::new(plain, arrived.clone(), limits);
    let mut archive = Archive::new(Tap::new(bounded, diff_algorithm, Counter::default()));
    let applied = apply_archive(&mut archive, target, limits).map_err(bomb)?;
    let mut rest = archive.into_inner();
    // Digests are of all there is, also behind the end of the archive.
    let drain = |source: &mut dyn Read| io::copy(source, &mut io::sink());
    drain(&mut rest).map_err(|error| bomb(UnpackError::Read(error)))?;
    let diff_id = rest.finish();
    drain(&mut tap).map_err(UnpackError::Read)?;
    Ok(Unpacked {
        applied,
        diff_id,
        blob_bytes: arrived.get(),
        blob: tap.finish(),
    })
}

/// Whether a file is compressed as layers may be, by its first bytes.
pub(crate) fn is_compressed(file: &std::fs::File) -> io::Result<bool> {
    use std::os::unix::fs::FileExt as _;
    let mut start = [0; 4];
    let read = file.read_at(&mut start, 0)?;
    Ok(decompress::Form::of(&start[..read]) != decompress::Form::Plain)
}

/// Writes the plain form of a compressed file.
pub(crate) fn plain_copy(
    from: &std::fs::File,
    to: &mut std::fs::File,
    limits: &UnpackLimits,
) -> io::Result<()> {
    let arrived = Counter::default();
    let tap = Tap::new(from, Algorithm::Sha256, arrived.clone());
    let plain = decompress::plain(tap)?;
    io::copy(&mut decompress::Bounded::new(plain, arrived, limits), to)?;
    Ok(())
}

/// Finds the bomb in an error of reading.
fn bomb(error: UnpackError) -> UnpackError {
    let source = match &error {
        UnpackError::Archive(ArchiveError::Read(source)) | UnpackError::Read(source) => source,
        _ => return error,
    };
    let found = source.get_ref().and_then(|inner| inner.downcast_ref());
    match found {
        Some(decompress::Bomb(why)) => UnpackError::Bomb(why),
        None => error,
    }
}

/// Takes the digest of what is read through it, and counts.
struct Tap<R> {
    source: R,
    hasher: Hasher,
    counter: Counter,
}

impl<R> Tap<R> {
    fn new(source: R, algorithm: Algorithm, counter: Counter) -> Self {
        Self {
            source,
            hasher: Hasher::new(algorithm),
            counter,
        }
    }

    fn finish(self) -> Digest {
        self.hasher.finish()
    }
}

impl<R: Read> Read for Tap<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        self.hasher.update(&buffer[..read]);
        self.counter.add(read as u64);
        Ok(read)
    }
}

#[cfg(test)]
mod tests;
