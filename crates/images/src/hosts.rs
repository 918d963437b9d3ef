//! The hosts of registries, as the administrator configures them: directories of `hosts.toml` files
//! in containerd's documented format, or of certificates in docker's.
//!
//! Files are read for each pull, so a change needs no restart. Unlike in containerd, an invalid
//! file fails the pulls of its registry instead of being ignored: it could name the only host that
//! may be used.

mod check;
mod file;

pub use check::check;

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use http::HeaderMap;

use crate::{PullError, PullErrorKind};

/// The directory for registries without their own.
const FOR_ALL: &str = "_default";

/// A host that images are pulled from.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct HostSettings {
    /// Its URL; `None` is the image's own registry.
    pub(crate) url: Option<HostUrl>,
    /// The objects that may be requested from it.
    pub(crate) capabilities: Capabilities,
    /// Files of certificate authorities, beside those of the system.
    pub(crate) authorities: Vec<NamedFile>,
    /// The client certificate for it, and its key.
    pub(crate) client: Option<(NamedFile, NamedFile)>,
    /// Its certificate is not verified.
    pub(crate) skip_verify: Option<bool>,
    /// Sent with each request to it.
    pub(crate) headers: HeaderMap,
    /// Connect timeout.
    pub(crate) dial_timeout: Option<Duration>,
}

/// The root of a host's API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HostUrl {
    pub(crate) https: bool,
    /// Host and port.
    pub(crate) authority: String,
    /// Usually `/v2`.
    pub(crate) path: String,
}

/// The objects that may be requested from a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Capabilities {
    /// Blobs and manifests by their digests.
    pub(crate) pull: bool,
    /// Tags.
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

/// A file, and where it is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedFile {
    pub(crate) path: PathBuf,
    /// `FILE:LINE: FIELD`, or empty if it was found by its name.
    pub(crate) named_at: String,
}

/// The hosts of a registry in the order in which they are tried; `None` if the registry is not
/// configured. The first directory that configures it counts. Blocks.
///
/// # Errors
/// A file can't be read, or has an error.
pub(crate) fn of_registry(
    directories: &[PathBuf],
    registry: &str,
) -> Result<Option<Vec<HostSettings>>, PullError> {
    let unusable = |message: String| {
        let message = format!("cannot read the registry hosts of {registry}: {message}");
        PullError::new(PullErrorKind::Internal, message)
    };
    let directory = directory_of(directories, registry)
        .map_err(|(path, error)| unusable(unreadable(&path, &error)))?;
    directory
        .map(|directory| of_directory(&directory).map_err(unusable))
        .transpose()
}

fn unreadable(path: &Path, error: &io::Error) -> String {
    format!("cannot read {}: {error}", path.display())
}

/// The settings in a registry's directory; an error is a sentence.
fn of_directory(directory: &Path) -> Result<Vec<HostSettings>, String> {
    let file = directory.join("hosts.toml");
    let text = match fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(unreadable(&file, &error)),
    };
    if text.is_empty() {
        let found = certificates(directory).map_err(|error| unreadable(directory, &error))?;
        return Ok(vec![found]);
    }
    file::parse(&text, &file).map_err(|error| error.to_string())
}

fn directory_of(
    directories: &[PathBuf],
    registry: &str,
) -> Result<Option<PathBuf>, (PathBuf, io::Error)> {
    for path in directories.iter().flat_map(|root| paths(root, registry)) {
        match path.try_exists() {
            Ok(true) => return Ok(Some(path)),
            Ok(false) => {}
            Err(error) => return Err((path, error)),
        }
    }
    Ok(None)
}

/// Candidate directories of a registry, best first.
fn paths(root: &Path, registry: &str) -> Vec<PathBuf> {
    let with_port = registry.rsplit_once(':');
    let with_port = with_port.map(|(host, port)| format!("{host}_{port}_"));
    let names = with_port.iter().map(String::as_str);
    let names = names.chain([registry, FOR_ALL]);
    names.map(|name| root.join(name)).collect()
}

/// A directory without `hosts.toml` has docker's format: authorities in `*.crt`, a client
/// certificate in `*.cert` with its key in `*.key`.
fn certificates(directory: &Path) -> io::Result<HostSettings> {
    let mut names: Vec<PathBuf> = fs::read_dir(directory)?
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
                let message =
                    "it has several *.cert files, but only one client certificate is supported";
                return Err(io::Error::other(message));
            }
            _ => {}
        }
    }
    Ok(settings)
}

#[cfg(test)]
mod tests;
