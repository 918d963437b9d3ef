//! The kubelet's image pull records: `image_manager/pulling` and `image_manager/pulled` below its
//! root directory, as JSON of `kubelet.config.k8s.io`. Their names are SHA-256 hashes of the image.

use std::{
    fs::{self, DirBuilder, File},
    io::{self, Read as _},
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use aws_lc_rs::digest::{SHA256, digest};
use rubelet_pod_plan::image_access::PulledRecord;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

const PREFIX: &str = "sha256-";
const TEMPORARY: &str = ".tmp";
/// The written version, for kubelets from 1.35 on.
const API_VERSION: &str = "kubelet.config.k8s.io/v1beta1";
/// The version of older kubelets.
const OLD_API_VERSION: &str = "kubelet.config.k8s.io/v1alpha1";
const INTENT: &str = "ImagePullIntent";
const RECORD: &str = "ImagePulledRecord";
/// Maximum size of a file: 100 secrets for each of a few names.
const MAX_BYTES: u64 = 4 << 20;

/// A record file can't be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    /// An I/O error.
    #[error("cannot {step} {}", path.display())]
    Disk {
        step: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// The file is not a valid record.
    #[error("invalid image pull record {}: {why}", path.display())]
    Damaged { path: PathBuf, why: String },
}

impl FileError {
    /// The error while the agent is stopping.
    pub(super) fn stopped(source: io::Error) -> Self {
        Self::Disk {
            step: "wait for",
            path: PathBuf::new(),
            source,
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document<T> {
    kind: String,
    api_version: String,
    #[serde(flatten)]
    content: T,
}

#[derive(Serialize, Deserialize)]
struct Intent {
    image: String,
}

/// The directories of intents and records.
#[derive(Debug, Clone)]
pub(super) struct RecordFiles {
    pulling: PathBuf,
    pulled: PathBuf,
}

impl RecordFiles {
    pub(super) fn below(root: &Path) -> Self {
        let place = root.join("image_manager");
        Self {
            pulling: place.join("pulling"),
            pulled: place.join("pulled"),
        }
    }

    pub(super) fn write_intent(&self, image: &str) -> Result<(), FileError> {
        let intent = Intent {
            image: image.to_owned(),
        };
        write(&self.pulling, image, INTENT, &intent)
    }

    pub(super) fn has_intent(&self, image: &str) -> Result<bool, FileError> {
        let found: Option<Intent> = read(&file(&self.pulling, image), INTENT)?;
        Ok(found.is_some_and(|intent| intent.image == image))
    }

    pub(super) fn remove_intent(&self, image: &str) -> Result<(), FileError> {
        remove(&file(&self.pulling, image))
    }

    /// The images of all readable intents.
    pub(super) fn intents(&self) -> Result<Vec<String>, FileError> {
        let intents: Vec<Intent> = read_all(&self.pulling, INTENT)?;
        Ok(intents.into_iter().map(|intent| intent.image).collect())
    }

    /// The record of an image; `None` if the file contains that of another image.
    pub(super) fn record(&self, image_ref: &str) -> Result<Option<PulledRecord>, FileError> {
        let found: Option<PulledRecord> = read(&file(&self.pulled, image_ref), RECORD)?;
        Ok(found.filter(|record| record.image_ref == image_ref))
    }

    pub(super) fn write_record(&self, record: &PulledRecord) -> Result<(), FileError> {
        write(&self.pulled, &record.image_ref, RECORD, record)
    }

    pub(super) fn remove_record(&self, image_ref: &str) -> Result<(), FileError> {
        remove(&file(&self.pulled, image_ref))
    }

    /// The numbers of intents and records, unreadable ones included; 0 where the directory can't be read.
    pub(super) fn numbers(&self) -> (usize, usize) {
        let number = |directory| files_of(directory).map_or(0, Iterator::count);
        (number(&self.pulling), number(&self.pulled))
    }

    /// All readable records.
    pub(super) fn records(&self) -> Result<Vec<PulledRecord>, FileError> {
        read_all(&self.pulled, RECORD)
    }
}

fn file(directory: &Path, of: &str) -> PathBuf {
    directory.join(format!(
        "{PREFIX}{}",
        hex::encode(digest(&SHA256, of.as_bytes()))
    ))
}

fn disk<'a>(step: &'static str, path: &'a Path) -> impl Fn(io::Error) -> FileError + 'a {
    move |source| FileError::Disk {
        step,
        path: path.to_owned(),
        source,
    }
}

fn read<T: DeserializeOwned>(path: &Path, kind: &str) -> Result<Option<T>, FileError> {
    let opened = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(disk("read", path))?,
    };
    let damaged = |why: String| FileError::Damaged {
        path: path.to_owned(),
        why,
    };
    let mut bytes = Vec::new();
    let mut limited = opened.take(MAX_BYTES + 1);
    limited
        .read_to_end(&mut bytes)
        .map_err(disk("read", path))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(damaged(format!("larger than {MAX_BYTES} bytes")));
    }
    let document: Document<T> =
        serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
    let known = [API_VERSION, OLD_API_VERSION].contains(&&*document.api_version);
    if document.kind != kind || !known {
        let (version, kind) = (document.api_version, document.kind);
        return Err(damaged(format!("unexpected {kind} of {version}")));
    }
    Ok(Some(document.content))
}

/// All valid files; invalid ones are skipped.
fn read_all<T: DeserializeOwned>(directory: &Path, kind: &str) -> Result<Vec<T>, FileError> {
    let paths = match files_of(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        paths => paths.map_err(disk("list", directory))?,
    };
    Ok(paths
        .filter_map(|path| read(&path, kind).ok().flatten())
        .collect())
}

/// The files of a directory that are not only half written.
fn files_of(directory: &Path) -> io::Result<impl Iterator<Item = PathBuf>> {
    let paths = fs::read_dir(directory)?.flatten().map(|entry| entry.path());
    Ok(paths.filter(|path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(PREFIX) && !name.ends_with(TEMPORARY))
    }))
}

fn write<T: Serialize>(
    directory: &Path,
    of: &str,
    kind: &str,
    content: &T,
) -> Result<(), FileError> {
    let path = file(directory, of);
    let document = Document {
        kind: kind.to_owned(),
        api_version: API_VERSION.to_owned(),
        content,
    };
    let bytes = serde_json::to_vec(&document)
        .map_err(|error| disk("encode", &path)(io::Error::other(error)))?;
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(disk("make", directory))?;
    let mut temporary = path.clone().into_os_string();
    temporary.push(TEMPORARY);
    let temporary = PathBuf::from(temporary);
    rubelet_store::replace(&path, &temporary, &bytes)
        .map_err(|error| disk("write", &path)(error.source))
}

fn remove(path: &Path) -> Result<(), FileError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(disk("remove", path)(error)),
        _ => Ok(()),
    }
}
