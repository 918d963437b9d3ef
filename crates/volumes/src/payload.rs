//! The content of volumes that are built from config maps, secrets, tokens and the pod itself.
//! Pure.

use std::{collections::BTreeMap, fmt, sync::Arc};

use rubelet_api::{
    container::{Container, ObjectKind},
    downward::{self, Allocatable, NoSuchContainer},
    objects::PodObjects,
    pod::Pod,
    volume::{DownwardFile, FileVolume, KeyToPath, ObjectProjection, Projection},
};

/// One file.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct File {
    pub(crate) data: Arc<[u8]>,
    pub(crate) mode: u32,
    /// Its owner, if not root.
    pub(crate) owner: Option<u32>,
}

/// Files by path below the volume.
pub(crate) type Payload = BTreeMap<Box<str>, File>;

/// The files of a volume can't be computed; with upstream's messages.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PayloadError {
    /// A config map or secret that is not optional does not exist.
    #[error("{} \"{name}\" not found", match kind {
        ObjectKind::ConfigMap => "configmap",
        ObjectKind::Secret => "secret",
    })]
    NotFound {
        /// The kind of the object.
        kind: ObjectKind,
        /// Its name.
        name: Box<str>,
    },
    /// An item names a key that is missing.
    #[error("{}: {key}", match kind {
        ObjectKind::ConfigMap => "configmap references non-existent config key",
        ObjectKind::Secret => "references non-existent secret key",
    })]
    NoSuchKey {
        /// The kind of the object.
        kind: ObjectKind,
        /// The key.
        key: Box<str>,
    },
    /// A file of the downward API names a container that the pod does not have.
    #[error(transparent)]
    NoSuchContainer(#[from] NoSuchContainer),
    /// The token is not available.
    #[error("failed to fetch token: no token for {path} is available yet")]
    NoToken {
        /// Its path in the volume.
        path: Box<str>,
    },
    /// A path that leads out of the volume, or uses names reserved for the writer.
    #[error("invalid path: {rule}: {path}")]
    Path {
        /// The path.
        path: Box<str>,
        /// The violated rule.
        rule: &'static str,
    },
    /// Several sources of a projected volume failed.
    #[error("[{}]", List(.0))]
    Several(Vec<Self>),
}

struct List<'a>(&'a [PayloadError]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{error}")?;
        }
        Ok(())
    }
}

/// The content of a volume.
pub(crate) fn of(
    pod: &Pod,
    name: &str,
    volume: &FileVolume,
    objects: &PodObjects,
    allocatable: Allocatable,
) -> Result<Payload, PayloadError> {
    let mut builder = PayloadBuilder {
        pod,
        objects,
        allocatable,
        files: Payload::new(),
    };
    match volume {
        FileVolume::ConfigMap(object) => {
            let (name, items) = (&object.name, &object.items);
            let mode = object.default_mode;
            builder.object(ObjectKind::ConfigMap, name, items, object.optional, mode)?;
        }
        FileVolume::Secret(object) => {
            let (name, items) = (&object.name, &object.items);
            let mode = object.default_mode;
            builder.object(ObjectKind::Secret, name, items, object.optional, mode)?;
        }
        FileVolume::DownwardApi {
            items,
            default_mode,
        } => builder.downward(items, *default_mode)?,
        FileVolume::Projected {
            sources,
            default_mode,
        } => builder.projected(name, sources, *default_mode)?,
    }
    Ok(builder.files)
}

struct PayloadBuilder<'a> {
    pod: &'a Pod,
    objects: &'a PodObjects,
    allocatable: Allocatable,
    files: Payload,
}

