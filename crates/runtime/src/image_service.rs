//! The image service: the CRI's messages on the node's image store.

use std::{path::PathBuf, sync::Arc};

use async_trait::async_trait;
use rubelet_cri::{
    Code, CriErrorKind, CriResult, ImageLoader, ImageService, ONE_NAME, PLATFORM,
    v1::{self, FilesystemIdentifier, FilesystemUsage},
};
use rubelet_images::{
    Credentials, DiskUsage, Image, ImageStore, LoadRequest, Platform, PullError, PullErrorKind,
    PullRequest, Reference, credentials::AuthFields,
};

use crate::{
    clock,
    error::{Result, RuntimeError},
    stats::value,
};

/// The image service on a store.
#[derive(Clone)]
pub(crate) struct CriImageService(pub(crate) Arc<ImageStore>);

#[async_trait]
impl ImageService for CriImageService {
    async fn list_images(
        &self,
        request: v1::ListImagesRequest,
    ) -> CriResult<v1::ListImagesResponse> {
        let wanted = request
            .filter
            .and_then(|filter| filter.image)
            .map(|image| image.image)
            .filter(|image| !image.is_empty());
        let images = match wanted {
            Some(image) => self.0.find(&image).into_iter().collect(),
            None => self.0.list(),
        };
        Ok(v1::ListImagesResponse {
            images: images.iter().map(|image| message(image)).collect(),
        })
    }

    async fn image_status(
        &self,
        request: v1::ImageStatusRequest,
    ) -> CriResult<v1::ImageStatusResponse> {
        let image = named(request.image).map_err(RuntimeError::of::<v1::ImageStatusRequest>)?;
        let found = self.0.find(&image);
        let mut info = std::collections::HashMap::new();
        if let Some(found) = found.as_ref().filter(|_| request.verbose) {
            info.insert("info".to_owned(), verbose(found));
        }
        Ok(v1::ImageStatusResponse {
            image: found.map(|image| message(&image)),
            info: info.into_iter().collect(),
        })
    }

    async fn pull_image(&self, request: v1::PullImageRequest) -> CriResult<v1::PullImageResponse> {
        let pulled = self.pull(request).await;
        let image_ref = pulled.map_err(RuntimeError::of::<v1::PullImageRequest>)?;
        Ok(v1::PullImageResponse { image_ref })
    }

    async fn remove_image(
        &self,
        request: v1::RemoveImageRequest,
    ) -> CriResult<v1::RemoveImageResponse> {
        let error = RuntimeError::of::<v1::RemoveImageRequest>;
        let spec = request.image.unwrap_or_default();
        let one_name = spec.annotations.contains_key(ONE_NAME);
        let image = named(Some(spec)).map_err(error)?;
        // A removal that has begun continues when the caller goes away.
        let store = Arc::clone(&self.0);
        let removing = tokio::spawn(async move {
            let removed = match one_name {
                true => store.untag(&image).await,
                false => store.remove(&image).await,
            };
            removed.map_err(|error| {
                RuntimeError::because(format!("cannot remove the image {image}"), &error)
            })
        });
        match removing.await {
            Ok(removed) => removed.map_err(error)?,
            Err(_) => {
                return Err(error(RuntimeError::failed(
                    "the removal of the image panicked; this is a bug",
                )));
            }
        };
        Ok(v1::RemoveImageResponse {})
    }

    async fn image_fs_info(&self, _: v1::ImageFsInfoRequest) -> CriResult<v1::ImageFsInfoResponse> {
        let info = self.0.fs_info();
        let timestamp = clock::now_ns();
        let usage = |usage: DiskUsage| FilesystemUsage {
            timestamp,
            fs_id: Some(FilesystemIdentifier {
                mountpoint: info.mountpoint.to_string_lossy().into_owned(),
            }),
            used_bytes: value(usage.bytes),
            inodes_used: value(usage.inodes),
        };
        Ok(v1::ImageFsInfoResponse {
            image_filesystems: vec![usage(info.images)],
            // The kubelet compares both lists to detect whether images and containers share one
            // disk.
            container_filesystems: vec![usage(info.containers)],
        })
    }
}

#[async_trait]
impl ImageLoader for CriImageService {
    async fn load(&self, path: PathBuf) -> CriResult<Vec<String>> {
        let request = LoadRequest { path, name: None };
        let loaded = self.0.load(request).await.map_err(|error| {
            let text = rubelet_base::ErrorChain(&error).to_string();
            rubelet_cri::CriError::new("LoadImage", CriErrorKind::InvalidArgument, text)
        })?;
        Ok(loaded
            .into_iter()
            .flat_map(|loaded| {
                if loaded.names.is_empty() {
                    vec![loaded.image.id.to_string()]
                } else {
                    loaded.names
                }
            })
            .collect())
    }
}

