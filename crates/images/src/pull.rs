//! Pulls an image from a registry.

mod layer;

use std::sync::Arc;

use futures_util::{
    FutureExt as _, StreamExt as _, TryStreamExt as _,
    future::{Shared, WeakShared},
    stream,
};
use rubelet_base::ErrorChain;

use crate::{
    Credentials, Digest, ImageId, ImageStore, Platform, PullError, PullErrorKind, Reference,
    active_pulls::{PullFuture, PullKey},
    load::{check_count, read_config},
    manifest::{self, Descriptor, Document, Manifest},
    registry::{OfferedCredentials, RawManifest, RegistrySession, Transport},
    store::{LayerLease, LayerSource, NewImage, blocking},
};

/// Nesting of indexes.
const MAX_DEPTH: usize = 4;
/// Maximum bytes of an image's configuration file.
const CONFIG_BYTES: u64 = 8 << 20;

/// A pull of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRequest<'a> {
    /// Name, optionally a short one, optionally with a digest.
    pub image: &'a str,
    /// Credentials for the registry.
    pub auth: Option<Credentials>,
    /// Mirrors of the registry may get `auth`, too. They may if it names no server.
    pub auth_for_mirrors: bool,
    /// The platform to choose from an image index; `None` is this machine's.
    pub platform: Option<Platform>,
}

impl ImageStore {
    /// Pulls an image and all its missing layers. Callers that pull the same image with the same
    /// credentials share one pull, which is canceled when the last of them drops it.
    ///
    /// # Errors
    /// See [`PullError`]. Nothing is retried: back-off is up to the caller.
    pub async fn pull(self: &Arc<Self>, request: PullRequest<'_>) -> Result<ImageId, PullError> {
        let reference = request.image.parse::<Reference>().map_err(|error| {
            let message = format!("invalid image name {:?}", request.image);
            PullError::because(PullErrorKind::InvalidArgument, message, error)
        })?;
        let shown = OfferedCredentials {
            credentials: request.auth,
            to_mirrors: request.auth_for_mirrors,
        };
        let platform = request.platform;
        let platform = platform.unwrap_or_else(|| self.settings().platform.clone());
        self.shared((reference, shown, platform)).await
    }

    /// Joins the current pull of `key`, or starts one.
    fn shared(self: &Arc<Self>, key: PullKey) -> Shared<PullFuture> {
        let mut current = self.pulls.current.lock();
        current.retain(|_, pull| pull.upgrade().is_some_and(|pull| pull.peek().is_none()));
        if let Some(pull) = current.get(&key).and_then(WeakShared::upgrade) {
            return pull;
        }
        let (store, (reference, shown, platform)) = (Arc::clone(self), key.clone());
        let pull = async move { store.pull_and_sweep(reference, shown, &platform).await };
        let pull = pull.boxed().shared();
        if let Some(weak) = pull.downgrade() {
            current.insert(key, weak);
        }
        pull
    }

    async fn pull_and_sweep(
        self: Arc<Self>,
        reference: Reference,
        shown: OfferedCredentials,
        platform: &Platform,
    ) -> Result<ImageId, PullError> {
        tracing::debug!(image = %reference, "Pulling image");
        let pulled = self.pull_new(&reference, shown, platform).await;
        let is_full = matches!(&pulled, Err(error) if error.kind() == PullErrorKind::NoSpace);
        let store = Arc::clone(&self);
        // On a full disk the layers of the failed pull are removed immediately.
        blocking(move || store.sweep(is_full)).await;
        match &pulled {
            Ok(id) => tracing::info!(image = %reference, %id, "Pulled image"),
            Err(error) => {
                tracing::warn!(image = %reference, error = %ErrorChain(error), "Image pull failed");
            }
        }
        pulled.map_err(|error| error.of(&reference))
    }

