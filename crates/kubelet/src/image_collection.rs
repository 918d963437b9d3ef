//! Removes unused images: by the use of their disk, and by age.
//!
//! The kubelet looks at the disk every five minutes. This looks every ten seconds, which costs no call
//! to the runtime, and lists images only every five minutes or when the disk is full. An image that a
//! pod of this node asks for counts as used before its container is created, so that it is not removed
//! between the two.

mod in_use;

use std::{
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
    task::spawn_blocking,
    time::{Instant, sleep, timeout},
};
use tracing::{debug, info, warn};

use self::in_use::{Names, sandbox_image};
use crate::agent::PodSources;

/// Time between two looks at the disk.
const LOOK: Duration = Duration::from_secs(10);
/// Time between two lists of images, and between two attempts on a disk that stays full; upstream's
/// `ImageGCPeriod`.
const PERIOD: Duration = Duration::from_secs(5 * 60);
/// How long sources of pods that can't be read may delay the first attempt.
const SOURCES: Duration = Duration::from_secs(10 * 60);

/// Reads the use of the file system of a path; may block.
pub type DiskUsage = Arc<dyn Fn(&Path) -> io::Result<Usage> + Send + Sync>;

/// When unused images are removed.
#[derive(Clone)]
pub struct ImageCollectionSettings {
    /// The thresholds and ages.
    pub policy: ImageCollectionPolicy,
    /// The disk.
    pub disk: DiskUsage,
}

/// The task that removes unused images.
pub(crate) struct ImageCollection {
    pub(crate) settings: ImageCollectionSettings,
    pub(crate) runtime: Arc<dyn RuntimeService>,
    pub(crate) images: Arc<dyn ImageService>,
    pub(crate) pods: Arc<PodBoard>,
    pub(crate) sources: PodSources,
    pub(crate) recorder: Recorder,
    pub(crate) metrics: Arc<NodeMetrics>,
    pub(crate) node_name: Arc<str>,
}

/// What the task remembers.
struct Memory {
    started: Instant,
    history: ImageHistory,
    /// Where the images are; `None` until the runtime has said it.
    directory: Option<PathBuf>,
    /// When images are listed again, whatever the disk.
    list_at: Instant,
    /// Not before this time on a disk that was full before.
    retry_at: Instant,
    /// Attempts that failed in a row.
    failures: u32,
}

/// Why an attempt did not do all.
enum Shortfall {
    /// A call failed.
    Failed(String),
    /// There is not enough to remove.
    TooLittle { wanted: u64, freed: u64 },
}

impl ImageCollection {
    /// Looks, removes, and waits, for ever.
    pub(crate) async fn run(mut self) {
        self.know_the_pods().await;
        let now = Instant::now();
        let mut memory = Memory {
            started: now,
            history: ImageHistory::default(),
            directory: None,
            list_at: now,
            retry_at: now,
            failures: 0,
        };
        loop {
            self.look(&mut memory).await;
            sleep(LOOK).await;
        }
    }

    /// Waits until the pods of all sources are known: until then, images of theirs seem unused.
    async fn know_the_pods(&mut self) {
        let all = async {
            for source in &mut self.sources {
                // A source that ended knows what it knows.
                let _ = source.wait_for(|pods| pods.sources_ready()).await;
            }
        };
        let _ = timeout(SOURCES, all).await;
    }

    async fn look(&self, memory: &mut Memory) {
        let now = Instant::now();
        let may_retry = now >= memory.retry_at;
        let due =
            now >= memory.list_at || (may_retry && self.bytes_to_free(memory).await.is_some());
        if !due {
            return;
        }
        memory.list_at = now + PERIOD;
        let message = match self.attempt(memory).await {
            Ok(()) => {
                memory.failures = 0;
                return;
            }
            Err(Shortfall::Failed(message)) => message,
            Err(Shortfall::TooLittle { wanted, freed }) => {
                let message = format!(
                    "Failed to garbage collect required amount of images. Attempted to free \
                     {wanted} bytes, but only found {freed} bytes eligible to free."
                );
                self.warn("FreeDiskSpaceFailed", &message);
                message
            }
        };
        // Earlier where an image may be removed soon.
        let elapsed = memory.started.elapsed();
        let of_age = memory.history.until_of_age(&self.settings.policy, elapsed);
        memory.retry_at = now + of_age.map_or(PERIOD, |of_age| of_age.min(PERIOD));
        memory.failures += 1;
        // As upstream: a first failure may be the runtime's start.
        if memory.failures > 1 {
            self.warn("ImageGCFailed", &message);
        } else {
            debug!(message, "Unused images could not be removed");
        }
    }

