//! The images that the runtime has, and the file system that they are on. Listed rarely, in a task
//! of its own: a slow runtime delays no other task.

use std::{convert::Infallible, future::pending, path::Path, sync::Arc, time::Duration};

use rubelet_base::ErrorChain;
use rubelet_cri::{ImageService, image_directory, v1};
use rubelet_node_plan::node_status::{
    images::{ImageFact, listed},
    object::ContainerImage,
};
use rubelet_node_state::runtime_state::RuntimeState;
use tokio::{sync::watch, time::sleep};
use tracing::debug;

/// Time between two lists: changes by other clients of the runtime are found then.
const PERIOD: Duration = Duration::from_secs(300);
/// After a change that the agent made itself, this time is waited for more of them.
const SETTLE: Duration = Duration::from_secs(10);

/// The images of the runtime.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuntimeImages {
    /// The images for the status.
    pub images: Arc<[ContainerImage]>,
    /// The file system that stores them.
    pub file_system: Option<Arc<Path>>,
}

/// Lists the images as soon as the runtime is ready, each 5 minutes, and ten seconds after
/// `pulls` changed. `max` is `nodeStatusMaxImages`.
pub async fn follow_images(
    service: Arc<dyn ImageService>,
    mut runtime: watch::Receiver<RuntimeState>,
    mut pulls: watch::Receiver<u64>,
    max: Option<usize>,
    out: watch::Sender<RuntimeImages>,
) -> Infallible {
    loop {
        if runtime.wait_for(RuntimeState::is_ready).await.is_err() {
            // The agent stops.
            return pending().await;
        }
        pulls.mark_unchanged();
        let old = out.borrow().clone();
        let next = look(&*service, max, &old).await;
        out.send_if_modified(|old| {
            let changed = *old != next;
            if changed {
                *old = next;
            }
            changed
        });
        let pulled = async {
            if pulls.changed().await.is_err() {
                pending::<()>().await;
            }
            sleep(SETTLE).await;
        };
        tokio::select! {
            () = sleep(PERIOD) => {}
            () = pulled => {}
        }
    }
}

async fn look(
    service: &dyn ImageService,
    max: Option<usize>,
    old: &RuntimeImages,
) -> RuntimeImages {
    let mut next = old.clone();
    match service.list_images(v1::ListImagesRequest::default()).await {
        Ok(answer) => next.images = listed(facts(answer.images), max).into(),
        Err(error) => debug!(error = %ErrorChain(&error), "Cannot list images"),
    }
    if next.file_system.is_none() {
        match service.image_fs_info(v1::ImageFsInfoRequest {}).await {
            Ok(answer) => {
                next.file_system = image_directory(answer).map(Arc::from);
            }
            Err(error) => {
                debug!(error = %ErrorChain(&error), "Cannot get the image file system from the runtime");
            }
        }
    }
    next
}

fn facts(images: Vec<v1::Image>) -> Vec<ImageFact> {
    let boxed = |names: Vec<String>| names.into_iter().map(Into::into).collect();
    images
        .into_iter()
        .map(|image| ImageFact {
            id: image.id.into(),
            digests: boxed(image.repo_digests),
            tags: boxed(image.repo_tags),
            size: image.size,
        })
        .collect()
}
