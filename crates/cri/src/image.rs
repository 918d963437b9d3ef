//! The image service: listing and pulling images.

use std::path::PathBuf;

use async_trait::async_trait;

use crate::{Call, CriError, CriResult, v1};

/// The RPCs of `runtime.v1.ImageService` that a kubelet calls (Kubernetes 1.37, api.proto).
///
/// Methods that an implementor omits return `Unimplemented`, like a runtime that is older than the
/// RPC. Dropping a returned future abandons the call; its effect may still happen.
#[async_trait]
pub trait ImageService: Send + Sync + 'static {
    /// The images that match the filter, or all.
    async fn list_images(
        &self,
        _request: v1::ListImagesRequest,
    ) -> CriResult<v1::ListImagesResponse> {
        Err(CriError::unimplemented(v1::ListImagesRequest::NAME))
    }

    /// Returns one image. A missing image is not an error: the response has none.
    async fn image_status(
        &self,
        _request: v1::ImageStatusRequest,
    ) -> CriResult<v1::ImageStatusResponse> {
        Err(CriError::unimplemented(v1::ImageStatusRequest::NAME))
    }

    /// Pulls an image and returns its reference. Has no timeout.
    async fn pull_image(&self, _request: v1::PullImageRequest) -> CriResult<v1::PullImageResponse> {
        Err(CriError::unimplemented(v1::PullImageRequest::NAME))
    }

    /// Removes an image with all its names. Succeeds if it does not exist.
    async fn remove_image(
        &self,
        _request: v1::RemoveImageRequest,
    ) -> CriResult<v1::RemoveImageResponse> {
        Err(CriError::unimplemented(v1::RemoveImageRequest::NAME))
    }

    /// Space and inodes used by images and container layers.
    async fn image_fs_info(
        &self,
        _request: v1::ImageFsInfoRequest,
    ) -> CriResult<v1::ImageFsInfoResponse> {
        Err(CriError::unimplemented(v1::ImageFsInfoRequest::NAME))
    }
}

/// The directory of the runtime's images, by its answer to `ImageFsInfo`; `None` if it names none.
#[must_use]
pub fn image_directory(answer: v1::ImageFsInfoResponse) -> Option<PathBuf> {
    let first = answer.image_filesystems.into_iter().next()?;
    let path = first.fs_id?.mountpoint;
    (!path.is_empty()).then(|| path.into())
}

/// Annotation of the image in `RemoveImageRequest` with which the embedded runtime removes only the
/// given name, and the image only with its last one. Other runtimes ignore it.
pub const ONE_NAME: &str = "rubelet.dev/one-name";

/// Annotation of the image in `PullImageRequest` with which the embedded runtime pulls for another
/// platform, `os/architecture[/variant]`. Other runtimes ignore it.
pub const PLATFORM: &str = "rubelet.dev/platform";

/// The embedded runtime's image operation beyond the CRI: loading from a file.
#[async_trait]
pub trait ImageLoader: Send + Sync + 'static {
    /// Loads all images of an OCI layout (a directory or a tar archive) or of a docker archive on
    /// the runtime's machine. Returns their names, or their digests if they have no name.
    async fn load(&self, path: PathBuf) -> CriResult<Vec<String>>;
}
