//! Observes what earlier runs left on the machine.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use rubelet_cgroup_plan::CgroupPath;
use rubelet_host::mountinfo;
use rubelet_oci::Spec;
use rubelet_runtime_plan::record::ExitRecord;
use rubelet_shim::exit_record;

use super::{RecordedState, shims};
use crate::{
    container::exit::from_shim,
    engine::Engine,
    error::{Result, RuntimeError},
    identifier::is_identifier,
};

/// Directories of sandboxes with the bundles of containers in them.
pub(super) type Directories = BTreeMap<String, Vec<String>>;

/// The observed state, without the directories.
pub(super) struct ObservedState {
    pub(super) exits: BTreeMap<String, ExitRecord>,
    /// Cgroups of containers without a record, by container.
    pub(super) orphans: BTreeMap<String, CgroupPath>,
    pub(super) mounts: Vec<PathBuf>,
    pub(super) shim_cgroups: Vec<String>,
}

pub(super) async fn directories(engine: &Arc<Engine>) -> Result<Directories> {
    let layout = engine.layout.clone();
    engine
        .blocking(move || {
            let mut directories = Directories::new();
            for id in identifiers(&layout.sandboxes())? {
                let bundles = identifiers(&layout.sandbox(&id).containers())?;
                directories.insert(id, bundles);
            }
            Ok(directories)
        })
        .await
}

pub(super) async fn observe(
    engine: &Arc<Engine>,
    known: &RecordedState,
    directories: &Directories,
) -> Result<ObservedState> {
    let (look, directories) = (Arc::clone(engine), directories.clone());
    let recorded: BTreeSet<String> = known.containers.keys().cloned().collect();
    engine
        .blocking(move || {
            let mut exits = BTreeMap::new();
            let mut orphans = BTreeMap::new();
            for (sandbox, bundles) in &directories {
                for id in bundles {
                    let bundle = look.layout.sandbox(sandbox).bundle(id);
                    if !recorded.contains(id) {
                        orphans.extend(cgroup_of(&bundle).map(|cgroup| (id.clone(), cgroup)));
                    }
                    match exit_record::read(&bundle) {
                        Ok(Some(exit)) => {
                            exits.insert(id.clone(), from_shim(&exit));
                        }
                        Ok(None) => {}
                        Err(error) => {
                            tracing::warn!(container = id, %error, "Failed to read an exit record");
                        }
                    }
                }
            }
            let mounts = mountinfo::read()
                .map_err(|error| RuntimeError::because("cannot read the mount table", &error))?;
            let run = fs::canonicalize(look.layout.run())
                .map_err(|error| RuntimeError::because("cannot read the run directory", &error))?;
            let cgroups = shims::cgroups(&look.cgroups, &look.settings)?;
            Ok(ObservedState {
                exits,
                orphans,
                // Relative to the configured directory, as the plan names them.
                mounts: mounts
                    .into_iter()
                    .filter_map(|entry| {
                        let below = entry.mount_point.strip_prefix(&run).ok()?;
                        (!below.as_os_str().is_empty()).then(|| look.layout.run().join(below))
                    })
                    .collect(),
                shim_cgroups: cgroups,
            })
        })
        .await
}

/// The cgroup of a bundle, if it is a directory: systemd removes scopes with their last process.
fn cgroup_of(bundle: &Path) -> Option<CgroupPath> {
    let text = fs::read(bundle.join("config.json")).ok()?;
    let spec: Spec = serde_json::from_slice(&text).ok()?;
    let path = spec.linux.cgroups_path.filter(|path| !path.contains(':'))?;
    CgroupPath::parse(&path).ok()
}

/// The identifiers among the names in a directory.
fn identifiers(dir: &Path) -> Result<Vec<String>> {
    let failed =
        |error: io::Error| RuntimeError::because(format!("cannot read {}", dir.display()), &error);
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let name = entry.map_err(failed)?.file_name();
        found.extend(
            name.to_str()
                .filter(|name| is_identifier(name))
                .map(str::to_owned),
        );
    }
    Ok(found)
}
