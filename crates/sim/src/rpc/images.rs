//! The image service.

use async_trait::async_trait;
use rubelet_cri::{CriResult, ImageService, v1};

use crate::{
    Sim,
    state::{RuntimeError, SimState},
    wait::Wait,
};

#[async_trait]
impl ImageService for Sim {
    async fn list_images(
        &self,
        request: v1::ListImagesRequest,
    ) -> CriResult<v1::ListImagesResponse> {
        self.call_immediate(self.subject_of(&request), request, SimState::list_images)
            .await
    }

    async fn image_status(
        &self,
        request: v1::ImageStatusRequest,
    ) -> CriResult<v1::ImageStatusResponse> {
        self.call_immediate(self.subject_of(&request), request, SimState::image_status)
            .await
    }

    async fn pull_image(&self, request: v1::PullImageRequest) -> CriResult<v1::PullImageResponse> {
        let effect = |request: v1::PullImageRequest| async move {
            let name = request.image.unwrap_or_default().image;
            let (pull, now) = self.look(|state| {
                let pull = state.pull(&name)?;
                Ok((pull, state.clock.now()))
            })?;
            self.wait(|state| match pull.takes.map(|takes| now + takes) {
                Some(at) if state.clock.now() >= at => Wait::Done(()),
                Some(at) => Wait::Until(at),
                None => Wait::ForChange,
            })
            .await;
            match pull.result {
                Ok(()) => Ok(self.with(|state| state.pulled(&name))),
                Err((kind, message)) => Err(RuntimeError { kind, message }),
            }
        };
        self.call(self.subject_of(&request), request, effect).await
    }

    async fn remove_image(
        &self,
        request: v1::RemoveImageRequest,
    ) -> CriResult<v1::RemoveImageResponse> {
        self.call_immediate(self.subject_of(&request), request, SimState::remove_image)
            .await
    }

    async fn image_fs_info(
        &self,
        request: v1::ImageFsInfoRequest,
    ) -> CriResult<v1::ImageFsInfoResponse> {
        self.call_immediate(self.subject_of(&request), request, SimState::image_fs_info)
            .await
    }
}
