//! Image pulls: the policy is decided in `pod-plan`, the order and the calls are here.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use rubelet_api::{
    container::{Container, PullPolicy},
    image_ref,
    pod::Pod,
    volume::VolumeSource,
};
use rubelet_cri::{CriError, ImageService, v1};
use rubelet_pod_plan::{
    cri_config::ImageUser,
    image::{
        self, ERR_IMAGE_NEVER_PULL, ERR_IMAGE_PULL, IMAGE_INSPECT_ERROR, INVALID_IMAGE_NAME,
        PullDecision,
    },
};
use tokio::{sync::Semaphore, task::spawn_blocking, time::Instant};

use crate::{
    events::{EventType, Recorder},
    keyring::NodeLogins,
    objects::ObjectSource,
    pod_task::StartFailure,
};
use rubelet_base::{ErrorChain, duration::format_go};

/// How many images are pulled at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PullParallelism {
    /// `serializeImagePulls` and `maxParallelImagePulls`.
    AtMost(usize),
    /// No limit.
    Unlimited,
}

/// Makes sure that images are there. Shared by all pods.
pub struct ImagePuller {
    images: Arc<dyn ImageService>,
    permits: Option<Semaphore>,
    recorder: Recorder,
    objects: Arc<dyn ObjectSource>,
    logins: NodeLogins,
}

/// An image that a container runs or mounts.
struct Wanted<'a> {
    /// Name of the container.
    name: &'a str,
    image: &'a str,
    pull_policy: PullPolicy,
}

/// An image that is there.
#[derive(Debug, Clone)]
pub struct PresentImage {
    /// The runtime's identifier.
    pub id: String,
    /// The user it asks for.
    pub user: ImageUser,
    /// Bytes that the runtime counts for it.
    pub size: u64,
}

impl ImagePuller {
    /// A puller for one image service.
    #[must_use]
    pub fn new(
        images: Arc<dyn ImageService>,
        parallelism: PullParallelism,
        recorder: Recorder,
        objects: Arc<dyn ObjectSource>,
        logins: NodeLogins,
    ) -> Self {
        let permits = match parallelism {
            PullParallelism::AtMost(count) => Some(Semaphore::new(count.max(1))),
            PullParallelism::Unlimited => None,
        };
        Self {
            images,
            permits,
            recorder,
            objects,
            logins,
        }
    }

    /// The image of a container, see [`Self::ensure_image`].
    pub(crate) async fn ensure(
        &self,
        pod: &Arc<Pod>,
        container: &Container,
    ) -> Result<PresentImage, StartFailure> {
        let wanted = Wanted {
            name: &container.name,
            image: &container.image,
            pull_policy: container.pull_policy,
        };
        self.ensure_image(pod, &wanted).await
    }

    /// The image of a container if it is there and need not be asked for: nothing is pulled, and no
    /// more is told than that it is there.
    pub(crate) async fn present(
        &self,
        pod: &Arc<Pod>,
        container: &Container,
    ) -> Result<Option<PresentImage>, StartFailure> {
        let reference = image_ref::with_default_tag(&container.image)
            .map_err(|error| StartFailure::new(INVALID_IMAGE_NAME, error.to_string()))?;
        let present = self
            .look(&reference)
            .await
            .map_err(|error| StartFailure::new(IMAGE_INSPECT_ERROR, error.to_string()))?;
        let decision = image::pull_decision(container.pull_policy, present.is_some());
        let usable = present.filter(|_| decision == PullDecision::UsePresent);
        if usable.is_some() {
            self.tell_present(pod, &container.name, &container.image);
        }
        Ok(usable)
    }

    fn tell_present(&self, pod: &Pod, container: &str, image: &str) {
        let message = format!("Container image {image:?} already present on machine");
        let (container, kind) = (Some(container), EventType::Normal);
        self.recorder.pod(pod, container, kind, "Pulled", &message);
    }

