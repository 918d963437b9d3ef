//! Applies a layer's archive to a directory for overlayfs.
//!
//! Rules for archives:
//!
//! - Names are relative to the directory; `..` in one is rejected. Links in the path of an entry
//!   are followed as a container would see them, with the directory as the root, by the kernel
//!   (`openat2` with `RESOLVE_IN_ROOT`), so that no race and no chain of links escapes.
//! - `.wh.name` becomes overlayfs's whiteout, a character device 0:0; `.wh..wh..opq` makes its
//!   directory opaque (`trusted.overlay.opaque`).
//! - Extended attributes: `security.capability`, `user.*` and POSIX access lists are set. Those of
//!   overlayfs, SELinux and integrity checks belong to the machine that created the archive and are
//!   skipped.
//! - Devices: those that every container has (`null`, `zero`, `full`, `random`, `urandom`, `tty`,
//!   `console`, `ptmx`) are created. Others are skipped below `dev`, which a container's own `/dev`
//!   covers, and rejected anywhere else.
//! - Owner first, then capabilities and the setuid and setgid bits, which a change of owner clears.
//! - Size, number of entries, depth, and the compression ratio are limited, and some disk space
//!   is kept free.

mod applier;
mod attributes;
mod decompress;
mod layer_root;
mod name;
mod whiteout;

use std::{
    io::{self, Read},
    path::{Path, PathBuf},
};

use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};

pub(crate) use self::attributes::{is_content, is_opaque, is_whiteout};
use self::{applier::Applier, decompress::ByteCounter};
use crate::{
    Digest, DiskUsage,
    archive::{Archive, ArchiveError},
    digest::{Algorithm, Hasher},
};

/// Limits for a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnpackLimits {
    /// Entries of the archive.
    pub entries: u64,
    /// Bytes of the uncompressed archive, and of each file in it with its holes.
    pub bytes: u64,
    /// Maximum ratio of the uncompressed archive to the download...
    pub ratio: u64,
    /// ...checked above this size, in bytes.
    pub ratio_from: u64,
    /// Nesting of directories.
    pub depth: usize,
    /// Bytes of the disk to keep free.
    pub spare_bytes: u64,
    /// Inodes of the disk to keep free, on file systems that have a fixed number.
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

/// Why a layer is rejected.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    /// The archive is corrupt or unsupported.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The download can't be read completely.
    #[error("the layer cannot be read")]
    Read(#[source] io::Error),
    /// An entry that no valid archive has.
    #[error("invalid layer entry {path:?}: {why}")]
    Hostile {
        /// The entry.
        path: String,
        /// The problem.
        why: &'static str,
    },
    /// It exceeds the limits.
    #[error("the layer is refused: {0}")]
    LimitExceeded(&'static str),
    /// The disk is full.
    #[error("no space for the layer: {0}")]
    NoSpace(&'static str),
    /// The disk fails.
    #[error("cannot {step} {path:?} of the layer")]
    Disk {
        /// The failed operation.
        step: &'static str,
        /// The entry.
        path: String,
        /// The error.
        source: io::Error,
    },
}

/// Owner and permissions of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryAttributes {
    /// Permissions.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

/// The result of applying an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedLayer {
    /// Created files and directories, and the blocks of their content.
    pub usage: DiskUsage,
    /// The attributes of the root directory, if the archive has an entry for it.
    pub root: Option<DirectoryAttributes>,
    /// Parent directories without their own entry. Their attributes are those of the layers
    /// below, if there are any.
    pub implicit: Vec<PathBuf>,
    /// Devices below `dev` that were skipped.
    pub left_out: Vec<String>,
}

/// The result of unpacking a blob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnpackedLayer {
    /// The unpacked archive.
    pub applied: AppliedLayer,
    /// The digest of the uncompressed archive.
    pub diff_id: Digest,
    /// The digest of the blob.
    pub blob: Digest,
    /// Bytes of the blob.
    pub blob_bytes: u64,
}

/// Applies the uncompressed archive `source` to the empty directory `target`.
///
/// # Errors
/// See [`UnpackError`]. The directory is incomplete then.
pub fn apply(
    source: impl Read,
    target: &Path,
    limits: &UnpackLimits,
) -> Result<AppliedLayer, UnpackError> {
    apply_archive(&mut Archive::new(source), target, limits)
}

