//! Who may use an image that is present. What was pulled with which credentials is kept on disk, as
//! the kubelet keeps it, and is checked before a pod uses an image without a pull.
//!
//! Before a pull there is an intent on disk, so that an image that arrives while the agent is killed
//! counts as pulled by this node, and not as one that somebody put there for all.

mod files;

use std::{
    collections::{BTreeSet, HashMap},
    io,
    path::Path,
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use rubelet_base::ErrorChain;
use rubelet_cri::{ImageService, v1};
use rubelet_node_state::{
    clock::Clock,
    keyring::{LoginSource, repository},
};
use rubelet_pod_plan::image_access::{
    Access, PullCredentials, PullSecret, PullServiceAccount, PulledRecord, Shown,
    VerificationPolicy, access, compare, recorded, whole_seconds,
};
use tokio::{sync::Mutex as AsyncMutex, task::spawn_blocking, time::Instant};
use tracing::{debug, warn};

use self::files::{FileError, Files};

/// Shortest time between two searches for records of images that are gone, which follow a pull;
/// upstream searches with each garbage collection of images.
const PRUNE_PERIOD: Duration = Duration::from_secs(5 * 60);

/// Decides who may use a present image. Cheap to clone.
#[derive(Clone)]
pub struct ImageAccess {
    /// `None`: everybody may use everything.
    inner: Option<Arc<Inner>>,
}

struct Inner {
    policy: VerificationPolicy,
    files: Files,
    clock: Clock,
    /// One decision or change of the files at a time.
    turn: AsyncMutex<Upkeep>,
    /// Pulls that continue, by image.
    pulling: Mutex<HashMap<String, usize>>,
}

/// What is done now and then.
#[derive(Default)]
struct Upkeep {
    /// Intents of the previous process were read.
    adopted: bool,
    pruned_at: Option<Instant>,
}

/// A pull that was announced. Dropped without a result, it leaves the intent: the image may still
/// arrive.
pub(crate) struct PullIntent {
    inner: Option<Arc<Inner>>,
    image: String,
}

/// With what a pod may prove that it may use an image.
#[derive(Debug, Default)]
pub(crate) struct PodCredentials {
    secrets: Vec<PullSecret>,
    /// A pod has one service account, whoever gives credentials for it.
    account: Option<PullServiceAccount>,
}

impl PodCredentials {
    /// From the sources of the pod's logins for the image.
    pub(crate) fn of<'a>(sources: impl Iterator<Item = &'a LoginSource>) -> Self {
        let mut shown = Self::default();
        for source in sources {
            match source {
                LoginSource::Node => {}
                LoginSource::Secret(secret) => shown.secrets.push(secret.clone()),
                LoginSource::ServiceAccount(account) => {
                    shown.account.get_or_insert_with(|| account.clone());
                }
            }
        }
        shown
    }
}

impl ImageAccess {
    /// Nothing is kept, and everybody may use what is present.
    #[must_use]
    pub fn unchecked() -> Self {
        Self { inner: None }
    }

    /// With records below `root`, the kubelet's root directory, in `image_manager`.
    #[must_use]
    pub fn new(root: &Path, policy: VerificationPolicy, clock: Clock) -> Self {
        Self {
            inner: Some(Arc::new(Inner {
                policy,
                files: Files::below(root),
                clock,
                turn: AsyncMutex::default(),
                pulling: Mutex::default(),
            })),
        }
    }

    /// Whether access is checked at all.
    pub(crate) fn is_checked(&self) -> bool {
        self.inner.is_some()
    }

