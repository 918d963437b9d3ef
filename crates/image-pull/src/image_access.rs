//! Access of pods to present images. The credentials of each pull are recorded on disk, in the
//! kubelet's format, and are checked before a pod uses an image without a pull.
//!
//! A pull intent is written before each pull, so that an image that arrives while the agent is
//! killed counts as pulled by this node and not as preloaded for all pods.

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
    metrics::{AccessVerdict, NodeMetrics},
};
use rubelet_pod_plan::image_access::{
    CredentialMatch, ImageGrant, PullCredentials, PullSecret, PullServiceAccount, PulledRecord,
    VerificationPolicy, access, compare, recorded, whole_seconds,
};
use tokio::{sync::Mutex as AsyncMutex, task::spawn_blocking, time::Instant};
use tracing::{debug, warn};

use self::files::{FileError, RecordFiles};

/// Minimum time between two removals of records of removed images, which follow a pull; upstream
/// removes them with each image garbage collection.
const PRUNE_PERIOD: Duration = Duration::from_secs(5 * 60);

/// Decides whether a pod may use a present image. Cheap to clone.
#[derive(Clone)]
pub struct ImageAccess {
    /// `None`: all pods may use all images.
    inner: Option<Arc<AccessRecords>>,
}

struct AccessRecords {
    policy: VerificationPolicy,
    files: RecordFiles,
    clock: Clock,
    metrics: Arc<NodeMetrics>,
    /// Serializes decisions and changes of the files.
    turn: AsyncMutex<RecordMaintenance>,
    /// Number of pulls in progress, by image.
    pulling: Mutex<HashMap<String, usize>>,
}

/// State of the occasional maintenance of the records.
#[derive(Default)]
struct RecordMaintenance {
    /// True once the intents of the previous process were read.
    adopted: bool,
    pruned_at: Option<Instant>,
}

/// A pull in progress, with its intent on disk. Dropped without a result, it leaves the intent: the
/// image may still arrive.
pub(crate) struct PullIntent {
    inner: Option<Arc<AccessRecords>>,
    image: String,
}

/// The credentials of a pod for an image.
#[derive(Debug, Default)]
pub(crate) struct PodCredentials {
    secrets: Vec<PullSecret>,
    /// A pod has one service account, regardless of the plugins that use it.
    account: Option<PullServiceAccount>,
}

impl PodCredentials {
    /// The credentials from the sources of the pod's logins for the image.
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
    /// Keeps no records: all pods may use all present images.
    #[must_use]
    pub fn unchecked() -> Self {
        Self { inner: None }
    }

    /// Keeps records in `image_manager` below `root`, the kubelet's root directory.
    #[must_use]
    pub fn new(
        root: &Path,
        policy: VerificationPolicy,
        clock: Clock,
        metrics: Arc<NodeMetrics>,
    ) -> Self {
        Self {
            inner: Some(Arc::new(AccessRecords {
                policy,
                files: RecordFiles::below(root),
                clock,
                metrics,
                turn: AsyncMutex::default(),
                pulling: Mutex::default(),
            })),
        }
    }

    /// True if access is checked.
    pub(crate) fn is_checked(&self) -> bool {
        self.inner.is_some()
    }

    /// True if a pod may use the present image `image_ref`, which it references as `image`. `shown`
    /// resolves to the pod's credentials for it, and is awaited only if they matter. Without
    /// readable records the pod must pull.
    pub(crate) async fn may_use(
        &self,
        images: &dyn ImageService,
        (image, image_ref): (&str, &str),
        shown: impl Future<Output = PodCredentials>,
    ) -> bool {
        let Some(inner) = &self.inner else {
            return true;
        };
        let verdict = inner.check(images, (image, image_ref), shown).await;
        inner.metrics.images.access_checked(verdict);
        matches!(verdict, AccessVerdict::Policy | AccessVerdict::Record)
    }

    /// Writes the intent of a pull; it is on disk when this returns.
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
                .changing(move |files| files.write_intent(&written))
                .await?;
            *inner.pulling.lock().entry(image).or_default() += 1;
        }
        Ok(intent)
    }
}

impl PullIntent {
    /// Records a successful pull with these credentials.
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