    /// The images that a container mounts: the runtime's identifier of each, by name of the volume.
    pub(crate) async fn ensure_volumes(
        &self,
        pod: &Arc<Pod>,
        container: &Container,
    ) -> Result<BTreeMap<Box<str>, String>, StartFailure> {
        let mut images = BTreeMap::new();
        for mount in &container.mounts {
            let volume = pod.spec.volume(&mount.volume);
            let Some(VolumeSource::Image {
                reference,
                pull_policy,
            }) = volume.map(|volume| &volume.source)
            else {
                continue;
            };
            if images.contains_key(&mount.volume) {
                continue;
            }
            let wanted = Wanted {
                name: &container.name,
                image: reference,
                pull_policy: *pull_policy,
            };
            let present = self.ensure_image(pod, &wanted).await?;
            images.insert(mount.volume.clone(), present.id);
        }
        Ok(images)
    }

    /// Looks for an image and pulls it if the policy says so. Dropping the future abandons the
    /// pull.
    async fn ensure_image(
        &self,
        pod: &Arc<Pod>,
        container: &Wanted<'_>,
    ) -> Result<PresentImage, StartFailure> {
        let reference = image_ref::with_default_tag(container.image).map_err(|error| {
            let message = format!(
                "Failed to apply default image tag {:?}: {}",
                container.image,
                ErrorChain(&error)
            );
            self.warn(pod, container, "InspectFailed", &message);
            StartFailure::new(INVALID_IMAGE_NAME, message)
        })?;
        let present = self.status(pod, container, &reference).await?;
        match (
            image::pull_decision(container.pull_policy, present.is_some()),
            present,
        ) {
            (PullDecision::Refuse, _) => {
                let message = format!(
                    "Container image {:?} is not present with pull policy of Never",
                    container.image
                );
                self.warn(pod, container, ERR_IMAGE_NEVER_PULL, &message);
                Err(StartFailure::new(ERR_IMAGE_NEVER_PULL, message))
            }
            (PullDecision::UsePresent, Some(present)) => {
                self.tell_present(pod, container.name, container.image);
                Ok(present)
            }
            (PullDecision::Pull | PullDecision::UsePresent, _) => {
                let took = self.pull(pod, container, &reference).await?;
                let present = self
                    .status(pod, container, &reference)
                    .await?
                    .ok_or_else(|| {
                        StartFailure::new(
                            IMAGE_INSPECT_ERROR,
                            format!("image {reference:?} is not there although its pull succeeded"),
                        )
                    })?;
                let message = format!(
                    "Successfully pulled image {:?} in {took}. Image size: {} bytes.",
                    container.image, present.size
                );
                let name = Some(container.name);
                self.recorder
                    .pod(pod, name, EventType::Normal, "Pulled", &message);
                Ok(present)
            }
        }
    }

    async fn status(
        &self,
        pod: &Pod,
        container: &Wanted<'_>,
        reference: &str,
    ) -> Result<Option<PresentImage>, StartFailure> {
        self.look(reference).await.map_err(|error| {
            let message = format!(
                "Failed to inspect image {:?}: {}",
                container.image,
                ErrorChain(&error)
            );
            self.warn(pod, container, "InspectFailed", &message);
            StartFailure::new(IMAGE_INSPECT_ERROR, message)
        })
    }

    async fn look(&self, reference: &str) -> Result<Option<PresentImage>, CriError> {
        let request = v1::ImageStatusRequest {
            image: Some(spec(reference)),
            verbose: false,
        };
        let answer = self.images.image_status(request).await?;
        Ok(answer.image.map(|image| PresentImage {
            id: image.id,
            user: ImageUser {
                uid: image.uid.map(|uid| uid.value),
                name: image.username,
            },
            size: image.size,
        }))
    }

