//! Garbage collection of images: by disk usage, and by age.
//!
//! The kubelet checks the disk every five minutes. This checks it every ten seconds, which needs no
//! call to the runtime, and lists images only every five minutes or when the disk is full. An image
//! that a pod of this node names counts as used before its container is created, so that it is not
//! removed between the pull and the creation.

mod in_use;

use std::{
    future::pending,
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use rubelet_base::ErrorChain;
use rubelet_cri::{CriResult, ImageService, RuntimeService, image_directory, v1};
use rubelet_host::usage::Usage;
pub use rubelet_node_plan::image_collection::ImageCollectionPolicy;
use rubelet_node_plan::image_collection::{ImageHistory, ListedImage, UnusedImage};
use rubelet_node_state::{
    events::{EventType, Recorder, Subject},
    metrics::NodeMetrics,
    pod_board::PodBoard,
};
use tokio::{
    sync::{mpsc, oneshot},
    task::spawn_blocking,
    time::{Instant, sleep, timeout},
};
use tracing::{debug, info, warn};

use self::in_use::{ImageNames, sandbox_image};
use crate::PodSources;

/// Time between two checks of the disk.
const LOOK: Duration = Duration::from_secs(10);
/// Time between two lists of images, and between two attempts on a disk that stays full (kubelet:
/// `ImageGCPeriod`).
const PERIOD: Duration = Duration::from_secs(5 * 60);
/// Longest delay of the first attempt by pod sources that cannot be read.
const SOURCES: Duration = Duration::from_secs(10 * 60);

/// Reads the usage of the file system of a path; may block.
pub type DiskUsage = Arc<dyn Fn(&Path) -> io::Result<Usage> + Send + Sync>;

/// Settings of image garbage collection.
#[derive(Clone)]
pub struct ImageCollectionSettings {
    /// The thresholds and ages.
    pub policy: ImageCollectionPolicy,
    /// Reads the disk usage.
    pub disk: DiskUsage,
}

/// Has the task of image garbage collection remove all unused images. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ImageReclaimer(mpsc::Sender<oneshot::Sender<()>>);

impl ImageReclaimer {
    /// A reclaimer, and the requests for the task.
    pub(crate) fn new() -> (Self, mpsc::Receiver<oneshot::Sender<()>>) {
        let (sender, receiver) = mpsc::channel(1);
        (Self(sender), receiver)
    }

    /// Removes all images that nothing uses and that have the minimum age (kubelet:
    /// `DeleteUnusedImages`). Returns when it is done, or if the agent stops.
    pub(crate) async fn remove_unused(&self) {
        let (done, wait) = oneshot::channel();
        if self.0.send(done).await.is_ok() {
            // An error means that the agent stops.
            let _ = wait.await;
        }
    }
}

/// The task of image garbage collection.
pub(crate) struct ImageCollection {
    pub(crate) settings: ImageCollectionSettings,
    pub(crate) runtime: Arc<dyn RuntimeService>,
    pub(crate) images: Arc<dyn ImageService>,
    pub(crate) pods: Arc<PodBoard>,
    pub(crate) sources: PodSources,
    pub(crate) recorder: Recorder,
    pub(crate) metrics: Arc<NodeMetrics>,
    pub(crate) node_name: Arc<str>,
    /// Requests of eviction.
    pub(crate) requests: mpsc::Receiver<oneshot::Sender<()>>,
}

/// The state that is kept between two checks.
struct ImageCollectionState {
    started: Instant,
    history: ImageHistory,
    /// Directory of the images; `None` until the runtime has reported it.
    directory: Option<PathBuf>,
    /// Time of the next list of images, whatever the disk usage.
    list_at: Instant,
    /// Earliest next attempt while the disk stays full.
    retry_at: Instant,
    /// Attempts that failed in a row.
    failures: u32,
}

/// The reason why an attempt did not free enough.
enum CollectionError {
    /// A call failed.
    Failed(String),
    /// The unused images are too small.
    NotEnough { wanted: u64, freed: u64 },
}

impl ImageCollection {
    /// Checks, removes, and waits, for ever. A policy that is off leaves only requests of eviction.
    pub(crate) async fn run(mut self) {
        self.wait_for_sources().await;
        let now = Instant::now();
        let mut state = ImageCollectionState {
            started: now,
            history: ImageHistory::default(),
            directory: None,
            list_at: now,
            retry_at: now,
            failures: 0,
        };
        let is_off = self.settings.policy.is_off();
        loop {
            let pause = async {
                if is_off {
                    pending::<()>().await;
                }
                sleep(LOOK).await;
            };
            if !is_off {
                self.look(&mut state).await;
            }
            // Cancel safety: a request stays in the channel until it is received.
            tokio::select! {
                () = pause => {}
                Some(done) = self.requests.recv() => {
                    self.remove_unused(&mut state).await;
                    // An error means that eviction does not wait any more: the agent stops.
                    let _ = done.send(());
                }
            }
        }
    }

    /// Waits until the pods of all sources are known: until then their images seem unused.
    async fn wait_for_sources(&mut self) {
        let all = async {
            for source in &mut self.sources {
                // A source that has ended does not change any more.
                let _ = source.wait_for(|pods| pods.sources_ready()).await;
            }
        };
        let _ = timeout(SOURCES, all).await;
    }

    /// Removes all unused images, whatever the policy says about the disk.
    async fn remove_unused(&self, state: &mut ImageCollectionState) {
        match self.attempt(state, Some(u64::MAX)).await {
            // There is never enough.
            Ok(()) | Err(CollectionError::NotEnough { .. }) => {}
            Err(CollectionError::Failed(message)) => warn!(message, "Cannot remove unused images"),
        }
    }

    async fn look(&self, state: &mut ImageCollectionState) {
        let now = Instant::now();
        let may_retry = now >= state.retry_at;
        let due = now >= state.list_at || (may_retry && self.bytes_to_free(state).await.is_some());
        if !due {
            return;
        }
        state.list_at = now + PERIOD;
        let message = match self.attempt(state, None).await {
            Ok(()) => {
                state.failures = 0;
                return;
            }
            Err(CollectionError::Failed(message)) => message,
            Err(CollectionError::NotEnough { wanted, freed }) => {
                let message = format!(
                    "Failed to garbage collect required amount of images. Attempted to free \
                     {wanted} bytes, but only found {freed} bytes eligible to free."
                );
                self.warn("FreeDiskSpaceFailed", &message);
                message
            }
        };
        // Earlier if an image reaches the minimum age sooner.
        let elapsed = state.started.elapsed();
        let of_age = state.history.until_of_age(&self.settings.policy, elapsed);
        state.retry_at = now + of_age.map_or(PERIOD, |of_age| of_age.min(PERIOD));
        state.failures += 1;
        // As in the kubelet: the first failure may be due to the start of the runtime.
        if state.failures > 1 {
            self.warn("ImageGCFailed", &message);
        } else {
            debug!(message, "Image garbage collection failed");
        }
    }

    fn warn(&self, reason: &str, message: &str) {
        let node = Subject::Node((&*self.node_name).into());
        self.recorder
            .record(node, EventType::Warning, reason, message);
    }

    async fn bytes_to_free(&self, state: &ImageCollectionState) -> Option<u64> {
        let directory = state.directory.clone()?;
        let disk = Arc::clone(&self.settings.disk);
        match spawn_blocking(move || disk(&directory)).await {
            Ok(Ok(usage)) => {
                let Usage {
                    available,
                    capacity,
                } = usage;
                self.settings.policy.bytes_to_free(available, capacity)
            }
            Ok(Err(error)) => {
                debug!(%error, "Failed to read the usage of the image file system");
                None
            }
            // The agent stops.
            Err(_) => None,
        }
    }

    /// Lists images, and removes unused ones: those of `bytes`, or as the policy requires.
    async fn attempt(
        &self,
        state: &mut ImageCollectionState,
        bytes: Option<u64>,
    ) -> Result<(), CollectionError> {
        let failed = |what: &str, error| {
            CollectionError::Failed(format!("failed to {what}: {}", ErrorChain(&error)))
        };
        let images = self.images.list_images(v1::ListImagesRequest::default());
        let images = images.await.map_err(|error| failed("list images", error))?;
        // Listed after the images: a container that is created in between counts as a user of its
        // image.
        let containers = self
            .runtime
            .list_containers(v1::ListContainersRequest::default());
        let containers = containers
            .await
            .map_err(|error| failed("list containers", error))?;
        let of_containers = ImageNames::of_containers(&containers.containers);
        let of_pods = self.names_in_pods();
        let listed: Vec<ListedImage> = images
            .images
            .iter()
            .map(|image| ListedImage {
                id: image.id.clone(),
                bytes: image.size,
                in_use: of_containers.include(image) || of_pods.include(image),
                pinned: image.pinned,
            })
            .collect();
        let now = state.started.elapsed();
        let unused = state.history.observe(&listed, &self.settings.policy, now);
        if state.directory.is_none() {
            let info = self.images.image_fs_info(v1::ImageFsInfoRequest {}).await;
            state.directory = info
                .map(image_directory)
                .map_err(|error| failed("get the image file system from the runtime", error))?;
        }
        let wanted = match bytes {
            Some(bytes) => Some(bytes),
            None => self.bytes_to_free(state).await,
        };
        self.remove(&images.images, unused, wanted).await
    }

    /// Removes images that are too old, and further ones in their order until enough is free.
    async fn remove(
        &self,
        images: &[v1::Image],
        unused: Vec<UnusedImage>,
        wanted: Option<u64>,
    ) -> Result<(), CollectionError> {
        let missing = wanted.unwrap_or_default();
        if missing == 0 && !unused.iter().any(|image| image.too_old) {
            return Ok(());
        }
        let sandboxes = sandbox_image(&*self.runtime).await;
        let (mut freed, mut error) = (0u64, None);
        let (old, others): (Vec<_>, Vec<_>) = unused.into_iter().partition(|image| image.too_old);
        for unused in old.into_iter().chain(others) {
            if !unused.too_old && freed >= missing {
                break;
            }
            let Some(image) = images.iter().find(|image| image.id == unused.id) else {
                continue;
            };
            // Removals take time, in which pods may have been added.
            if sandboxes.include(image) || self.names_in_pods().include(image) {
                continue;
            }
            let reason = if unused.too_old { "age" } else { "space" };
            match self.remove_one(image, reason).await {
                Ok(()) => freed = freed.saturating_add(unused.bytes),
                Err(failed) => {
                    let text = format!(
                        "failed to remove image {}: {}",
                        image.id,
                        ErrorChain(&failed)
                    );
                    warn!("{text}");
                    error = Some(text);
                }
            }
        }
        match error {
            Some(error) => Err(CollectionError::Failed(error)),
            None if freed < missing => Err(CollectionError::NotEnough {
                wanted: missing,
                freed,
            }),
            None => Ok(()),
        }
    }

    async fn remove_one(&self, image: &v1::Image, reason: &str) -> CriResult<()> {
        let request = v1::RemoveImageRequest {
            image: Some(v1::ImageSpec {
                image: image.id.clone(),
                ..Default::default()
            }),
        };
        self.images.remove_image(request).await?;
        info!(
            image = image.id,
            names = ?image.repo_tags,
            bytes = image.size,
            reason,
            "Removed unused image"
        );
        self.metrics.images.collected(reason);
        Ok(())
    }

    /// The images that pods name: desired ones, and ones that still terminate.
    fn names_in_pods(&self) -> ImageNames {
        let mut names = ImageNames::default();
        for source in &self.sources {
            for pod in source.borrow().pods.values() {
                names.add_pod(pod);
            }
        }
        for (_, _, entry) in self.pods.list() {
            names.add_pod(&entry.pod);
        }
        names
    }
}
