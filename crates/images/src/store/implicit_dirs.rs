//! Directories that a layer uses without an entry.
//!
//! Some builders write `tmp/x` without `tmp`. Unpacked by itself, such a layer has a `tmp` with
//! attributes that the image does not specify, and overlayfs shows those of the topmost layer: a
//! world-writable `tmp` of the layer below would become root's. So such an image gets an additional
//! layer on top, which contains only these directories with the attributes that they have below.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, Metadata, Permissions},
    io,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown},
    path::Path,
    sync::Arc,
};

use super::{ImageStore, LayerLease, directories::open_directory, disk_error};
use crate::{Digest, DiskUsage, StoreError, unpack::AppliedLayer};

/// An image with more such directories is not repaired: no ordinary one has so many.
const MOST: usize = 20_000;
/// The attributes of directories without an entry.
const PLAIN: (u32, u32, u32) = (0o755, 0, 0);

/// The parts of a layer that are needed here.
struct LayerBelow<'a> {
    tree: &'a Path,
    implicit: BTreeSet<&'a str>,
}

/// The entry of a path in one layer.
enum EntryInLayer {
    /// Nothing; lower layers show through.
    Nothing,
    /// An entry that hides lower layers.
    Hidden,
    Directory {
        meta: Metadata,
        opaque: bool,
    },
}

/// The attributes of the directories to repair, and of their parents.
fn repairs(from_top: &[LayerBelow<'_>]) -> io::Result<BTreeMap<String, (u32, u32, u32)>> {
    let all: BTreeSet<&str> = from_top
        .iter()
        .flat_map(|layer| layer.implicit.iter().copied())
        .collect();
    let mut repairs = BTreeMap::new();
    if all.len() > MOST {
        tracing::warn!(
            directories = all.len(),
            "Too many directories without entries in the image, keeping default attributes"
        );
        return Ok(repairs);
    }
    for path in all {
        let (attributes, is_top_implicit) = shown(from_top, path)?;
        if !is_top_implicit || attributes == PLAIN {
            continue;
        }
        repairs.insert(path.to_owned(), attributes);
        let mut parent = path;
        while let Some((above, _)) = parent.rsplit_once('/') {
            parent = above;
            if !repairs.contains_key(parent) {
                repairs.insert(parent.to_owned(), shown(from_top, parent)?.0);
            }
        }
    }
    Ok(repairs)
}

/// The attributes that a directory should have, and whether the topmost layer that contains it has
/// others because it lacks an entry.
fn shown(from_top: &[LayerBelow<'_>], path: &str) -> io::Result<((u32, u32, u32), bool)> {
    let mut is_top_implicit = false;
    for layer in from_top {
        match look(layer.tree, path)? {
            EntryInLayer::Nothing => {}
            EntryInLayer::Hidden => break,
            EntryInLayer::Directory { meta, opaque } => {
                if !layer.implicit.contains(path) {
                    let attributes = (meta.mode() & 0o7777, meta.uid(), meta.gid());
                    return Ok((attributes, is_top_implicit));
                }
                is_top_implicit = true;
                if opaque {
                    break;
                }
            }
        }
    }
    Ok((PLAIN, is_top_implicit))
}

fn look(tree: &Path, path: &str) -> io::Result<EntryInLayer> {
    let mut here = tree.to_owned();
    let mut opaque = false;
    let mut last = None;
    for part in path.split('/') {
        here.push(part);
        let meta = match fs::symlink_metadata(&here) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let found = if opaque {
                    EntryInLayer::Hidden
                } else {
                    EntryInLayer::Nothing
                };
                return Ok(found);
            }
            meta => meta?,
        };
        if !meta.is_dir() {
            return Ok(EntryInLayer::Hidden);
        }
        let mut value = [0; 8];
        let read = rustix::fs::lgetxattr(&here, "trusted.overlay.opaque", &mut value);
        opaque |= read.is_ok_and(|length| value[..length] == *b"y");
        last = Some(meta);
    }
    Ok(
        last.map_or(EntryInLayer::Nothing, |meta| EntryInLayer::Directory {
            meta,
            opaque,
        }),
    )
}

impl ImageStore {
    /// The layers of an image, from the bottom to the top, with an additional one if some of its
    /// directories need it. The caller holds them, and then this one. Blocks.
    pub(crate) fn with_implicit_dirs(
        self: &Arc<Self>,
        mut layers: Vec<Digest>,
        hold: &mut LayerLease,
    ) -> Result<Vec<Digest>, StoreError> {
        let mut records = Vec::new();
        {
            let state = self.state();
            let known = layers
                .iter()
                .rev()
                .filter_map(|layer| state.layers.get(layer));
            records.extend(known.map(|layer| layer.record.clone()));
        }
        if records.iter().all(|record| record.implicit.is_empty()) {
            return Ok(layers);
        }
        let paths: Vec<_> = records
            .iter()
            .map(|record| self.directories.layer_tree(&record.diff_id))
            .collect();
        let from_top = records.iter().zip(&paths).map(|(record, tree)| LayerBelow {
            tree,
            implicit: record.implicit.iter().map(String::as_str).collect(),
        });
        let from_top: Vec<LayerBelow<'_>> = from_top.collect();
        let repairs = repairs(&from_top)
            .map_err(disk_error("read the layers below", self.directories.root()))?;
        if repairs.is_empty() {
            return Ok(layers);
        }
        // Two images with the same directories share it.
        let digest = Digest::of(format!("directories {repairs:?}").as_bytes());
        if !hold.add(&digest) {
            let made = self.directories.unused();
            make(&made, &repairs).map_err(disk_error("create", &made))?;
            let inodes = repairs.len() as u64;
            let applied = AppliedLayer {
                usage: DiskUsage {
                    bytes: inodes * 4096,
                    inodes,
                },
                root: None,
                implicit: Vec::new(),
                left_out: Vec::new(),
            };
            hold.merge(self.commit_layer(&made, &digest, &applied)?);
        }
        layers.push(digest);
        Ok(layers)
    }
}

fn make(made: &Path, repairs: &BTreeMap<String, (u32, u32, u32)>) -> io::Result<()> {
    fs::create_dir(made)?;
    let tree = made.join("fs");
    open_directory(&tree)?;
    // In the order of their names, directories precede their entries.
    for (path, (mode, uid, gid)) in repairs {
        let directory = tree.join(path);
        fs::create_dir(&directory)?;
        chown(&directory, Some(*uid), Some(*gid))?;
        fs::set_permissions(&directory, Permissions::from_mode(*mode))?;
    }
    Ok(())
}