    /// Pulls; how long that took.
    async fn pull(
        &self,
        pod: &Arc<Pod>,
        container: &Wanted<'_>,
        reference: &str,
    ) -> Result<String, StartFailure> {
        let image = container.image;
        let (mut credentials, notes) = self.objects.pull_credentials(pod, reference).await;
        credentials.extend(self.node_credentials(reference).await);
        for (reason, message) in notes {
            let kind = EventType::Warning;
            self.recorder.pod(pod, None, kind, reason, &message);
        }
        let queued = Instant::now();
        let message = format!("Pulling image {image:?}");
        self.recorder.pod(
            pod,
            Some(container.name),
            EventType::Normal,
            "Pulling",
            &message,
        );
        let _permit = match &self.permits {
            // The semaphore is never closed.
            Some(permits) => permits.acquire().await.ok(),
            None => None,
        };
        let began = Instant::now();
        let request = v1::PullImageRequest {
            image: Some(spec(reference)),
            auth: None,
            sandbox_config: Some(v1::PodSandboxConfig {
                metadata: Some(v1::PodSandboxMetadata {
                    name: pod.name.name.to_string(),
                    uid: pod.uid.as_str().to_owned(),
                    namespace: pod.name.namespace.to_string(),
                    attempt: 0,
                }),
                ..v1::PodSandboxConfig::default()
            }),
        };
        match self.pull_with(request, credentials).await {
            Ok(()) => Ok(format!(
                "{} ({} including waiting)",
                millis(began.elapsed()),
                millis(queued.elapsed())
            )),
            Err(errors) => {
                let reason = [
                    image::REGISTRY_UNAVAILABLE,
                    image::SIGNATURE_VALIDATION_FAILED,
                ]
                .into_iter()
                .find(|reason| matches!(&*errors, [error] if error.message.starts_with(reason)))
                .unwrap_or(ERR_IMAGE_PULL);
                let chains = errors.iter().map(|error| ErrorChain(error).to_string());
                let message = format!("failed to pull image {image:?}: {}", joined(chains));
                let told = joined(errors.iter().map(ToString::to_string));
                let event = format!("Failed to pull image {image:?}: {told}");
                self.warn(pod, container, "Failed", &event);
                Err(StartFailure::new(reason, message))
            }
        }
    }

    /// Those that all pods of the node may use.
    async fn node_credentials(&self, reference: &str) -> Vec<v1::AuthConfig> {
        let (logins, reference) = (self.logins.clone(), reference.to_owned());
        let read = spawn_blocking(move || logins.read().lookup(&reference));
        // The agent stops, and with it the pull.
        read.await.unwrap_or_default()
    }

    /// Tries one credential after the other; none at all where there is none.
    async fn pull_with(
        &self,
        request: v1::PullImageRequest,
        credentials: Vec<v1::AuthConfig>,
    ) -> Result<(), Vec<CriError>> {
        let mut attempts: Vec<_> = credentials.into_iter().map(Some).collect();
        if attempts.is_empty() {
            attempts.push(None);
        }
        let mut errors = Vec::new();
        for auth in attempts {
            let request = v1::PullImageRequest {
                auth,
                ..request.clone()
            };
            match self.images.pull_image(request).await {
                Ok(_) => return Ok(()),
                Err(error) => errors.push(error),
            }
        }
        Err(errors)
    }

    fn warn(&self, pod: &Pod, container: &Wanted<'_>, reason: &str, message: &str) {
        self.recorder.pod(
            pod,
            Some(container.name),
            EventType::Warning,
            reason,
            message,
        );
    }
}

/// One error as it is; of several each once, as upstream lists them.
fn joined(errors: impl Iterator<Item = String>) -> String {
    let mut distinct: Vec<String> = Vec::new();
    for error in errors {
        if !distinct.contains(&error) {
            distinct.push(error);
        }
    }
    match &*distinct {
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}

fn spec(reference: &str) -> v1::ImageSpec {
    v1::ImageSpec {
        image: reference.to_owned(),
        ..v1::ImageSpec::default()
    }
}

/// Go's notation, cut to whole milliseconds.
fn millis(duration: Duration) -> String {
    format_go(Duration::from_millis(
        u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
    ))
}
