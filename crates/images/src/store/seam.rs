//! Folders that a layer uses without an entry of their own.
//!
//! Some builders write `tmp/x` without `tmp`. Unpacked by itself, such a layer has a `tmp` with
//! attributes that nobody asked for, and overlayfs shows those of the topmost layer: the `tmp` of
//! the layer below, which everybody may write to, would be root's. So such an image gets one layer
//! more, on top, with nothing but these folders and the attributes that they have below.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, Metadata, Permissions},
    io,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown},
    path::Path,
    sync::Arc,
};

use super::{ImageStore, LayerHold, disk_error, folders::open_folder};
use crate::{Digest, StoreError, Usage, unpack::Applied};

/// An image with more such folders is taken as it is: none that is honest has so many.
const MOST: usize = 20_000;
/// What folders without an entry get.
const PLAIN: (u32, u32, u32) = (0o755, 0, 0);

/// A layer as far as it matters here.
struct Below<'a> {
    tree: &'a Path,
    implicit: BTreeSet<&'a str>,
}

/// What a path is in one layer.
enum Found {
    /// Nothing, and what is below shows.
    Nothing,
    /// Something that hides what is below.
    Hidden,
    Folder {
        meta: Metadata,
        opaque: bool,
    },
}

/// The attributes of the folders that are to be repaired, with those on the way to them.
fn repairs(from_top: &[Below<'_>]) -> io::Result<BTreeMap<String, (u32, u32, u32)>> {
    let all: BTreeSet<&str> = from_top
        .iter()
        .flat_map(|layer| layer.implicit.iter().copied())
        .collect();
    let mut repairs = BTreeMap::new();
    if all.len() > MOST {
        tracing::warn!(
            folders = all.len(),
            "folders of an image keep attributes that it does not give"
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

/// The attributes that a folder should show, and whether the topmost layer that has it has others
/// by accident.
fn shown(from_top: &[Below<'_>], path: &str) -> io::Result<((u32, u32, u32), bool)> {
    let mut is_top_implicit = false;
    for layer in from_top {
        match look(layer.tree, path)? {
            Found::Nothing => {}
            Found::Hidden => break,
            Found::Folder { meta, opaque } => {
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

fn look(tree: &Path, path: &str) -> io::Result<Found> {
    let mut here = tree.to_owned();
    let mut opaque = false;
    let mut last = None;
    for part in path.split('/') {
        here.push(part);
        let meta = match fs::symlink_metadata(&here) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let found = if opaque {
                    Found::Hidden
                } else {
                    Found::Nothing
                };
                return Ok(found);
            }
            meta => meta?,
        };
        if !meta.is_dir() {
            return Ok(Found::Hidden);
        }
        let mut value = [0; 8];
        let read = rustix::fs::lgetxattr(&here, "trusted.overlay.opaque", &mut value);
        opaque |= read.is_ok_and(|length| value[..length] == *b"y");
        last = Some(meta);
    }
    Ok(last.map_or(Found::Nothing, |meta| Found::Folder { meta, opaque }))
}

impl ImageStore {
    /// The layers of an image, from the bottom to the top, with one more if some of its folders
    /// need it. The caller holds them, and then this one. Blocks.
    pub(crate) fn with_seam(
        self: &Arc<Self>,
        mut layers: Vec<Digest>,
        hold: &mut LayerHold,
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
            .map(|record| self.folders.layer_tree(&record.diff_id))
            .collect();
        let from_top = records.iter().zip(&paths).map(|(record, tree)| Below {
            tree,
            implicit: record.implicit.iter().map(String::as_str).collect(),
        });
        let from_top: Vec<Below<'_>> = from_top.collect();
        let repairs = repairs(&from_top).map_err(disk_error("look into", self.folders.root()))?;
        if repairs.is_empty() {
            return Ok(layers);
        }
        // Two images with the same folders share it.
        let digest = Digest::of(format!("folders {repairs:?}").as_bytes());
        if !hold.add(&digest) {
            let made = self.folders.unused();
            make(&made, &repairs).map_err(disk_error("make", &made))?;
            let inodes = repairs.len() as u64;
            let applied = Applied {
                usage: Usage {
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
    open_folder(&tree)?;
    // In the order of their names, folders are before what is in them.
    for (path, (mode, uid, gid)) in repairs {
        let folder = tree.join(path);
        fs::create_dir(&folder)?;
        chown(&folder, Some(*uid), Some(*gid))?;
        fs::set_permissions(&folder, Permissions::from_mode(*mode))?;
    }
    Ok(())
}