    /// Whether a pod may use the present image `image_ref` that it calls `image`. `shown` resolves
    /// to the pod's credentials for it, and is awaited only if they matter. Without readable
    /// records the pod must pull.
    pub(crate) async fn may_use(
        &self,
        images: &dyn ImageService,
        (image, image_ref): (&str, &str),
        shown: impl Future<Output = PodCredentials>,
    ) -> bool {
        let Some(inner) = &self.inner else {
            return true;
        };
        let repository = repository(image);
        let mut read = inner.read(image, image_ref).await;
        // It may have arrived while an earlier process was killed. Only who needs the runtime's answer
        // waits for it: nothing is held meanwhile.
        if matches!(read, Some((None, _))) && !inner.turn.lock().await.adopted {
            if !inner.adopt(images).await {
                return false;
            }
            read = inner.read(image, image_ref).await;
        }
        let Some((record, pulling)) = read else {
            return false;
        };
        let known = match access(&inner.policy, &repository, record.as_ref(), pulling) {
            Access::Granted => return true,
            Access::Denied => return false,
            Access::With(known) => known,
        };
        let shown = shown.await;
        match compare(known, &shown.secrets, shown.account.as_ref()) {
            Shown::Known => true,
            Shown::Unknown => false,
            Shown::Learned(secret) => {
                let credentials = PullCredentials {
                    kubernetes_secrets: vec![secret],
                    ..PullCredentials::default()
                };
                let _turn = inner.turn.lock().await;
                inner.record(image, image_ref, Some(credentials)).await;
                true
            }
        }
    }

    /// Notes that an image is about to be pulled; on disk when this returns.
    pub(crate) async fn intend(&self, image: &str) -> Result<PullIntent, FileError> {
        let intent = PullIntent {
            inner: self.inner.clone(),
            image: image.to_owned(),
        };
        if let Some(inner) = &self.inner {
            let _turn = inner.turn.lock().await;
            let image = image.to_owned();
            let written = image.clone();
            inner
                .blocking(move |files| files.write_intent(&written))
                .await?;
            *inner.pulling.lock().entry(image).or_default() += 1;
        }
        Ok(intent)
    }
}

impl PullIntent {
    /// The image arrived, and these credentials had it.
    pub(crate) async fn pulled(
        mut self,
        images: &dyn ImageService,
        image_ref: &str,
        credentials: PullCredentials,
    ) {
        let Some(inner) = self.inner.take() else {
            return;
        };
        let mut upkeep = inner.turn.lock().await;
        let written = inner
            .record(&self.image, image_ref, Some(credentials))
            .await;
        inner.ends(&self.image, written).await;
        let pruned_at = &mut upkeep.pruned_at;
        if pruned_at.is_none_or(|at| at.elapsed() >= PRUNE_PERIOD) {
            *pruned_at = Some(Instant::now());
            drop(upkeep);
            inner.prune(images).await;
        }
    }

    /// The runtime refused: nothing arrived.
    pub(crate) async fn failed(mut self) {
        if let Some(inner) = self.inner.take() {
            let _turn = inner.turn.lock().await;
            inner.ends(&self.image, true).await;
        }
    }
}

impl Drop for PullIntent {
    fn drop(&mut self) {
        if let Some(inner) = &self.inner {
            inner.leave(&self.image);
        }
    }
}

