//! What is there on the machine.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use rubelet_base::cgroup::CgroupPath;
use rubelet_host::mountinfo;
use rubelet_oci::Spec;
use rubelet_runtime_plan::record::ExitRecord;
use rubelet_shim::exit_record;

use super::{Known, shims};
use crate::{
    container::end::from_shim,
    engine::Engine,
    fault::{Fault, Outcome},
    identifier::is_identifier,
};

/// Folders of sandboxes with the bundles of containers in them.
pub(super) type Folders = BTreeMap<String, Vec<String>>;

/// What the machine shows beside the folders.
pub(super) struct Seen {
    pub(super) exits: BTreeMap<String, ExitRecord>,
    /// Cgroups of containers without a record, by container.
    pub(super) orphans: BTreeMap<String, CgroupPath>,
    pub(super) mounts: Vec<PathBuf>,
    pub(super) shim_cgroups: Vec<String>,
}

pub(super) async fn folders(engine: &Arc<Engine>) -> Outcome<Folders> {
    let layout = engine.layout.clone();
    engine
        .blocking(move || {
            let mut folders = Folders::new();
            for id in identifiers(&layout.sandboxes())? {
                let bundles = identifiers(&layout.sandbox(&id).containers())?;
                folders.insert(id, bundles);
            }
            Ok(folders)
        })
        .await
}

pub(super) async fn look(engine: &Arc<Engine>, known: &Known, folders: &Folders) -> Outcome<Seen> {
    let (look, folders) = (Arc::clone(engine), folders.clone());
    let recorded: BTreeSet<String> = known.containers.keys().cloned().collect();
    engine
        .blocking(move || {
            let mut exits = BTreeMap::new();
            let mut orphans = BTreeMap::new();
            for (sandbox, bundles) in &folders {
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
                            tracing::warn!(container = id, %error, "an exit record can't be read");
                        }
                    }
                }
            }
            let mounts = mountinfo::read()
                .map_err(|error| Fault::because("cannot look at the mounts", &error))?;
            let run = fs::canonicalize(look.layout.run())
                .map_err(|error| Fault::because("cannot look at the run folder", &error))?;
            let cgroups = shims::cgroups(&look.cgroups, &look.settings)?;
            Ok(Seen {
                exits,
                orphans,
                // As the plan names them: below the folder as it was given.
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

/// The cgroup that a bundle was made for, if it is a folder: scopes go with their processes.
fn cgroup_of(bundle: &Path) -> Option<CgroupPath> {
    let text = fs::read(bundle.join("config.json")).ok()?;
    let spec: Spec = serde_json::from_slice(&text).ok()?;
    let path = spec.linux.cgroups_path.filter(|path| !path.contains(':'))?;
    CgroupPath::parse(&path).ok()
}

/// The identifiers among the names in a folder.
fn identifiers(dir: &Path) -> Outcome<Vec<String>> {
    let failed =
        |error: io::Error| Fault::because(format!("cannot read {}", dir.display()), &error);
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
