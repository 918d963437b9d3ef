//! Image pulls. `pod-plan` decides about the pull policy, this module makes the calls. The order of
//! decisions is that of `EnsureImageExists` in `pkg/kubelet/images` of Kubernetes 1.36.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use rubelet_api::{
    container::{Container, PullPolicy},
    image_ref,
    pod::Pod,
    volume::VolumeSource,
};
use rubelet_cri::{CriError, ImageService, v1};
use rubelet_node_state::{
    events::{EventType, Recorder},
    keyring::PullLogin,
    metrics::NodeMetrics,
    objects::{ObjectSource, ServiceAccounts},
    start_failure::StartFailure,
};
use rubelet_pod_plan::{
    cri_config::ImageUser,
    image::{
        self, ERR_IMAGE_NEVER_PULL, ERR_IMAGE_PULL, IMAGE_INSPECT_ERROR, INVALID_IMAGE_NAME,
        PullDecision,
    },
    image_access::PullCredentials,
};
use tokio::{
    sync::{OnceCell, Semaphore},
    task::spawn_blocking,
    time::Instant,
};

use crate::{
    image_access::{ImageAccess, PodCredentials},
    node_logins::NodeLogins,
    pull_rate::{PullError, PullRate},
};
use rubelet_base::{ErrorChain, duration::format_go, event_reason};

/// Maximum number of concurrent image pulls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PullParallelism {
    /// `serializeImagePulls` and `maxParallelImagePulls`.
    AtMost(usize),
    /// No limit.
    Unlimited,
}

/// Ensures that images are present. Shared by all pods.
pub struct ImagePuller {
    images: Arc<dyn ImageService>,
    permits: Option<Semaphore>,
    rate: PullRate,
    recorder: Recorder,
    objects: Arc<dyn ObjectSource>,
    logins: NodeLogins,
    access: ImageAccess,
    metrics: Arc<NodeMetrics>,
}

/// The logins of a pod for an image; looked up once, on demand.
type Logins = OnceCell<Vec<PullLogin>>;

/// A request for an image that a container runs or mounts.
struct ImageRequest<'a> {
    /// Name of the container.
    name: &'a str,
    image: &'a str,
    pull_policy: PullPolicy,
}

/// What was found out about an image that a container needs; `None`: nothing.
#[derive(Default)]
struct FoundImage {
    is_present: Option<bool>,
    needs_pull: Option<bool>,
}