    async fn pull_new(
        self: &Arc<Self>,
        reference: &Reference,
        shown: OfferedCredentials,
        platform: &Platform,
    ) -> Result<ImageId, PullError> {
        let anonymous = shown.credentials.is_none();
        let session = self.session(reference, shown).await?;
        let (top, manifest, text) = self.manifest(&session, reference, platform).await?;
        let known = self.known_config(&manifest, &reference.at(&top)).await;
        // The same image was pulled from there, with all its layers.
        let is_known = known.is_some();
        let config_bytes = match known {
            Some(text) => text.into_bytes(),
            None => {
                let read = session.small_blob(&manifest.config, CONFIG_BYTES).await?;
                read.to_vec()
            }
        };
        let (id, config, config_file) = read_config(config_bytes)?;
        if platform.fit(&config.platform).is_none() {
            let message = format!(
                "the image is for {}, but {platform} is needed",
                config.platform
            );
            return Err(PullError::new(PullErrorKind::NotFound, message));
        }
        check_count(
            &config,
            manifest.layers.len(),
            self.settings().limits.layers,
        )?;
        let layers = config.diff_ids.iter().zip(&manifest.layers);
        let layers: Vec<(Digest, Descriptor)> = layers
            .map(|(id, layer)| (id.clone(), layer.clone()))
            .collect();
        let downloads = layers.into_iter().map(|(diff_id, layer)| {
            let source = (!is_known).then(|| LayerSource {
                registry: reference.registry().to_owned(),
                repository: reference.repository().to_owned(),
                blob: layer.digest.clone(),
                anonymous,
            });
            self.layer(&session, (layer, diff_id), source)
        });
        let downloads =
            stream::iter(downloads).buffer_unordered(self.settings().limits.parallel_layers.max(1));
        let holds: Vec<LayerLease> = downloads.try_collect().await?;
        let mut arrival = NewImage {
            id: id.clone(),
            // If a digest is given, the tag is ignored; it may belong to another image by now.
            tags: match reference.digest() {
                None => reference.tagged().into_iter().collect(),
                Some(_) => Vec::new(),
            },
            digests: vec![reference.at(&top)],
            layers: config.diff_ids,
            config_file,
            manifest: Some(text),
        };
        let store = Arc::clone(self);
        blocking(move || {
            let mut hold = LayerLease::new(&store);
            holds.into_iter().for_each(|other| hold.merge(other));
            arrival.layers = store.with_implicit_dirs(arrival.layers, &mut hold)?;
            store.commit_image(arrival)
        })
        .await?;
        Ok(id)
    }

    /// The manifest for this platform and its text, and the digest that the name resolves to.
    async fn manifest(
        &self,
        session: &RegistrySession,
        reference: &Reference,
        platform: &Platform,
    ) -> Result<(Digest, Manifest, String), PullError> {
        let digest = reference.digest();
        let name = match (digest, reference.tag()) {
            (Some(digest), _) => digest.to_string(),
            (None, tag) => tag.unwrap_or("latest").to_owned(),
        };
        let mut raw: RawManifest = session.manifest(&name, digest).await?;
        let top = raw.digest.clone();
        for _ in 0..MAX_DEPTH {
            match manifest::parse(&raw.bytes, raw.media_type.as_deref())? {
                Document::Manifest(manifest) => {
                    let text = String::from_utf8_lossy(&raw.bytes).into_owned();
                    return Ok((top, manifest, text));
                }
                Document::Index(entries) => {
                    let best = manifest::choose(&entries, platform);
                    let best = best
                        .first()
                        .ok_or_else(|| no_platform(platform, &entries))?;
                    let digest = best.digest.clone();
                    raw = session.manifest(&digest.to_string(), Some(&digest)).await?;
                }
            }
        }
        let message = "the image index is nested too deeply";
        Err(PullError::new(PullErrorKind::Refused, message))
    }

    /// The configuration of a local image that was pulled by this name with a digest. From
    /// elsewhere it is requested again: knowing its digest does not prove the right to read it.
    async fn known_config(self: &Arc<Self>, manifest: &Manifest, name: &str) -> Option<String> {
        let id = manifest.config.digest.to_string();
        self.inspect(&id)
            .await
            .ok()
            .filter(|details| details.image.id.digest() == &manifest.config.digest)
            .filter(|details| details.image.repo_digests.iter().any(|had| had == name))
            .map(|details| details.config_file)
    }

    async fn session(
        self: &Arc<Self>,
        reference: &Reference,
        shown: OfferedCredentials,
    ) -> Result<RegistrySession, PullError> {
        let (store, reference) = (Arc::clone(self), reference.clone());
        blocking(move || {
            let transport = store.transport()?;
            let directories = &store.settings().hosts_dirs;
            RegistrySession::open(&transport, &reference, &shown, directories)
        })
        .await
    }

    fn transport(&self) -> Result<Arc<Transport>, PullError> {
        let mut shared = self.pulls.transport.lock();
        if let Some(transport) = shared.upgrade() {
            return Ok(transport);
        }
        let transport = Arc::new(Transport::new(self.settings())?);
        *shared = Arc::downgrade(&transport);
        Ok(transport)
    }
}

fn no_platform(platform: &Platform, entries: &[Descriptor]) -> PullError {
    let there = entries.iter().filter_map(|entry| entry.platform.as_ref());
    let mut there: Vec<String> = there
        .filter(|platform| platform.os != "unknown")
        .map(ToString::to_string)
        .collect();
    there.truncate(20);
    let message = format!(
        "no match for platform {platform} in the image index; it has: {}",
        there.join(", ")
    );
    PullError::new(PullErrorKind::NotFound, message)
}

#[cfg(test)]
mod tests;
