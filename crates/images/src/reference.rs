//! Names of images, normalized as in docker and containerd.
//!
//! `[registry[:port]/]repository[:tag][@digest]`. Without a registry it is the default one, whose
//! repositories without a user are below `library/`. Without tag and digest the tag is `latest`.

use std::{fmt, str::FromStr};

use crate::digest::{Digest, DigestError};

/// The registry of names without one, and the host of its API.
const DEFAULT_REGISTRY: &str = "docker.io";
const DEFAULT_REGISTRY_API: &str = "registry-1.docker.io";
const DEFAULT_REGISTRY_OLD: &str = "index.docker.io";
/// The prefix of repositories of the default registry without a user.
const DEFAULT_USER: &str = "library";
const DEFAULT_TAG: &str = "latest";

/// The longest name without tag and digest that registries accept.
const MAX_NAME: usize = 255;
const MAX_TAG: usize = 128;

/// The name of an image. Has a tag, a digest, or both; the digest takes precedence.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    registry: String,
    repository: String,
    tag: Option<String>,
    digest: Option<Digest>,
}

/// Why a text is not the name of an image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// It is empty.
    #[error("the image name is empty")]
    Empty,
    /// It is longer than registries accept.
    #[error("the image name is longer than {MAX_NAME} characters")]
    Long,
    /// The host part is invalid.
    #[error("{0:?} is not the host of a registry")]
    Registry(String),
    /// The path has characters that are not allowed in repositories.
    #[error(
        "{0:?} is not a repository name; lower-case letters, digits and single . _ - between \
         them are allowed, and / between parts"
    )]
    Repository(String),
    /// The tag is invalid.
    #[error("{0:?} is not a tag; letters, digits, _ . - are allowed, up to {MAX_TAG}")]
    Tag(String),
    /// The digest is invalid.
    #[error(transparent)]
    Digest(#[from] DigestError),
    /// It has the form of an image ID.
    #[error("{0:?} has the form of an image ID, not of a name")]
    Identifier(String),
}

impl Reference {
    /// Host and port of the registry, as in the name.
    #[must_use]
    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// Host and port of the registry's API.
    #[must_use]
    pub fn api_host(&self) -> &str {
        if self.registry == DEFAULT_REGISTRY {
            DEFAULT_REGISTRY_API
        } else {
            &self.registry
        }
    }

    /// The repository within the registry, such as `library/busybox`.
    #[must_use]
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// The tag, if there is one.
    #[must_use]
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// The digest, if there is one.
    #[must_use]
    pub fn digest(&self) -> Option<&Digest> {
        self.digest.as_ref()
    }

    /// Registry and repository, such as `registry.test/team/app`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}/{}", self.registry, self.repository)
    }

    /// The name with its tag only, as images are listed.
    #[must_use]
    pub fn tagged(&self) -> Option<String> {
        let tag = self.tag.as_ref()?;
        Some(format!("{}:{tag}", self.name()))
    }

    /// The name with a digest only, as images are listed.
    #[must_use]
    pub fn at(&self, digest: &Digest) -> String {
        format!("{}@{digest}", self.name())
    }
}

/// The canonical name of a registry.
pub(crate) fn canonical_registry(host: &str) -> &str {
    match host {
        DEFAULT_REGISTRY_OLD | DEFAULT_REGISTRY_API | "" => DEFAULT_REGISTRY,
        other => other,
    }
}

impl FromStr for Reference {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        if text.is_empty() {
            return Err(ReferenceError::Empty);
        }
        if text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(ReferenceError::Identifier(text.to_owned()));
        }
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest.parse()?)),
            None => (text, None),
        };
        // A colon after the last slash starts the tag; others belong to the host.
        let path_at = rest.rfind('/').map_or(0, |slash| slash + 1);
        let (name, tag) = match rest[path_at..].split_once(':') {
            Some((last, tag)) => (&rest[..path_at + last.len()], Some(tag)),
            None => (rest, None),
        };
        if let Some(tag) = tag
            && !is_tag(tag)
        {
            return Err(ReferenceError::Tag(tag.chars().take(150).collect()));
        }
        if name.len() > MAX_NAME {
            return Err(ReferenceError::Long);
        }
        let (registry, path) = match name.split_once('/') {
            Some((first, path)) if is_registry_like(first) => (first, path),
            _ => (DEFAULT_REGISTRY, name),
        };
        if !is_host(registry) {
            return Err(ReferenceError::Registry(registry.to_owned()));
        }
        if !is_repository(path) {
            return Err(ReferenceError::Repository(path.to_owned()));
        }
        let registry = canonical_registry(registry);
        let repository = if registry == DEFAULT_REGISTRY && !path.contains('/') {
            format!("{DEFAULT_USER}/{path}")
        } else {
            path.to_owned()
        };
        // The limit is for the full name, with its default parts.
        if registry.len() + 1 + repository.len() > MAX_NAME {
            return Err(ReferenceError::Long);
        }
        let tag = match (tag, &digest) {
            (None, None) => Some(DEFAULT_TAG),
            (tag, _) => tag,
        };
        Ok(Self {
            registry: registry.to_owned(),
            repository,
            tag: tag.map(str::to_owned),
            digest,
        })
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        if let Some(digest) = &self.digest {
            write!(f, "@{digest}")?;
        }
        Ok(())
    }
}

/// Reports whether the first part of a name is a registry, not a user of the default one.
fn is_registry_like(part: &str) -> bool {
    part.contains(['.', ':', '['])
        || part == "localhost"
        || part.bytes().any(|b| b.is_ascii_uppercase())
}

fn is_host(text: &str) -> bool {
    let (host, port) = if text.starts_with('[') {
        let Some((host, rest)) = text.split_once(']') else {
            return false;
        };
        let is_address = host[1..].parse::<std::net::Ipv6Addr>().is_ok();
        if !is_address || !(rest.is_empty() || rest.starts_with(':')) {
            return false;
        }
        (None, rest.strip_prefix(':'))
    } else {
        let (host, port) = match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        };
        (Some(host), port)
    };
    let is_label = |label: &str| {
        let inside = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
        !label.is_empty()
            && label.bytes().all(inside)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    host.is_none_or(|host| host.split('.').all(is_label))
        && port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0))
}

fn is_repository(path: &str) -> bool {
    !path.is_empty() && path.split('/').all(is_part)
}

/// Runs of letters and digits with one separator between them: `.`, `_`, `__` or dashes.
fn is_part(part: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = part.as_bytes();
    let mut at = 0;
    loop {
        let run = bytes[at..].iter().take_while(|b| is_plain(**b)).count();
        if run == 0 {
            return false;
        }
        at += run;
        if at == bytes.len() {
            return true;
        }
        let separator: Vec<u8> = bytes[at..]
            .iter()
            .copied()
            .take_while(|b| !is_plain(*b))
            .collect();
        let is_separator = matches!(separator.as_slice(), b"." | b"_" | b"__")
            || separator.iter().all(|b| *b == b'-');
        if !is_separator {
            return false;
        }
        at += separator.len();
    }
}

fn is_tag(tag: &str) -> bool {
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let mut bytes = tag.bytes();
    bytes.next().is_some_and(word)
        && bytes.all(|b| word(b) || matches!(b, b'.' | b'-'))
        && tag.len() <= MAX_TAG
}

#[cfg(test)]
mod tests;
