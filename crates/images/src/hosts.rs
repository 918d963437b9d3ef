//! Where a registry's images come from, as the administrator says: folders of `hosts.toml` files in
//! the form that containerd documents, or of certificates in docker's.
//!
//! Files are read for each pull, so a change needs no restart. Unlike with containerd, a file with a
//! mistake fails the pulls of its registry rather than being left out: what is left out could be the
//! only host that may be asked.

mod faults;
mod file;

pub use faults::faults;

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use http::HeaderMap;

use crate::{PullError, PullErrorKind};

/// The folder for registries that have none of their own.
const FOR_ALL: &str = "_default";

/// A host that is asked for images.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct HostSettings {
    /// Where it is; `None` is the image's own registry.
    pub(crate) url: Option<HostUrl>,
    /// What it may be asked for.
    pub(crate) capabilities: Capabilities,
    /// Files of certificate authorities, beside those of the system.
    pub(crate) authorities: Vec<NamedFile>,
    /// The certificate that it is shown, and its key.
    pub(crate) client: Option<(NamedFile, NamedFile)>,
    /// Whether any certificate will do.
    pub(crate) skip_verify: Option<bool>,
    /// Sent with each request to it.
    pub(crate) headers: HeaderMap,
    /// How long connecting may take.
    pub(crate) dial_timeout: Option<Duration>,
}

/// The root of a host's API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HostUrl {
    pub(crate) https: bool,
    /// Host and port.
    pub(crate) authority: String,
    /// Mostly `/v2`.
    pub(crate) path: String,
}

/// What a host may be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Capabilities {
    /// Blobs and manifests by their digests.
    pub(crate) pull: bool,
    /// What a tag leads to.
    pub(crate) resolve: bool,
}

impl Default for Capabilities {
    fn default() -> Self {
        Self {
            pull: true,
            resolve: true,
        }
    }
}

/// A file, and who names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedFile {
    pub(crate) path: PathBuf,
    /// `FILE:LINE: FIELD`, or empty where it was found by its name.
    pub(crate) named_at: String,
}

/// The hosts of a registry in the order in which they are to be asked; `None` where nothing is said
/// of it. Of several folders the first one that says something counts. Blocks.
///
/// # Errors
/// A file can't be read, or has a mistake.
pub(crate) fn of_registry(
    folders: &[PathBuf],
    registry: &str,
) -> Result<Option<Vec<HostSettings>>, PullError> {
    let unusable = |message: String| {
        let message = format!("it is unclear where images of {registry} come from: {message}");
        PullError::new(PullErrorKind::Internal, message)
    };
    let folder = folder_of(folders, registry)
        .map_err(|(path, error)| unusable(unreadable(&path, &error)))?;
    folder
        .map(|folder| of_folder(&folder).map_err(unusable))
        .transpose()
}

fn unreadable(path: &Path, error: &io::Error) -> String {
    format!("cannot read {}: {error}", path.display())
}

/// What a registry's folder says; an error is a sentence.
fn of_folder(folder: &Path) -> Result<Vec<HostSettings>, String> {
    let file = folder.join("hosts.toml");
    let text = match fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(unreadable(&file, &error)),
    };
    if text.is_empty() {
        let found = certificates(folder).map_err(|error| unreadable(folder, &error))?;
        return Ok(vec![found]);
    }
    file::parse(&text, &file).map_err(|error| error.to_string())
}

fn folder_of(folders: &[PathBuf], registry: &str) -> Result<Option<PathBuf>, (PathBuf, io::Error)> {
    for path in folders.iter().flat_map(|root| paths(root, registry)) {
        match path.try_exists() {
            Ok(true) => return Ok(Some(path)),
            Ok(false) => {}
            Err(error) => return Err((path, error)),
        }
    }
    Ok(None)
}

/// Where a registry's folder may be, best first.
fn paths(root: &Path, registry: &str) -> Vec<PathBuf> {
    let with_port = registry.rsplit_once(':');
    let with_port = with_port.map(|(host, port)| format!("{host}_{port}_"));
    let names = with_port.iter().map(String::as_str);
    let names = names.chain([registry, FOR_ALL]);
    names.map(|name| root.join(name)).collect()
}

/// A folder without `hosts.toml` is one of docker: authorities in `*.crt`, a certificate to show in
/// `*.cert` with its key in `*.key`.
fn certificates(folder: &Path) -> io::Result<HostSettings> {
    let mut names: Vec<PathBuf> = fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<_>>()?;
    names.sort();
    let found = |path: PathBuf| NamedFile {
        path,
        named_at: String::new(),
    };
    let mut settings = HostSettings::default();
    for path in names {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("crt") => settings.authorities.push(found(path)),
            Some("cert") if settings.client.is_none() => {
                let key = path.with_extension("key");
                let key = if key.exists() { key } else { path.clone() };
                settings.client = Some((found(path), found(key)));
            }
            Some("cert") => {
                let message = "it has several *.cert files, and only one can be shown";
                return Err(io::Error::other(message));
            }
            _ => {}
        }
    }
    Ok(settings)
}

#[cfg(test)]
mod tests;
