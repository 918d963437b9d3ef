//! The root file systems of containers.

use std::{
    collections::HashSet,
    fs, io,
    os::unix::fs::{PermissionsExt as _, chown},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use rubelet_host::tree_usage;
use rubelet_oci::IdMapping;
use tokio::time::Instant;

use super::{
    IdMappings, ImageStore, RootfsLayers, blocking,
    directories::{EMPTY, discard, open_directory},
    disk_error,
    state::{Snapshot, StoreState},
};
use crate::{Digest, DiskUsage, ImageId, StoreError, tree, unpack::DirectoryAttributes};

/// A directory that was measured within this time is not measured again.
const FRESH: Duration = Duration::from_secs(10);
/// The kernel's ID for unmapped IDs (`/proc/sys/kernel/overflowuid`).
const NOBODY: u32 = 65534;
const LAYERS: &str = "layers";
const VOLUMES: &str = "volumes";
/// The last line of a list of layers.
const END: &str = "end";

impl ImageStore {
    /// Creates the directories of a container's root file system.
    ///
    /// # Errors
    /// There is no such image, the container already has a root file system, or the disk fails.
    pub async fn prepare_rootfs(
        self: &Arc<Self>,
        container_id: &str,
        image: &ImageId,
        userns: Option<&IdMappings>,
    ) -> Result<RootfsLayers, StoreError> {
        check_id(container_id)?;
        let (layers, attributes) = {
            let mut state = self.state();
            if state.snapshots.contains_key(container_id) {
                return Err(StoreError::RootfsExists(container_id.to_owned()));
            }
            let no_image = || StoreError::NoImage(image.to_string());
            let found = state.images.get(image).ok_or_else(no_image)?;
            let layers = found.layers.clone();
            if !state.hold(&layers) {
                return Err(no_image());
            }
            let mut from_top = layers.iter().rev();
            let attributes = from_top.find_map(|layer| state.layers.get(layer)?.record.root);
            // From now on the name is reserved.
            let snapshot = Snapshot {
                layers: layers.clone(),
                volumes: Vec::new(),
                measured: None,
            };
            state.snapshots.insert(container_id.to_owned(), snapshot);
            (layers, attributes)
        };
        let owner = attributes.map_or((0, 0), |found| (found.uid, found.gid));
        let mode = attributes.map_or(0o755, |found| found.mode);
        let attributes = DirectoryAttributes {
            mode,
            uid: userns.map_or(owner.0, |mappings| mapped(owner.0, &mappings.uids)),
            gid: userns.map_or(owner.1, |mappings| mapped(owner.1, &mappings.gids)),
        };
        let (store, id) = (Arc::clone(self), container_id.to_owned());
        // Runs to completion even if the caller is dropped; `remove_rootfs` then finds it.
        blocking(move || {
            let made = store.make_snapshot(&id, &layers, attributes);
            if made.is_err() {
                store.forget_snapshot(&id);
            }
            made
        })
        .await?;
        self.rootfs(container_id)
    }

    /// The directories of a root file system that was prepared before, perhaps by an earlier process.
    ///
    /// # Errors
    /// It does not exist.
    pub fn rootfs(&self, container_id: &str) -> Result<RootfsLayers, StoreError> {
        let state = self.state();
        let snapshot = state.snapshots.get(container_id);
        let snapshot = snapshot.ok_or_else(|| StoreError::NoRootfs(container_id.to_owned()))?;
        let lower = self.trees(&state, &snapshot.layers);
        let directory = self.directories.snapshot(container_id);
        Ok(RootfsLayers {
            lower,
            upper: directory.join("fs"),
            work: directory.join("work"),
        })
    }

    /// Holds the images that a container mounts as long as it has a root file system. Returns the
    /// directories of each image's layers, in the same order, the topmost first and never empty.
    ///
    /// # Errors
    /// There is no such image or root file system, or the disk fails.
    pub async fn hold_volumes(
        self: &Arc<Self>,
        container_id: &str,
        images: &[ImageId],
    ) -> Result<Vec<Vec<PathBuf>>, StoreError> {
        check_id(container_id)?;
        let mut volumes = Vec::new();
        let mut trees = Vec::new();
        {
            let mut state = self.state();
            for image in images {
                let found = state.images.get(image);
                let found = found.ok_or_else(|| StoreError::NoImage(image.to_string()))?;
                volumes.extend(found.layers.iter().cloned());
                trees.push(self.trees(&state, &found.layers));
            }
            if !state.snapshots.contains_key(container_id) {
                return Err(StoreError::NoRootfs(container_id.to_owned()));
            }
            if !state.hold(&volumes) {
                return Err(StoreError::NoImage(container_id.to_owned()));
            }
            if let Some(snapshot) = state.snapshots.get_mut(container_id) {
                snapshot.volumes.extend(volumes.iter().cloned());
            }
        }
        let directory = self.directories.snapshot(container_id);
        let written = blocking(move || {
            write_layers(&directory.join(VOLUMES), &volumes)
                .map_err(disk_error("write the image volumes in", &directory))
        });
        written.await?;
        Ok(trees)
    }

    /// Removes a container's root file system. It must not be mounted any more. Removing a missing
    /// one succeeds.
    ///
    /// # Errors
    /// The disk fails.
    pub async fn remove_rootfs(self: &Arc<Self>, container_id: &str) -> Result<(), StoreError> {
        check_id(container_id)?;
        let (store, id) = (Arc::clone(self), container_id.to_owned());
        blocking(move || {
            let path = store.directories.snapshot(&id);
            let trash = store.directories.unused();
            match fs::rename(&path, &trash) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                moved => moved.map_err(disk_error("move away", &path))?,
            }
            store.forget_snapshot(&id);
            tree::remove(&trash).map_err(disk_error("remove", &trash))
        })
        .await
    }

    /// The disk usage of a container, including the volumes of its image. Walks its directories,
    /// unless it was measured recently.
    ///
    /// # Errors
    /// There is no such root file system.
    pub async fn rootfs_usage(
        self: &Arc<Self>,
        container_id: &str,
    ) -> Result<DiskUsage, StoreError> {
        let now = Instant::now();
        let none = || StoreError::NoRootfs(container_id.to_owned());
        let measured = {
            let state = self.state();
            let snapshot = state.snapshots.get(container_id);
            snapshot.ok_or_else(none)?.measured
        };
        if let Some((at, usage)) = measured
            && now.duration_since(at) < FRESH
        {
            return Ok(usage);
        }
        let upper = self.directories.snapshot(container_id).join("fs");
        let volumes = self.directories.image_volumes(container_id);
        let usage = blocking(move || {
            let upper_usage = tree_usage::of(&upper).map_err(disk_error("measure", &upper))?;
            let mut usage = DiskUsage::from(upper_usage);
            match tree_usage::of(&volumes) {
                // Few images declare volumes.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                measured => {
                    usage += measured.map_err(disk_error("measure", &volumes))?.into();
                }
            }
            Ok::<_, StoreError>(usage)
        });
        let usage = usage.await?;
        if let Some(snapshot) = self.state().snapshots.get_mut(container_id) {
            snapshot.measured = Some((now, usage));
        }
        Ok(usage)
    }

    /// The containers that have a root file system.
    #[must_use]
    pub fn snapshots(&self) -> Vec<String> {
        self.state().snapshots.keys().cloned().collect()
    }

    /// The directories of layers, the topmost first.
    fn trees(&self, state: &StoreState, layers: &[Digest]) -> Vec<PathBuf> {
        let mut seen = HashSet::new();
        // Overlayfs rejects duplicate directories; the lower one shows nothing that the upper one
        // does not. Layers without content show nothing at all.
        let shows = |layer: &&Digest| {
            let found = state.layers.get(*layer);
            found.is_some_and(|layer| layer.record.usage.inodes > 0)
                && seen.insert((*layer).clone())
        };
        let shown = layers.iter().rev().filter(shows);
        let mut trees: Vec<PathBuf> = shown
            .map(|layer| self.directories.layer_tree(layer))
            .collect();
        if trees.is_empty() {
            trees.push(self.directories.layers().join(EMPTY));
        }
        trees
    }

    fn make_snapshot(
        &self,
        container_id: &str,
        layers: &[Digest],
        attributes: DirectoryAttributes,
    ) -> Result<(), StoreError> {
        let made = self.directories.unused();
        let upper = made.join("fs");
        let filled = fs::create_dir(&made)
            .and_then(|()| open_directory(&upper))
            .and_then(|()| chown(&upper, Some(attributes.uid), Some(attributes.gid)))
            .and_then(|()| fs::set_permissions(&upper, fs::Permissions::from_mode(attributes.mode)))
            .and_then(|()| fs::create_dir(made.join("work")))
            .and_then(|()| write_layers(&made.join(LAYERS), layers));
        let target = self.directories.snapshot(container_id);
        let moved = filled.and_then(|()| fs::rename(&made, &target));
        if moved.is_err() {
            let _ = tree::remove(&made);
        }
        moved.map_err(disk_error("create the root file system", &target))
    }

    /// Removes a root file system, and its layers without other users.
    fn forget_snapshot(&self, container_id: &str) {
        let (layers, is_last) = {
            let mut state = self.state();
            let Some(mut snapshot) = state.snapshots.remove(container_id) else {
                return;
            };
            snapshot.layers.append(&mut snapshot.volumes);
            state.release(&snapshot.layers, Instant::now());
            let is_unused = |layer| {
                state
                    .layers
                    .get(layer)
                    .is_some_and(|layer| layer.holds == 0)
            };
            let is_last = snapshot.layers.iter().any(is_unused);
            (snapshot.layers, is_last)
        };
        // Usually the image still exists, and the caller need not wait for the disk.
        if is_last {
            let one_at_a_time = self.disk();
            let unused = self.state().take_unused(&layers);
            let trash = self.set_layers_aside(&unused);
            drop(one_at_a_time);
            discard(trash);
        }
    }
}