    /// Removes the intent of a failed pull.
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

impl AccessRecords {
    /// See [`ImageAccess::may_use`].
    async fn check(
        &self,
        images: &dyn ImageService,
        (image, image_ref): (&str, &str),
        shown: impl Future<Output = PodCredentials>,
    ) -> AccessVerdict {
        let repository = repository(image);
        let mut read = self.read(image, image_ref).await;
        // The image may have arrived while an earlier process was killed. Only calls that need the
        // runtime's response wait for it: no lock is held meanwhile.
        if matches!(read, Some((None, _))) && !self.turn.lock().await.adopted {
            if !self.adopt(images).await {
                return AccessVerdict::Error;
            }
            read = self.read(image, image_ref).await;
        }
        let Some((record, pulling)) = read else {
            return AccessVerdict::Error;
        };
        let known = match access(&self.policy, &repository, record.as_ref(), pulling) {
            ImageGrant::ByPolicy => return AccessVerdict::Policy,
            ImageGrant::ByRecord => return AccessVerdict::Record,
            ImageGrant::Denied => return AccessVerdict::MustAuthenticate,
            ImageGrant::With(known) => known,
        };
        let shown = shown.await;
        match compare(known, &shown.secrets, shown.account.as_ref()) {
            CredentialMatch::Known => AccessVerdict::Record,
            CredentialMatch::Unknown => AccessVerdict::MustAuthenticate,
            CredentialMatch::Learned(secret) => {
                let credentials = PullCredentials {
                    kubernetes_secrets: vec![secret],
                    ..PullCredentials::default()
                };
                let _turn = self.turn.lock().await;
                self.record(image, image_ref, Some(credentials)).await;
                AccessVerdict::Record
            }
        }
    }

    /// Does `work` on the files, and counts them afterwards.
    async fn changing(
        &self,
        work: impl FnOnce(&RecordFiles) -> Result<(), FileError> + Send + 'static,
    ) -> Result<(), FileError> {
        let changed = self.blocking(move |files| {
            let done = work(files);
            Ok((done, files.numbers()))
        });
        let (done, (intents, records)) = changed.await?;
        self.metrics.images.set_on_disk(intents, records);
        done
    }

    /// Ends one pull; returns the number of pulls still in progress.
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
        work: impl FnOnce(&RecordFiles) -> Result<T, FileError> + Send + 'static,
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

    /// The record of an image, and true if a pull of it under this name was begun; `None` if they
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
            .inspect_err(|error| warn!(error = %ErrorChain(error), "Cannot read image pull records, pulling the image again"))
            .ok()
    }

    /// Updates the record; false if it could not be written.
    async fn record(
        &self,
        image: &str,
        image_ref: &str,
        credentials: Option<PullCredentials>,
    ) -> bool {
        let (repository, image_ref) = (repository(image), image_ref.to_owned());
        let now = self.clock.now();
        let written = self.changing(move |files| {
            // An unreadable record is replaced.
            let old = files.record(&image_ref).unwrap_or_default();
            let credentials = credentials.as_ref();
            match recorded(old.as_ref(), &image_ref, &repository, credentials, now) {
                Some(record) => files.write_record(&record),
                None => Ok(()),
            }
        });
        let written = written.await;
        if let Err(error) = &written {
            warn!(image, error = %ErrorChain(error), "Cannot write the image pull record, pods with other credentials will pull the image again");
        }
        written.is_ok()
    }

    /// Ends a pull. The intent stays if other pulls of the image continue, or if the outcome is not
    /// on disk.
    async fn ends(&self, image: &str, is_known: bool) {
        if self.leave(image) > 0 || !is_known {
            return;
        }
        let image = image.to_owned();
        let removed = self.changing(move |files| files.remove_intent(&image));
        if let Err(error) = removed.await {
            warn!(error = %ErrorChain(&error), "Cannot remove an image pull intent");
        }
    }

    /// Records images that arrived while an earlier process was killed as pulled by this node with
    /// unknown credentials. True once done. No lock is held during the call to the runtime.
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

    /// The images of intents from an earlier process.
    async fn left_intents(&self) -> Vec<String> {
        let intents = self
            .blocking(RecordFiles::intents)
            .await
            .unwrap_or_else(|error| {
                warn!(error = %ErrorChain(&error), "Cannot list image pull intents");
                Vec::new()
            });
        let going_on = self.pulling.lock();
        let left = intents.into_iter();
        left.filter(|image| !going_on.contains_key(image)).collect()
    }

    /// Removes records of removed images, except those written since it began. No lock is held
    /// during the call to the runtime.
    async fn prune(&self, images: &dyn ImageService) {
        let before = whole_seconds(self.clock.now());
        let Some(present) = list(images).await else {
            return;
        };
        let _turn = self.turn.lock().await;
        let present: BTreeSet<String> = present.into_iter().map(|image| image.id).collect();
        let pruned = self.changing(move |files| {
            for record in files.records()? {
                if record.last_updated_time < before && !present.contains(&record.image_ref) {
                    files.remove_record(&record.image_ref)?;
                }
            }
            Ok(())
        });
        if let Err(error) = pruned.await {
            warn!(error = %ErrorChain(&error), "Cannot remove image pull records of removed images");
        }
    }
}

async fn list(images: &dyn ImageService) -> Option<Vec<v1::Image>> {
    match images.list_images(v1::ListImagesRequest::default()).await {
        Ok(answer) => Some(answer.images),
        Err(error) => {
            debug!(error = %ErrorChain(&error), "Cannot list images");
            None
        }
    }
}

/// The suffix of an image reference: tag, digest or both.
fn tag_of(image: &str) -> &str {
    let path = image.rfind('/').map_or(0, |slash| slash + 1);
    let end = image[path..].find([':', '@']);
    end.map_or("", |end| &image[path + end..])
}