impl CriImageService {
    async fn pull(&self, request: v1::PullImageRequest) -> Result<String> {
        let platform = request
            .image
            .as_ref()
            .and_then(|image| image.annotations.get(PLATFORM))
            .map(|text| text.parse::<Platform>())
            .transpose()
            .map_err(|error| RuntimeError::invalid(error.to_string()))?;
        let image = named(request.image)?;
        let reference: Reference = image
            .parse()
            .map_err(|error| RuntimeError::invalid(format!("cannot pull {image:?}: {error}")))?;
        let auth = request.auth.unwrap_or_default();
        let fields = AuthFields {
            username: &auth.username,
            password: &auth.password,
            auth: &auth.auth,
            server_address: &auth.server_address,
            identity_token: &auth.identity_token,
            registry_token: &auth.registry_token,
        };
        let auth = Credentials::from_auth(&fields, reference.registry())
            .map_err(|error| RuntimeError::invalid(format!("cannot pull {image:?}: {error}")))?;
        let request = PullRequest {
            image: &image,
            auth,
            // Credentials with a server address are sent to that server only.
            auth_for_mirrors: fields.server_address.is_empty(),
            platform,
        };
        let id = self
            .0
            .pull(request)
            .await
            .map_err(|error| refused(&error))?;
        Ok(id.to_string())
    }
}

/// The image that a request names.
fn named(image: Option<v1::ImageSpec>) -> Result<String> {
    image
        .map(|image| image.image)
        .filter(|image| !image.is_empty())
        .ok_or_else(|| RuntimeError::invalid("the request names no image"))
}

/// The kubelet chooses the reason that users see by the code.
fn refused(error: &PullError) -> RuntimeError {
    let kind = match error.kind() {
        PullErrorKind::InvalidArgument => CriErrorKind::InvalidArgument,
        PullErrorKind::NotFound => CriErrorKind::NotFound,
        PullErrorKind::Unauthenticated => CriErrorKind::Other(Code::Unauthenticated),
        PullErrorKind::PermissionDenied => CriErrorKind::Other(Code::PermissionDenied),
        PullErrorKind::TooManyRequests | PullErrorKind::NoSpace => CriErrorKind::ResourceExhausted,
        // The code `Unavailable` would mean that the runtime itself is unavailable.
        PullErrorKind::Unavailable | PullErrorKind::Refused => CriErrorKind::Other(Code::Unknown),
        PullErrorKind::Canceled => CriErrorKind::Canceled,
        PullErrorKind::Internal => CriErrorKind::Other(Code::Internal),
    };
    RuntimeError::new(kind, rubelet_base::ErrorChain(error).to_string())
}

fn message(image: &Image) -> v1::Image {
    let (uid, username) = user(&image.config.user);
    v1::Image {
        id: image.id.to_string(),
        repo_tags: image.repo_tags.clone(),
        repo_digests: image.repo_digests.clone(),
        size: image.size,
        uid,
        username,
        spec: Some(v1::ImageSpec {
            image: image.id.to_string(),
            ..Default::default()
        }),
        pinned: image.pinned,
    }
}

/// The user of an image, `user[:group]`: a number or a name. Root if the image has none.
fn user(text: &str) -> (Option<v1::Int64Value>, String) {
    let user = text.split(':').next().unwrap_or_default();
    if user.is_empty() {
        return (Some(v1::Int64Value { value: 0 }), String::new());
    }
    match user.parse() {
        Ok(value) => (Some(v1::Int64Value { value }), String::new()),
        Err(_) => (None, user.to_owned()),
    }
}

/// Verbose information for `crictl inspecti`.
fn verbose(image: &Image) -> String {
    let info = serde_json::json!({
        "imageSpec": {
            "architecture": image.platform.architecture,
            "os": image.platform.os,
            "config": &*image.config,
        },
        "layers": image.layers.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "arrivedAt": image.arrived_at,
    });
    info.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_images_user_is_a_number_or_a_name() {
        let number = |value| Some(v1::Int64Value { value });
        assert_eq!(user(""), (number(0), String::new()));
        assert_eq!(user("1000:2000"), (number(1000), String::new()));
        assert_eq!(user("www-data:www"), (None, "www-data".to_owned()));
    }
}