fn apply_archive<R: Read>(
    archive: &mut Archive<R>,
    target: &Path,
    limits: &UnpackLimits,
) -> Result<AppliedLayer, UnpackError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::open(target, flags, Mode::empty());
    let root = root.map_err(|source| UnpackError::Disk {
        step: "open the directory",
        path: target.display().to_string(),
        source: source.into(),
    })?;
    let mut applier = Applier::new(root, limits);
    while let Some(entry) = archive.next_entry()? {
        applier.apply(&entry, archive)?;
    }
    applier.finish()
}

/// Applies the blob `source` (a tar archive, optionally compressed with gzip or zstd) to the empty
/// directory `target`, and computes the digests of blob and archive. The caller compares them.
///
/// # Errors
/// See [`UnpackError`]. The directory is incomplete then.
pub fn unpack(
    source: impl Read + Send,
    algorithms: (Algorithm, Algorithm),
    target: &Path,
    limits: &UnpackLimits,
) -> Result<UnpackedLayer, UnpackError> {
    let (blob_algorithm, diff_algorithm) = algorithms;
    let arrived = ByteCounter::default();
    let mut hashing = HashingReader::new(source, blob_algorithm, arrived.clone());
    let plain = decompress::plain(&mut hashing).map_err(UnpackError::Read)?;
    let bounded = decompress::BoundedReader::new(plain, arrived.clone(), limits);
    let mut archive = Archive::new(HashingReader::new(
        bounded,
        diff_algorithm,
        ByteCounter::default(),
    ));
    let applied = apply_archive(&mut archive, target, limits).map_err(limit_error)?;
    let mut rest = archive.into_inner();
    // Digests cover all bytes, also those after the end of the archive.
    let drain = |source: &mut dyn Read| io::copy(source, &mut io::sink());
    drain(&mut rest).map_err(|error| limit_error(UnpackError::Read(error)))?;
    let diff_id = rest.finish();
    drain(&mut hashing).map_err(UnpackError::Read)?;
    Ok(UnpackedLayer {
        applied,
        diff_id,
        blob_bytes: arrived.get(),
        blob: hashing.finish(),
    })
}

/// Reports whether a file is compressed like a layer, by its first bytes.
pub(crate) fn is_compressed(file: &std::fs::File) -> io::Result<bool> {
    use std::os::unix::fs::FileExt as _;
    let mut start = [0; 4];
    let read = file.read_at(&mut start, 0)?;
    Ok(decompress::Compression::of(&start[..read]) != decompress::Compression::Plain)
}

/// Writes the uncompressed content of a compressed file.
pub(crate) fn plain_copy(
    from: &std::fs::File,
    to: &mut std::fs::File,
    limits: &UnpackLimits,
) -> io::Result<()> {
    let arrived = ByteCounter::default();
    let hashing = HashingReader::new(from, Algorithm::Sha256, arrived.clone());
    let plain = decompress::plain(hashing)?;
    io::copy(
        &mut decompress::BoundedReader::new(plain, arrived, limits),
        to,
    )?;
    Ok(())
}

/// Extracts an exceeded limit from a read error.
fn limit_error(error: UnpackError) -> UnpackError {
    let source = match &error {
        UnpackError::Archive(ArchiveError::Read(source)) | UnpackError::Read(source) => source,
        _ => return error,
    };
    let found = source.get_ref().and_then(|inner| inner.downcast_ref());
    match found {
        Some(decompress::LimitExceeded(why)) => UnpackError::LimitExceeded(why),
        None => error,
    }
}

/// Hashes and counts the bytes that are read through it.
struct HashingReader<R> {
    source: R,
    hasher: Hasher,
    counter: ByteCounter,
}

impl<R> HashingReader<R> {
    fn new(source: R, algorithm: Algorithm, counter: ByteCounter) -> Self {
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

impl<R: Read> Read for HashingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        self.hasher.update(&buffer[..read]);
        self.counter.add(read as u64);
        Ok(read)
    }
}

#[cfg(test)]
mod tests;
