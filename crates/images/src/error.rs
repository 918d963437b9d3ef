//! Errors of images.

use std::{fmt, io, path::PathBuf, sync::Arc};

use crate::{manifest::ManifestError, unpack::UnpackError};

/// Why a pull failed. Cheap to clone: all callers that share a pull get the same error.
#[derive(Debug, Clone)]
pub struct PullError(Arc<PullFailure>);

#[derive(Debug)]
struct PullFailure {
    kind: PullErrorKind,
    /// The failed operation, and its object.
    message: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// The category of an error, for callers of a pull.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PullErrorKind {
    /// The name or the credentials are invalid. Retrying does not help.
    InvalidArgument,
    /// The registry has no such image, or none for this platform.
    NotFound,
    /// The registry requires authentication.
    Unauthenticated,
    /// The registry denies access to this user.
    PermissionDenied,
    /// The registry limits the rate of requests.
    TooManyRequests,
    /// The registry can't be reached, fails, or the connection broke.
    Unavailable,
    /// The response is corrupt, malicious or unsupported.
    Refused,
    /// The disk of images is full.
    NoSpace,
    /// The pull was canceled: its callers dropped it, or the store closes.
    Canceled,
    /// A failure of this machine, usually of its disk.
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

    /// The same error, with the image that it concerns.
    pub(crate) fn of(self, image: &crate::Reference) -> Self {
        let kind = self.kind();
        Self::because(kind, format!("cannot pull {image}"), self)
    }

    /// The category of the error.
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
        Self::because(kind, "cannot store the image", error)
    }
}

impl From<ManifestError> for PullError {
    fn from(error: ManifestError) -> Self {
        Self::because(PullErrorKind::Refused, "cannot use the image", error)
    }
}

impl From<UnpackError> for PullError {
    fn from(error: UnpackError) -> Self {
        let kind = match &error {
            UnpackError::NoSpace(_) => PullErrorKind::NoSpace,
            UnpackError::Disk { .. } => PullErrorKind::Internal,
            _ => PullErrorKind::Refused,
        };
        Self::because(kind, "cannot unpack a layer", error)
    }
}

/// Why the store can't be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process uses it.
    #[error(
        "the image store {} is in use by another process; stop that process first",
        .0.display()
    )]
    InUse(PathBuf),
    /// The disk fails.
    #[error("cannot open the image store: cannot {step} {}", path.display())]
    Disk {
        /// The failed operation.
        step: &'static str,
        /// Its path.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// A name in the settings is not an image name.
    #[error("invalid image name {name:?} in the settings of images")]
    Pinned {
        /// The name.
        name: String,
        /// The reason.
        source: crate::reference::ReferenceError,
    },
}

/// Why a local image or root file system could not be used or removed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No such image.
    #[error("image {0:?} not found on this node; pull it first")]
    NoImage(String),
    /// No such root file system.
    #[error("root file system of container {0:?} not found")]
    NoRootfs(String),
    /// It already exists.
    #[error("root file system of container {0:?} already exists")]
    RootfsExists(String),
    /// The container's identifier can't be a directory's name.
    #[error("invalid container ID {0:?}: use letters, digits, _ . and -")]
    ContainerId(String),
    /// The disk fails.
    #[error("cannot {step} {}", path.display())]
    Disk {
        /// The failed operation.
        step: &'static str,
        /// Its path.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// A volume that the image declares can't be created.
    #[error("cannot create the volume {} of the image", path.display())]
    Volume {
        /// The path of the volume in the image.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// A file of a root file system can't be read.
    #[error("cannot read /{} of the image", path.display())]
    ImageFile {
        /// Its path in the root file system.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// A file of a root file system is too long.
    #[error("/{} of the image has more than {limit} bytes", path.display())]
    LongFile {
        /// Its path in the root file system.
        path: PathBuf,
        /// Maximum size that is read.
        limit: u64,
    },
    /// A record can't be written.
    #[error("cannot store the image")]
    Save(#[from] rubelet_store::SaveError),
    /// A record can't be removed.
    #[error("cannot remove the image")]
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
        /// The error.
        source: io::Error,
    },
    /// It has another format.
    #[error(
        "{} is neither an OCI layout nor a docker archive: {why}",
        path.display()
    )]
    Form {
        /// The file or directory.
        path: PathBuf,
        /// The missing file or the reason.
        why: String,
    },
    /// An image in it is corrupt, malicious or not for this machine.
    #[error("cannot load the image {image} of {}", path.display())]
    Image {
        /// The file or directory.
        path: PathBuf,
        /// The image in it.
        image: String,
        /// The error.
        source: PullError,
    },
}
