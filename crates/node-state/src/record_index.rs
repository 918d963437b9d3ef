//! The index of pods with a record in a directory. For a pod without a record, the loop that admits
//! it needs no disk access and no blocking thread.

use std::{collections::HashSet, io, path::Path};

use parking_lot::Mutex;
use rubelet_base::PodUid;
use tracing::warn;

/// The pods with a record.
#[derive(Debug)]
pub struct RecordIndex {
    /// `None` if the directory could not be read: each pod may have a record.
    uids: Mutex<Option<HashSet<PodUid>>>,
}

impl RecordIndex {
    /// Reads the file names of a directory. From then on only this process may change it.
    #[must_use]
    pub fn of(directory: &Path) -> Self {
        let uids = read(directory).map_or_else(
            |error| {
                warn!(directory = %directory.display(), %error, "Cannot read a record directory, looking up each pod in it");
                None
            },
            Some,
        );
        Self {
            uids: Mutex::new(uids),
        }
    }

    /// True if a pod may have a record.
    #[must_use]
    pub fn may_have(&self, uid: &PodUid) -> bool {
        self.uids
            .lock()
            .as_ref()
            .is_none_or(|all| all.contains(uid))
    }

    /// Notes that a pod has a record from now on.
    pub fn insert(&self, uid: &PodUid) {
        if let Some(all) = self.uids.lock().as_mut()
            && !all.contains(uid)
        {
            all.insert(uid.clone());
        }
    }

    /// Notes that a pod no longer has a record.
    pub fn remove(&self, uid: &PodUid) {
        if let Some(all) = self.uids.lock().as_mut() {
            all.remove(uid);
        }
    }
}

fn read(directory: &Path) -> io::Result<HashSet<PodUid>> {
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(HashSet::new()),
        Err(error) => return Err(error),
    };
    let mut found = HashSet::new();
    for entry in entries {
        let name = entry?.file_name();
        let uid = name.to_str().and_then(|name| name.strip_suffix(".json"));
        found.extend(uid.map(PodUid::from));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_without_a_record_is_known_to_have_none() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("one.json"), "").unwrap();
        std::fs::write(dir.path().join(".two.json.tmp"), "").unwrap();
        let index = RecordIndex::of(dir.path());
        let has = |uid: &str| index.may_have(&PodUid::from(uid));
        assert!(has("one") && !has("two"));
        index.insert(&PodUid::from("two"));
        index.remove(&PodUid::from("one"));
        assert!(!has("one") && has("two"));
    }

    #[test]
    fn in_a_directory_that_cannot_be_read_each_pod_may_have_one() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(RecordIndex::of(&file).may_have(&PodUid::from("one")));
        let missing = RecordIndex::of(&dir.path().join("missing"));
        assert!(!missing.may_have(&PodUid::from("one")));
    }
}
