//! What is at the sources of a container's mounts.
//!
//! Sources are paths, and links in them are followed: they are folders of the agent's own below its root
//! directory, which nobody but root can exchange (a subPath is mounted by the agent, by descriptor, and comes
//! as such a path), or `hostPath`s. Of a `hostPath` the author of the manifest may name any path of the host;
//! who can write to a folder on the way decides what is mounted, before this look or after it, as with every
//! runtime. So there is nothing to win by an exchange between the look and the mount, which both follow the
//! same path, and what is found here decides no right: only the mount's propagation.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use rubelet_cri::v1;
use rubelet_host::mountinfo;
use rubelet_runtime_plan::container_spec::{MountSource, Propagation};

use crate::fault::{Fault, Outcome};

/// Looks at each mount's source, in their order. A source that is missing becomes a folder, as
/// runtimes have always done for `hostPath` volumes without a type. `images` has the layers of each
/// image that is mounted. Blocks.
pub(crate) fn find(
    mounts: &[v1::Mount],
    images: impl IntoIterator<Item = Vec<PathBuf>>,
) -> Outcome<Vec<MountSource>> {
    // The list of all mounts of a machine with many pods is long; few containers need it.
    let spreads = mounts
        .iter()
        .any(|mount| mount.propagation() != v1::MountPropagation::PropagationPrivate);
    let table = if spreads {
        mountinfo::read().map_err(|error| Fault::because("cannot look at the mounts", &error))?
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

fn find_one(mount: &v1::Mount, table: &[mountinfo::MountEntry]) -> Outcome<MountSource> {
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
        Fault::because(what, &error)
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
    fn a_missing_source_becomes_a_folder_and_links_are_followed() {
        let dir = tempfile::Builder::new()
            .prefix("rubelet-t")
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