    fn warn(&self, reason: &str, message: &str) {
        let node = Subject::Node((&*self.node_name).into());
        self.recorder
            .record(node, EventType::Warning, reason, message);
    }

    async fn bytes_to_free(&self, memory: &Memory) -> Option<u64> {
        let directory = memory.directory.clone()?;
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
                debug!(%error, "Cannot read the use of the image file system");
                None
            }
            // The agent stops.
            Err(_) => None,
        }
    }

    /// Lists images, and removes what must go.
    async fn attempt(&self, memory: &mut Memory) -> Result<(), Shortfall> {
        let failed =
            |what: &str, error| Shortfall::Failed(format!("cannot {what}: {}", ErrorChain(&error)));
        let images = self.images.list_images(v1::ListImagesRequest::default());
        let images = images.await.map_err(|error| failed("list images", error))?;
        // After the images: a container that is made in between counts as a user of its image.
        let containers = self
            .runtime
            .list_containers(v1::ListContainersRequest::default());
        let containers = containers
            .await
            .map_err(|error| failed("list containers", error))?;
        let made_from = Names::of_containers(&containers.containers);
        let asked_for = self.names_in_pods();
        let listed: Vec<ListedImage> = images
            .images
            .iter()
            .map(|image| ListedImage {
                id: image.id.clone(),
                bytes: image.size,
                in_use: made_from.include(image) || asked_for.include(image),
                pinned: image.pinned,
            })
            .collect();
        let now = memory.started.elapsed();
        let unused = memory.history.observe(&listed, &self.settings.policy, now);
        if memory.directory.is_none() {
            let asked = self.images.image_fs_info(v1::ImageFsInfoRequest {}).await;
            memory.directory = asked
                .map(image_directory)
                .map_err(|error| failed("get the image file system from the runtime", error))?;
        }
        let wanted = self.bytes_to_free(memory).await;
        self.remove(&images.images, unused, wanted).await
    }

    /// Removes those that are too old, and others in their order until enough is free.
    async fn remove(
        &self,
        images: &[v1::Image],
        unused: Vec<UnusedImage>,
        wanted: Option<u64>,
    ) -> Result<(), Shortfall> {
        let missing = wanted.unwrap_or_default();
        if missing == 0 && !unused.iter().any(|image| image.too_old) {
            return Ok(());
        }
        let sandboxes = sandbox_image(&*self.runtime).await;
        let (mut freed, mut error) = (0, None);
        let (old, others): (Vec<_>, Vec<_>) = unused.into_iter().partition(|image| image.too_old);
        for unused in old.into_iter().chain(others) {
            if !unused.too_old && freed >= missing {
                break;
            }
            let Some(image) = images.iter().find(|image| image.id == unused.id) else {
                continue;
            };
            // Removals take time, in which pods may have come.
            if sandboxes.include(image) || self.names_in_pods().include(image) {
                continue;
            }
            let reason = if unused.too_old { "age" } else { "space" };
            match self.remove_one(image, reason).await {
                Ok(()) => freed += unused.bytes,
                Err(failed) => {
                    let text = format!("cannot remove {}: {}", image.id, ErrorChain(&failed));
                    warn!("{text}");
                    error = Some(text);
                }
            }
        }
        match error {
            Some(error) => Err(Shortfall::Failed(error)),
            None if freed < missing => Err(Shortfall::TooLittle {
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
            "Removed an unused image"
        );
        self.metrics.images.collected(reason);
        Ok(())
    }

    /// The images that pods name: those of the sources, and those that still end.
    fn names_in_pods(&self) -> Names {
        let mut names = Names::default();
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