impl Inner {
    /// One pull less; how many continue.
    fn leave(&self, image: &str) -> usize {
        let mut pulling = self.pulling.lock();
        let Some(count) = pulling.get_mut(image) else {
            return 0;
        };
        *count -= 1;
        let left = *count;
        if left == 0 {
            pulling.remove(image);
        }
        left
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Files) -> Result<T, FileError> + Send + 'static,
    ) -> Result<T, FileError> {
        let files = self.files.clone();
        match spawn_blocking(move || work(&files)).await {
            Ok(done) => done,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(error) => Err(FileError::stopped(io::Error::other(error))),
            },
        }
    }

    /// The record of an image, and whether a pull of it under this name was begun; `None` if that
    /// can't be read.
    async fn read(&self, image: &str, image_ref: &str) -> Option<(Option<PulledRecord>, bool)> {
        let _turn = self.turn.lock().await;
        let (image, image_ref) = (image.to_owned(), image_ref.to_owned());
        let read = self.blocking(move |files| {
            let record = files.record(&image_ref)?;
            let pulling = record.is_none() && files.has_intent(&image)?;
            Ok((record, pulling))
        });
        read.await
            .inspect_err(|error| warn!(error = %ErrorChain(error), "Records of image pulls can't be read; the image is pulled again"))
            .ok()
    }

    /// Writes what is new; `false` if it could not be written.
    async fn record(
        &self,
        image: &str,
        image_ref: &str,
        credentials: Option<PullCredentials>,
    ) -> bool {
        let (repository, image_ref) = (repository(image), image_ref.to_owned());
        let now = self.clock.now();
        let written = self.blocking(move |files| {
            // What can't be read is replaced.
            let old = files.record(&image_ref).unwrap_or_default();
            let credentials = credentials.as_ref();
            match recorded(old.as_ref(), &image_ref, &repository, credentials, now) {
                Some(record) => files.write_record(&record),
                None => Ok(()),
            }
        });
        let written = written.await;
        if let Err(error) = &written {
            warn!(image, error = %ErrorChain(error), "Cannot record the credentials that an image was pulled with; pods with other credentials pull it again");
        }
        written.is_ok()
    }

    /// A pull ended. The intent stays if others pull the same, or if its outcome is not on disk.
    async fn ends(&self, image: &str, is_known: bool) {
        if self.leave(image) > 0 || !is_known {
            return;
        }
        let image = image.to_owned();
        let removed = self.blocking(move |files| files.remove_intent(&image));
        if let Err(error) = removed.await {
            warn!(error = %ErrorChain(&error), "The intent of an image pull can't be removed");
        }
    }

    /// Images that arrived while an earlier process was killed: pulled by this node, with unknown
    /// credentials. `true` once that is done. Nothing is held while the runtime is asked.
    async fn adopt(&self, images: &dyn ImageService) -> bool {
        let present = match self.left_intents().await {
            intents if intents.is_empty() => Vec::new(),
            _ => match list(images).await {
                Some(present) => present,
                None => return false,
            },
        };
        let mut upkeep = self.turn.lock().await;
        if upkeep.adopted {
            return true;
        }
        for image in self.left_intents().await {
            let Ok(full) = rubelet_api::image_ref::with_default_tag(&image) else {
                continue;
            };
            let full = format!("{}{}", repository(&full), tag_of(&full));
            let named = |found: &&v1::Image| {
                let mut names = found.repo_tags.iter().chain(&found.repo_digests);
                names.any(|name| *name == image || *name == full)
            };
            for found in present.iter().filter(named) {
                if self.record(&image, &found.id, None).await {
                    self.ends(&image, true).await;
                }
            }
        }
        upkeep.adopted = true;
        true
    }

    /// The intents of pulls that an earlier process began.
    async fn left_intents(&self) -> Vec<String> {
        let intents = self.blocking(Files::intents).await.unwrap_or_else(|error| {
            warn!(error = %ErrorChain(&error), "Intents of image pulls can't be listed");
            Vec::new()
        });
        let going_on = self.pulling.lock();
        let left = intents.into_iter();
        left.filter(|image| !going_on.contains_key(image)).collect()
    }

    /// Removes records of images that are gone, but for those written since it began. Nothing is held
    /// while the runtime is asked.
    async fn prune(&self, images: &dyn ImageService) {
        let before = whole_seconds(self.clock.now());
        let Some(present) = list(images).await else {
            return;
        };
        let _turn = self.turn.lock().await;
        let present: BTreeSet<String> = present.into_iter().map(|image| image.id).collect();
        let pruned = self.blocking(move |files| {
            for record in files.records()? {
                if record.last_updated_time < before && !present.contains(&record.image_ref) {
                    files.remove_record(&record.image_ref)?;
                }
            }
            Ok(())
        });
        if let Err(error) = pruned.await {
            warn!(error = %ErrorChain(&error), "Records of images that are gone can't be removed");
        }
    }
}

async fn list(images: &dyn ImageService) -> Option<Vec<v1::Image>> {
    match images.list_images(v1::ListImagesRequest::default()).await {
        Ok(answer) => Some(answer.images),
        Err(error) => {
            debug!(error = %ErrorChain(&error), "Images can't be listed");
            None
        }
    }
}

/// What follows the name of an image: tag, digest or both.
fn tag_of(image: &str) -> &str {
    let path = image.rfind('/').map_or(0, |slash| slash + 1);
    let end = image[path..].find([':', '@']);
    end.map_or("", |end| &image[path + end..])
}