impl PayloadBuilder<'_> {
    fn projected(
        &mut self,
        volume: &str,
        sources: &[Projection],
        mode: u32,
    ) -> Result<(), PayloadError> {
        let mut failed = Vec::new();
        for source in sources {
            let done = match source {
                Projection::ConfigMap(object) => {
                    self.projection(ObjectKind::ConfigMap, object, mode)
                }
                Projection::Secret(object) => self.projection(ObjectKind::Secret, object, mode),
                Projection::DownwardApi { items } => self.downward(items, mode),
                Projection::ServiceAccountToken { path, .. } => self.token(volume, path, mode),
            };
            failed.extend(done.err());
        }
        match failed.len() {
            0 => Ok(()),
            1 => Err(failed.remove(0)),
            _ => Err(PayloadError::Several(failed)),
        }
    }

    fn projection(
        &mut self,
        kind: ObjectKind,
        object: &ObjectProjection,
        mode: u32,
    ) -> Result<(), PayloadError> {
        self.object(kind, &object.name, &object.items, object.optional, mode)
    }

    fn object(
        &mut self,
        kind: ObjectKind,
        name: &str,
        items: &[KeyToPath],
        optional: bool,
        default_mode: u32,
    ) -> Result<(), PayloadError> {
        let objects = self.objects;
        let maps = match kind {
            ObjectKind::ConfigMap => objects
                .config_maps
                .get(name)
                .map(|object| vec![&object.data, &object.binary_data]),
            ObjectKind::Secret => objects.secrets.get(name).map(|object| vec![&object.data]),
        };
        let maps = match maps {
            Some(maps) => maps,
            None if optional => Vec::new(),
            None => {
                let name = name.into();
                return Err(PayloadError::NotFound { kind, name });
            }
        };
        if items.is_empty() {
            for (key, data) in maps.into_iter().flatten() {
                self.add(key, data, default_mode, None)?;
            }
            return Ok(());
        }
        for item in items {
            match maps.iter().find_map(|map| map.get(&item.key)) {
                Some(data) => {
                    self.add(&item.path, data, item.mode.unwrap_or(default_mode), None)?;
                }
                None if optional => {}
                None => {
                    let key = item.key.clone();
                    return Err(PayloadError::NoSuchKey { kind, key });
                }
            }
        }
        Ok(())
    }

    fn downward(&mut self, items: &[DownwardFile], default_mode: u32) -> Result<(), PayloadError> {
        for item in items {
            let text = downward::content(self.pod, &item.content, self.allocatable)?;
            let data = Arc::from(text.into_bytes());
            self.add(&item.path, &data, item.mode.unwrap_or(default_mode), None)?;
        }
        Ok(())
    }

    /// A token is only readable for the pod's processes: for their user or their group, if they
    /// have a common one.
    fn token(&mut self, volume: &str, path: &str, default_mode: u32) -> Result<(), PayloadError> {
        let key = (volume.into(), path.into());
        let Some(token) = self.objects.tokens.get(&key) else {
            let path = path.into();
            return Err(PayloadError::NoToken { path });
        };
        let owner = common_user(self.pod);
        let mode = match (owner, self.pod.spec.security.fs_group) {
            (None, None) => default_mode,
            _ => 0o600,
        };
        let data = Arc::from(token.0.as_bytes());
        self.add(path, &data, mode, owner)
    }

    fn add(
        &mut self,
        path: &str,
        data: &Arc<[u8]>,
        mode: u32,
        owner: Option<u32>,
    ) -> Result<(), PayloadError> {
        let file = File {
            data: Arc::clone(data),
            mode,
            owner,
        };
        self.files.insert(clean(path)?, file);
        Ok(())
    }
}

/// The user of all containers, if all specify the same.
fn common_user(pod: &Pod) -> Option<u32> {
    let ephemeral = pod.spec.ephemeral_containers.iter();
    let all = pod
        .spec
        .all_containers()
        .chain(ephemeral.map(|one| &one.container));
    let of_pod = pod.spec.security.shared.run_as_user;
    let mut users = all.map(|one: &Container| one.security.shared.run_as_user.or(of_pod));
    let first = users.next()??;
    let same = users.all(|user| user == Some(first));
    u32::try_from(first).ok().filter(|_| same)
}

/// The path without empty and `.` components.
fn clean(path: &str) -> Result<Box<str>, PayloadError> {
    let refused = |rule| PayloadError::Path {
        path: path.into(),
        rule,
    };
    if path.is_empty() {
        return Err(refused("must not be empty"));
    }
    if path.starts_with('/') {
        return Err(refused("must be relative path"));
    }
    if path.len() > 4096 {
        return Err(refused("must be less than or equal to 4096 characters"));
    }
    let parts: Vec<&str> = path
        .split('/')
        .filter(|part| !matches!(*part, "" | "."))
        .collect();
    if parts.contains(&"..") {
        return Err(refused("must not contain '..'"));
    }
    if parts.iter().any(|part| part.len() > 255) {
        let rule = "filenames must be less than or equal to 255 characters";
        return Err(refused(rule));
    }
    match parts.first() {
        None => Err(refused("must not be empty")),
        Some(first) if first.starts_with("..") => Err(refused("must not start with '..'")),
        Some(_) => Ok(parts.join("/").into()),
    }
}

#[cfg(test)]
mod tests;
