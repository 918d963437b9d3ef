//! The image service: what is on the node, and pulling.

use async_trait::async_trait;

use crate::{Call, CriError, CriResult, v1};

/// The RPCs of `runtime.v1.ImageService` that a kubelet calls (Kubernetes 1.37, api.proto).
///
/// A method an implementor leaves out answers `Unimplemented`, as a runtime does that is older
/// than the RPC. Dropping a returned future abandons the call; its effect may still happen.
#[async_trait]
pub trait ImageService: Send + Sync + 'static {
    /// The images a filter matches, all of them without a filter.
    async fn list_images(
        &self,
        _request: v1::ListImagesRequest,
    ) -> CriResult<v1::ListImagesResponse> {
        Err(CriError::unimplemented(v1::ListImagesRequest::NAME))
    }

    /// Looks one image up. An image that is not there is no error: the response has none.
    async fn image_status(
        &self,
        _request: v1::ImageStatusRequest,
    ) -> CriResult<v1::ImageStatusResponse> {
        Err(CriError::unimplemented(v1::ImageStatusRequest::NAME))
    }

    /// Pulls an image and returns its reference. May take as long as the registry takes.
    async fn pull_image(&self, _request: v1::PullImageRequest) -> CriResult<v1::PullImageResponse> {
        Err(CriError::unimplemented(v1::PullImageRequest::NAME))
    }

    /// Removes an image with all its names. Succeeds for one that is gone.
    async fn remove_image(
        &self,
        _request: v1::RemoveImageRequest,
    ) -> CriResult<v1::RemoveImageResponse> {
        Err(CriError::unimplemented(v1::RemoveImageRequest::NAME))
    }

    /// Space and inodes that images and container layers take.
    async fn image_fs_info(
        &self,
        _request: v1::ImageFsInfoRequest,
    ) -> CriResult<v1::ImageFsInfoResponse> {
        Err(CriError::unimplemented(v1::ImageFsInfoRequest::NAME))
    }
}

/// Annotation of the image in `RemoveImageRequest` by which a runtime of our own takes away only the
/// name that is given, and the image only with its last one. Others do not know it.
pub const ONE_NAME: &str = "rubelet.dev/one-name";

/// Annotation of the image in `PullImageRequest` by which a runtime of our own pulls it for another
/// platform, `os/architecture[/variant]`. Others do not know it.
pub const PLATFORM: &str = "rubelet.dev/platform";

/// What a runtime of our own can do with images beyond the CRI: take them from a file.
#[async_trait]
pub trait ImageLoader: Send + Sync + 'static {
    /// Takes all images of an OCI layout (a folder or a tar archive) or of a docker archive on the
    /// machine of the runtime. Returns their names, or their digests where they have no name.
    async fn load(&self, path: std::path::PathBuf) -> CriResult<Vec<String>>;
}