/// The host's ID of a container's ID. An unmapped one becomes the overflow ID: its number may
/// belong to a user on the host or in another container.
pub(crate) fn mapped(id: u32, mappings: &[IdMapping]) -> u32 {
    mappings
        .iter()
        .find_map(|mapping| {
            let offset = id.checked_sub(mapping.container_id)?;
            (offset < mapping.size).then(|| mapping.host_id.checked_add(offset))?
        })
        .unwrap_or(NOBODY)
}

/// Not flushed: no container survives a power loss, and a crash of this process leaves it intact.
fn write_layers(file: &Path, layers: &[Digest]) -> io::Result<()> {
    let mut text = String::new();
    for layer in layers {
        text.push_str(&layer.to_string());
        text.push('\n');
    }
    text.push_str(END);
    fs::write(file, text)
}

/// The layers below a root file system, from the bottom to the top; `None` if the list is
/// incomplete.
pub(super) fn read_layers(directory: &Path) -> Option<Vec<Digest>> {
    read_list(&directory.join(LAYERS))
}

/// The layers of the images that a container mounts; `None` if it mounts none, or the list is
/// incomplete.
pub(super) fn read_volumes(directory: &Path) -> Option<Vec<Digest>> {
    read_list(&directory.join(VOLUMES))
}

fn read_list(file: &Path) -> Option<Vec<Digest>> {
    let text = fs::read_to_string(file).ok()?;
    let lines = text.strip_suffix(END)?.lines();
    lines.map(|line| line.parse().ok()).collect()
}

fn check_id(container_id: &str) -> Result<(), StoreError> {
    let is_allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-');
    let is_name = !container_id.is_empty()
        && container_id.len() <= 128
        && !container_id.starts_with('.')
        && container_id.bytes().all(is_allowed);
    if is_name {
        Ok(())
    } else {
        Err(StoreError::ContainerId(container_id.to_owned()))
    }
}
