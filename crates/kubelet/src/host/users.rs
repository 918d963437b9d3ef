//! The host ID ranges of pods with a user namespace, recorded in each pod's directory in the
//! kubelet's format, so that a later agent, or a kubelet, assigns them to no other pod.

use std::{
    fs, io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use parking_lot::Mutex;
use rubelet_api::{pod::Pod, security::UserRange};
use rubelet_base::{ErrorChain, PodUid, event_reason};
use rubelet_node_plan::{UserRanges, UserSettings};
use rubelet_node_state::host_error::{HostError, failed_sandbox};
use serde::{Deserialize, Serialize};
use tracing::warn;

use super::{HostSettings, LocalHostState, directories, read_optional};

/// Name of the record in a pod's directory.
const RECORD: &str = "userns";

/// The ID ranges of this node, read from disk when the first one is needed.
#[derive(Debug)]
pub(super) struct PodUsers {
    per_pod: u32,
    pods: u32,
    ranges: Mutex<Option<UserRanges>>,
}

/// The file `userns` of a pod.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct UsernsRecord {
    uid_mappings: Vec<UsernsMapping>,
    gid_mappings: Vec<UsernsMapping>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct UsernsMapping {
    host_id: u32,
    container_id: u32,
    length: u32,
}

impl PodUsers {
    pub(super) fn new(settings: &HostSettings) -> Self {
        Self {
            per_pod: settings.user_ids_per_pod,
            pods: settings.max_pods,
            ranges: Mutex::new(None),
        }
    }

    fn settings(&self) -> Result<UserSettings, HostError> {
        let read = |path: &str| {
            let bytes = read_optional(Path::new(path))
                .map_err(|error| failed(&format!("cannot read {path}: {error}")))?;
            Ok(String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned())
        };
        let (uids, gids) = (read("/etc/subuid")?, read("/etc/subgid")?);
        let delegated = UserSettings::delegated(self.per_pod, &uids, &gids)
            .map_err(|why| failed(&why.to_string()))?;
        Ok(delegated.unwrap_or_else(|| UserSettings::standard(self.per_pod, self.pods)))
    }
}

/// The ID range of a pod with `hostUsers: false`, on disk before this returns; `None` for others.
pub(super) fn users(inner: &LocalHostState, pod: &Pod) -> Result<Option<UserRange>, HostError> {
    if pod.spec.host_users {
        return Ok(None);
    }
    // Locked until the range is on disk, so that two pods never get the same one.
    let mut ranges = inner.users.ranges.lock();
    let ranges = match &mut *ranges {
        Some(ranges) => ranges,
        none => none.insert(load(inner)?),
    };
    if let Some(range) = ranges.get(&pod.uid) {
        return Ok(Some(range));
    }
    let path = record_path(inner, &pod.uid)?;
    // `load` could not read it: containers of the pod may run with a range that is not known.
    if path.exists() {
        return Err(failed(&format!(
            "cannot read {}: the pod's user ID range is unknown; delete the pod and create it again",
            path.display()
        )));
    }
    let range = ranges
        .take(&pod.uid)
        .map_err(|error| failed(&error.to_string()))?;
    if let Err(error) = write(&path, range) {
        ranges.release(&pod.uid);
        return Err(failed(&format!("cannot write {}: {error}", path.display())));
    }
    Ok(Some(range))
}

/// Releases the range of a removed pod.
pub(super) fn release(inner: &LocalHostState, uid: &PodUid) {
    if let Some(ranges) = &mut *inner.users.ranges.lock() {
        ranges.release(uid);
    }
}

fn load(inner: &LocalHostState) -> Result<UserRanges, HostError> {
    let mut ranges = UserRanges::new(inner.users.settings()?);
    for uid in directories::pods_on_disk(inner) {
        let Ok(path) = record_path(inner, &uid) else {
            continue;
        };
        match read(&path) {
            Ok(Some(range)) => ranges.adopt(uid, range),
            Ok(None) => {}
            Err(error) => {
                warn!(file = %path.display(), error = %ErrorChain(&error), "Failed to read the user ID range of a pod");
            }
        }
    }
    Ok(ranges)
}

fn record_path(inner: &LocalHostState, uid: &PodUid) -> Result<PathBuf, HostError> {
    Ok(directories::dirs(inner, uid)?.pod().join(RECORD))
}

fn read(path: &Path) -> io::Result<Option<UserRange>> {
    let Some(bytes) = read_optional(path)? else {
        return Ok(None);
    };
    let record: UsernsRecord = serde_json::from_slice(&bytes)?;
    match (&*record.uid_mappings, &*record.gid_mappings) {
        ([one], [other]) if one == other && one.container_id == 0 => Ok(Some(UserRange {
            first: one.host_id,
            length: one.length,
        })),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "expected a single range from 0 that is the same for users and groups",
        )),
    }
}

/// Writes the record atomically: a partial record would lose the range.
fn write(path: &Path, range: UserRange) -> io::Result<()> {
    let mapping = UsernsMapping {
        host_id: range.first,
        container_id: 0,
        length: range.length,
    };
    let record = UsernsRecord {
        uid_mappings: vec![mapping],
        gid_mappings: vec![mapping],
    };
    if let Some(dir) = path.parent() {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o750)
            .create(dir)?;
    }
    let draft = path.with_extension("new");
    rubelet_store::replace_behind(path, &draft, &serde_json::to_vec(&record)?)
        .map_err(|error| error.source)
}

fn failed(message: &str) -> HostError {
    HostError {
        reason: event_reason::FAILED_SANDBOX,
        message: failed_sandbox(message),
    }
}
