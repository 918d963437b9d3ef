//! What can go wrong with images.

use std::{fmt, io, path::PathBuf, sync::Arc};

use crate::{manifest::ManifestError, unpack::UnpackError};

/// Why an image was not pulled. Cheap to clone: all callers that waited for one pull get the same.
#[derive(Debug, Clone)]
pub struct PullError(Arc<PullFailure>);

#[derive(Debug)]
struct PullFailure {
    kind: PullErrorKind,
    /// What was being done, and where.
    message: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// What a caller of a pull can decide on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PullErrorKind {
    /// The name or the credentials make no sense. Trying again does not help.
    InvalidArgument,
    /// The registry has no such image, or none for this platform.
    NotFound,
    /// The registry wants to know who asks.
    Unauthenticated,
    /// The registry knows who asks, and refuses.
    PermissionDenied,
    /// The registry wants fewer questions.
    TooManyRequests,
    /// The registry can't be reached, fails, or the connection broke.
    Unavailable,
    /// What came is damaged, hostile or of a kind that is not supported.
    Refused,
    /// No space on the disk of images.
    NoSpace,
    /// The pull was given up because nobody waits for it any more, or the store closes.
    Canceled,
    /// This machine fails: its disk, mostly.
    Internal,
}

impl PullError {
    pub(crate) fn new(kind: PullErrorKind, message: impl Into<String>) -> Self {
        Self(Arc::new(PullFailure {
            kind,
            message: message.into(),
            source: None,
        }))
    }

    pub(crate) fn because(
        kind: PullErrorKind,
        message: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self(Arc::new(PullFailure {
            kind,
            message: message.into(),
            source: Some(source.into()),
        }))
    }

    /// The same error, with the image that it is about.
    pub(crate) fn of(self, image: &crate::Reference) -> Self {
        let kind = self.kind();
        Self::because(kind, format!("cannot pull {image}"), self)
    }

    /// What a caller can decide on.
    #[must_use]
    pub fn kind(&self) -> PullErrorKind {
        self.0.kind
    }
}

impl fmt::Display for PullError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for PullError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        let source = self.0.source.as_deref()?;
        Some(source)
    }
}

impl From<StoreError> for PullError {
    fn from(error: StoreError) -> Self {
        let is_full = std::iter::successors(
            Some(&error as &(dyn std::error::Error + 'static)),
            |error| error.source(),
        )
        .filter_map(|error| error.downcast_ref::<io::Error>())
        .any(|error| {
            matches!(
                error.kind(),
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
            )
        });
        let kind = if is_full {
            PullErrorKind::NoSpace
        } else {
            PullErrorKind::Internal
        };
        Self::because(kind, "the image cannot be kept", error)
    }
}

impl From<ManifestError> for PullError {
    fn from(error: ManifestError) -> Self {
        Self::because(PullErrorKind::Refused, "the image cannot be used", error)
    }
}

impl From<UnpackError> for PullError {
    fn from(error: UnpackError) -> Self {
        let kind = match &error {
            UnpackError::NoSpace(_) => PullErrorKind::NoSpace,
            UnpackError::Disk { .. } => PullErrorKind::Internal,
            _ => PullErrorKind::Refused,
        };
        Self::because(kind, "a layer cannot be unpacked", error)
    }
}

/// Why the store can't be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process uses it.
    #[error(
        "the images in {} are in use by another process; ask that one, or stop it first",
        .0.display()
    )]
    InUse(PathBuf),
    /// The disk fails.
    #[error("cannot open the images: cannot {step} {}", path.display())]
    Disk {
        /// What was being done.
        step: &'static str,
        /// With what.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A name in the settings is none.
    #[error("the settings of images name {name:?}, which is no image")]
    Pinned {
        /// The name.
        name: String,
        /// Why it is none.
        source: crate::reference::ReferenceError,
    },
}

/// Why something that is here could not be used or removed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No such image.
    #[error("there is no image {0:?} on this node; pull it first")]
    NoImage(String),
    /// No such root file system.
    #[error("there is no root file system of {0:?}")]
    NoRootfs(String),
    /// There is one already.
    #[error("there is a root file system of {0:?} already")]
    RootfsExists(String),
    /// The container's identifier can't be a folder's name.
    #[error("{0:?} cannot name a container: it must be letters, digits, _ . -")]
    ContainerId(String),
    /// The disk fails.
    #[error("cannot {step} {}", path.display())]
    Disk {
        /// What was being done.
        step: &'static str,
        /// With what.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A volume that the image declares can't be made.
    #[error("cannot make the volume {} of the image", path.display())]
    Volume {
        /// The path of the volume in the image.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file of a root file system can't be read.
    #[error("cannot read /{} of the image", path.display())]
    ImageFile {
        /// Its path in the root file system.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file of a root file system is too long.
    #[error("/{} of the image has more than {limit} bytes", path.display())]
    LongFile {
        /// Its path in the root file system.
        path: PathBuf,
        /// Most bytes that are read.
        limit: u64,
    },
    /// A record can't be written.
    #[error("cannot keep the image")]
    Save(#[from] rubelet_store::SaveError),
    /// A record can't be removed.
    #[error("cannot forget the image")]
    Remove(#[from] rubelet_store::RemoveError),
}

/// Why an archive could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// It can't be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is none.
    #[error(
        "{} is neither an OCI layout nor a docker archive: {why}",
        path.display()
    )]
    Form {
        /// The file or folder.
        path: PathBuf,
        /// What is missing.
        why: String,
    },
    /// An image in it is damaged, hostile or not for this machine.
    #[error("cannot load the image {image} of {}", path.display())]
    Image {
        /// The file or folder.
        path: PathBuf,
        /// Which image in it.
        image: String,
        /// Why.
        source: PullError,
    },
}