/// A present image.
#[derive(Debug, Clone)]
pub struct PresentImage {
    /// The runtime's identifier.
    pub id: String,
    /// The user of its configuration.
    pub user: ImageUser,
    /// Its size in bytes, as the runtime reports it.
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
        access: ImageAccess,
        metrics: Arc<NodeMetrics>,
    ) -> Self {
        let permits = match parallelism {
            PullParallelism::AtMost(count) => Some(Semaphore::new(count.max(1))),
            PullParallelism::Unlimited => None,
        };
        Self {
            images,
            permits,
            rate: PullRate::unlimited(),
            recorder,
            objects,
            logins,
            access,
            metrics,
        }
    }

    /// Refuses pulls beyond this rate.
    #[must_use]
    pub fn with_rate(self, rate: PullRate) -> Self {
        Self { rate, ..self }
    }

    /// Ensures the image of a container, pulling it if the policy requires it. Dropping the future
    /// abandons the pull.
    ///
    /// # Errors
    /// The kubelet's waiting reason and message.
    pub async fn ensure(
        &self,
        pod: &Arc<Pod>,
        container: &Container,
    ) -> Result<PresentImage, StartFailure> {
        let request = ImageRequest {
            name: &container.name,
            image: &container.image,
            pull_policy: container.pull_policy,
        };
        self.ensure_image(pod, &request).await
    }

    /// The image of a container if it is present, the pod may use it and no pull is needed. Never
    /// pulls, and raises no event except that the image is present.
    ///
    /// # Errors
    /// The kubelet's waiting reason and message.
    pub async fn present(
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
        let Some(present) = present.filter(|_| decision == PullDecision::UsePresent) else {
            return Ok(None);
        };
        let logins = Logins::new();
        let image = (&*container.image, &*reference);
        if !self.may_use(pod, image, &present, &logins).await {
            return Ok(None);
        }
        self.report_present(pod, &container.name, &container.image);
        Ok(Some(present))
    }

    /// True if the pod may use a present image, by recorded credentials or by its own. `image` is
    /// its name in the pod, with the default tag added.
    async fn may_use(
        &self,
        pod: &Arc<Pod>,
        (image, reference): (&str, &str),
        present: &PresentImage,
        logins: &Logins,
    ) -> bool {
        let shown = async {
            let logins = self.logins_for(pod, reference, logins).await;
            PodCredentials::of(logins.iter().map(|login| &login.source))
        };
        let found = (image, &*present.id);
        self.access.may_use(&*self.images, found, shown).await
    }

    async fn logins_for<'a>(
        &self,
        pod: &Arc<Pod>,
        reference: &str,
        logins: &'a Logins,
    ) -> &'a [PullLogin] {
        let look_up = async {
            let (mut found, notes) = self.objects.pull_credentials(pod, reference).await;
            found.extend(self.node_logins(pod, reference).await);
            for (reason, message) in notes {
                let kind = EventType::Warning;
                self.recorder.pod(pod, None, kind, reason, &message);
            }
            found
        };
        logins.get_or_init(|| look_up).await
    }

    fn report_present(&self, pod: &Pod, container: &str, image: &str) {
        let accessible = match self.access.is_checked() {
            true => " and can be accessed by the pod",
            false => "",
        };
        let message = format!("Container image {image:?} already present on machine{accessible}");
        let (container, kind) = (Some(container), EventType::Normal);
        self.recorder
            .pod(pod, container, kind, event_reason::PULLED, &message);
    }

    /// Ensures the image volumes of a container: the runtime's image identifiers, by volume name.
    ///
    /// # Errors
    /// The kubelet's waiting reason and message.
    pub async fn ensure_volumes(
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
            let request = ImageRequest {
                name: &container.name,
                image: reference,
                pull_policy: *pull_policy,
            };
            let present = self.ensure_image(pod, &request).await?;
            images.insert(mount.volume.clone(), present.id);
        }
        Ok(images)
    }

    /// Ensures an image, pulling it if the policy requires it. Dropping the future abandons the
    /// pull.
    async fn ensure_image(
        &self,
        pod: &Arc<Pod>,
        container: &ImageRequest<'_>,
    ) -> Result<PresentImage, StartFailure> {
        let mut found = FoundImage::default();
        let ensured = self.find_or_pull(pod, container, &mut found).await;
        let metrics = &self.metrics.images;
        metrics.requested(container.pull_policy, found.is_present, found.needs_pull);
        ensured
    }

    /// See [`Self::ensure_image`]; tells what was found out on the way.
    async fn find_or_pull(
        &self,
        pod: &Arc<Pod>,
        container: &ImageRequest<'_>,
        found: &mut FoundImage,
    ) -> Result<PresentImage, StartFailure> {
        let reference = image_ref::with_default_tag(container.image).map_err(|error| {
            let message = format!(
                "Failed to apply default image tag {:?}: {}",
                container.image,
                ErrorChain(&error)
            );
            self.warn(pod, container, event_reason::INSPECT_FAILED, &message);
            StartFailure::new(INVALID_IMAGE_NAME, message)
        })?;
        let present = self.status(pod, container, &reference).await?;
        // With the policy Always it does not matter, and upstream does not look.
        let matters = container.pull_policy != PullPolicy::Always;
        found.is_present = matters.then_some(present.is_some());
        let logins = Logins::new();
        let decision = image::pull_decision(container.pull_policy, present.is_some());
        if let (PullDecision::UsePresent, Some(present)) = (decision, present) {
            let image = (container.image, &*reference);
            if self.may_use(pod, image, &present, &logins).await {
                found.needs_pull = Some(false);
                self.report_present(pod, container.name, container.image);
                return Ok(present);
            }
            found.needs_pull = Some(true);
        }
        // Do not reveal that an image is present to a pod that may not use it.
        if container.pull_policy == PullPolicy::Never {
            let message = format!(
                "Container image {:?} is not present with pull policy of Never",
                container.image
            );
            self.warn(pod, container, ERR_IMAGE_NEVER_PULL, &message);
            return Err(StartFailure::new(ERR_IMAGE_NEVER_PULL, message));
        }
        found.needs_pull = Some(true);
        self.pull_and_record(pod, container, &reference, &logins)
            .await
    }

    /// Pulls an image and inspects it; writes the intent before and the record after the pull.
    async fn pull_and_record(
        &self,
        pod: &Arc<Pod>,
        container: &ImageRequest<'_>,
        reference: &str,
        logins: &Logins,
    ) -> Result<PresentImage, StartFailure> {
        let intent = self.access.intend(container.image).await;
        let intent = intent.map_err(|error| {
            let message = format!(
                "Failed to record image pull intent for container image {:?}: {}",
                container.image,
                ErrorChain(&error)
            );
            self.warn(pod, container, event_reason::FAILED, &message);
            StartFailure::new(ERR_IMAGE_PULL, message)
        })?;
        let logins = self.logins_for(pod, reference, logins).await;
        let pulling = self.metrics.start_latency.pulling(&pod.uid);
        let began = Instant::now();
        let (took, used) = match self.pull(pod, container, reference, logins).await {
            Ok(pulled) => pulled,
            Err(failure) => {
                intent.failed().await;
                return Err(failure);
            }
        };
        let whole = began.elapsed();
        drop(pulling);
        let present = self.status(pod, container, reference).await?;
        let present = present.ok_or_else(|| {
            StartFailure::new(
                IMAGE_INSPECT_ERROR,
                format!("image {reference:?} is not present after a successful pull"),
            )
        })?;
        self.metrics.images.pulled(present.size, whole);
        intent.pulled(&*self.images, &present.id, used).await;
        let message = format!(
            "Successfully pulled image {:?} in {took}. Image size: {} bytes.",
            container.image, present.size
        );
        let name = Some(container.name);
        self.recorder
            .pod(pod, name, EventType::Normal, event_reason::PULLED, &message);
        Ok(present)
    }

    async fn status(
        &self,
        pod: &Pod,
        container: &ImageRequest<'_>,
        reference: &str,
    ) -> Result<Option<PresentImage>, StartFailure> {
        self.look(reference).await.map_err(|error| {
            let message = format!(
                "Failed to inspect image {:?}: {}",
                container.image,
                ErrorChain(&error)
            );
            self.warn(pod, container, event_reason::INSPECT_FAILED, &message);
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

    /// Pulls an image; returns the duration and the login that succeeded.
    async fn pull(
        &self,
        pod: &Arc<Pod>,
        container: &ImageRequest<'_>,
        reference: &str,
        logins: &[PullLogin],
    ) -> Result<(String, PullCredentials), StartFailure> {
        let image = container.image;
        let queued = Instant::now();
        let message = format!("Pulling image {image:?}");
        self.recorder.pod(
            pod,
            Some(container.name),
            EventType::Normal,
            event_reason::PULLING,
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
        match self.pull_with(request, logins).await {
            Ok(used) => {
                let took = format!(
                    "{} ({} including waiting)",
                    millis(began.elapsed()),
                    millis(queued.elapsed())
                );
                Ok((took, used))
            }
            Err(errors) => {
                let named = match &*errors {
                    [error] => image::named_pull_failure(image, error.message()),
                    _ => None,
                };
                let (reason, message) = named.unwrap_or_else(|| {
                    let chains = errors.iter().map(|error| ErrorChain(error).to_string());
                    let message = format!("failed to pull image {image:?}: {}", joined(chains));
                    (ERR_IMAGE_PULL, message)
                });
                let told = joined(errors.iter().map(ToString::to_string));
                let event = format!("Failed to pull image {image:?}: {told}");
                self.warn(pod, container, event_reason::FAILED, &event);
                Err(StartFailure::new(reason, message))
            }
        }
    }

    /// The node's logins for an image, from files and plugins.
    async fn node_logins(&self, pod: &Pod, reference: &str) -> Vec<PullLogin> {
        let (logins, image) = (self.logins.clone(), reference.to_owned());
        let read = spawn_blocking(move || logins.read().lookup(&image));
        // Only when the agent stops, and the pull with it.
        let found = read.await.unwrap_or_default().into_iter();
        let mut found: Vec<_> = found.map(PullLogin::of_node).collect();
        let accounts: &dyn ServiceAccounts = &*self.objects;
        found.extend(self.logins.of_plugins(reference, pod, accounts).await);
        found
    }

    /// Tries one login after the other, or an anonymous pull without any. Returns the one that
    /// succeeded.
    async fn pull_with(
        &self,
        request: v1::PullImageRequest,
        logins: &[PullLogin],
    ) -> Result<PullCredentials, Vec<PullError>> {
        let nothing = [PullLogin::default()];
        let attempts = if logins.is_empty() { &nothing } else { logins };
        let mut errors = Vec::new();
        for login in attempts {
            let request = v1::PullImageRequest {
                auth: (!logins.is_empty()).then(|| login.auth.clone()),
                ..request.clone()
            };
            if !self.rate.take(Instant::now()) {
                errors.push(PullError::RateExceeded);
                continue;
            }
            match self.images.pull_image(request).await {
                Ok(_) => return Ok(login.source.credentials()),
                Err(error) => errors.push(error.into()),
            }
        }
        Err(errors)
    }

    fn warn(&self, pod: &Pod, container: &ImageRequest<'_>, reason: &str, message: &str) {
        self.recorder.pod(
            pod,
            Some(container.name),
            EventType::Warning,
            reason,
            message,
        );
    }
}

/// A single error as it is; several ones as upstream's list, each once.
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
