//! Resolves the sources of a container's mounts.
//!
//! Sources are paths, and links in them are followed: they are directories of the agent's own below
//! its root directory, which only root can exchange (a subPath is mounted by the agent, by
//! descriptor, and comes as such a path), or `hostPath`s. Of a `hostPath` the author of the
//! manifest may name any path of the host; who can write to a directory on the way decides what is
//! mounted, before this lookup or after it, as with every runtime. So exchanging a directory
//! between this lookup and the mount gains nothing: both follow the same path, and the lookup
//! decides no permission, only the mount's propagation.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use rubelet_cri::v1;
use rubelet_host::mountinfo;
use rubelet_runtime_plan::container_spec::{MountSource, Propagation};

use crate::error::{Result, RuntimeError};

/// Resolves each mount's source, in their order. Creates a missing source as a directory, as all
/// runtimes do for `hostPath` volumes without a type. `images` has the layers of each mounted
/// image. Blocks.
pub(crate) fn find(
    mounts: &[v1::Mount],
    images: impl IntoIterator<Item = Vec<PathBuf>>,
) -> Result<Vec<MountSource>> {
    // Reading the mount table is slow on a machine with many pods, and few containers need it.
    let spreads = mounts
        .iter()
        .any(|mount| mount.propagation() != v1::MountPropagation::PropagationPrivate);
    let table = if spreads {
        mountinfo::read()
            .map_err(|error| RuntimeError::because("cannot read the mount table", &error))?
    } else {
        Vec::new()
    };
    let mut images = images.into_iter();
    mounts
        .iter()
        .map(|mount| match mount.image {
            Some(_) => Ok(MountSource {
                path: "/".into(),
                mount_point: "/".into(),
                propagation: Propagation::Private,
                layers: images.next().unwrap_or_default(),
            }),
            None => find_one(mount, &table),
        })
        .collect()
}

fn find_one(mount: &v1::Mount, table: &[mountinfo::MountEntry]) -> Result<MountSource> {
    let source = Path::new(&mount.host_path);
    let path = match fs::canonicalize(source) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir_all(source).and_then(|()| fs::canonicalize(source))
        }
        found => found,
    };
    let path = path.map_err(|error| {
        let what = format!(
            "cannot mount {} at {}",
            mount.host_path, mount.container_path
        );
        RuntimeError::because(what, &error)
    })?;
    let on = mountinfo::containing(table, &path);
    Ok(MountSource {
        mount_point: on.map_or_else(|| "/".into(), |entry| entry.mount_point.clone()),
        propagation: on.map_or(Propagation::Private, propagation),
        layers: Vec::new(),
        path,
    })
}

fn propagation(entry: &mountinfo::MountEntry) -> Propagation {
    if entry.is_shared() {
        Propagation::Shared
    } else if entry
        .propagation
        .iter()
        .any(|tag| tag.starts_with("master:"))
    {
        Propagation::Slave
    } else {
        Propagation::Private
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_source_becomes_a_directory_and_links_are_followed() {
        let dir = tempfile::Builder::new()
            .prefix("rbt-runtime-")
            .tempdir()
            .unwrap();
        let real = dir.path().join("a/b");
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let mount = |path: &Path| v1::Mount {
            host_path: path.to_string_lossy().into_owned(),
            container_path: "/x".to_owned(),
            ..Default::default()
        };
        let found = find(&[mount(&real), mount(&link)], []).unwrap();
        assert_eq!(found[0].path, real.canonicalize().unwrap());
        assert_eq!(found[1].path, found[0].path);
        fs::write(dir.path().join("file"), "").unwrap();
        let error = find(&[mount(&dir.path().join("file/x"))], []).unwrap_err();
        assert!(error.message.starts_with("cannot mount "), "{error}");
    }
}
