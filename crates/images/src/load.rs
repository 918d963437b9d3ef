//! Loads images from archives: OCI layouts and archives of `docker save`.

mod docker;
mod layout;
mod source;

use std::{
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};

use self::source::ArchiveFiles;
use crate::{
    Digest, Image, ImageId, ImageStore, LoadError, PullError, PullErrorKind, Reference,
    manifest::{Config, parse_config},
    platform::Platform,
    store::{LayerLease, NewImage, blocking, open_directory},
    unpack::{self, UnpackedLayer},
};

/// An archive to load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadRequest {
    /// A directory or tar archive (plain, gzip or zstd) with an OCI layout, or a docker archive.
    pub path: PathBuf,
    /// A name for the image, if there is only one in the archive.
    pub name: Option<String>,
}

/// An image that was loaded.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadedImage {
    /// The image in the store.
    pub image: Arc<Image>,
    /// The names that it got.
    pub names: Vec<String>,
}

impl ImageStore {
    /// Loads all images of an archive that are for this platform.
    ///
    /// # Errors
    /// See [`LoadError`]. Images that were loaded before the failure are kept.
    pub async fn load(
        self: &Arc<Self>,
        request: LoadRequest,
    ) -> Result<Vec<LoadedImage>, LoadError> {
        let store = Arc::clone(self);
        blocking(move || {
            let loaded = store.load_blocking(&request);
            store.sweep(false);
            loaded
        })
        .await
    }

    fn load_blocking(
        self: &Arc<Self>,
        request: &LoadRequest,
    ) -> Result<Vec<LoadedImage>, LoadError> {
        let path = &request.path;
        let form = |why: String| LoadError::Form {
            path: path.clone(),
            why,
        };
        let given = request.name.as_deref().map(str::parse::<Reference>);
        let given = given.transpose();
        let given = given.map_err(|error| form(format!("invalid image name: {error}")))?;
        let source = ArchiveFiles::open(path, self)?;
        let mut found = Vec::new();
        let is_layout = source.has("index.json");
        if is_layout {
            found = layout::find(&source, &self.settings().platform, path)?;
        }
        if source.has("manifest.json") {
            docker::find(&source, path, &mut found)?;
        } else if !is_layout {
            return Err(form("neither index.json nor manifest.json found".into()));
        }
        let platform = &self.settings().platform;
        let is_single = found.len() == 1;
        if given.is_some() && !is_single {
            return Err(form(format!(
                "a name needs an archive with one image, it has {}",
                found.len()
            )));
        }
        let mut loaded = Vec::new();
        let mut others = Vec::new();
        for mut archived in found {
            if platform.fit(&archived.config.platform).is_none() {
                others.push(archived.config.platform);
                continue;
            }
            if let Some(name) = given.as_ref().and_then(Reference::tagged) {
                archived.names = vec![name];
            }
            let shown = archived.shown();
            let image = self.take_archived(&source, archived);
            loaded.push(image.map_err(|source| LoadError::Image {
                path: path.clone(),
                image: shown,
                source,
            })?);
        }
        if loaded.is_empty() {
            let others: Vec<String> = others.iter().map(Platform::to_string).collect();
            return Err(form(format!(
                "no image for platform {platform}, only for: {}",
                others.join(", ")
            )));
        }
        Ok(loaded)
    }

    fn take_archived(
        self: &Arc<Self>,
        source: &ArchiveFiles,
        archived: ArchivedImage,
    ) -> Result<LoadedImage, PullError> {
        let ArchivedImage {
            id,
            config,
            config_file,
            manifest,
            layers,
            names,
            digest,
        } = archived;
        check_count(&config, layers.len(), self.settings().limits.layers)?;
        let mut hold = LayerLease::new(self);
        for (diff_id, layer) in config.diff_ids.iter().zip(&layers) {
            if hold.add(diff_id) {
                continue;
            }
            let (content, _) = source.content(&layer.path)?;
            let expected = layer.blob.as_ref();
            hold.merge(self.take_layer(content, expected, diff_id)?);
        }
        let at = |name: &String| {
            let reference = name.parse::<Reference>().ok()?;
            Some(reference.at(digest.as_ref()?))
        };
        let layers = self.with_implicit_dirs(config.diff_ids, &mut hold)?;
        let image = self.commit_image(NewImage {
            id,
            digests: names.iter().filter_map(at).collect(),
            tags: names.clone(),
            layers,
            config_file,
            manifest,
        })?;
        Ok(LoadedImage { image, names })
    }

    /// Unpacks a layer, verifies its digests, and commits it. Blocks.
    pub(crate) fn take_layer(
        self: &Arc<Self>,
        content: impl Read + Send,
        blob: Option<&(Digest, u64)>,
        diff_id: &Digest,
    ) -> Result<LayerLease, PullError> {
        let made = self.directories().unused();
        let taken = self.unpack_to(&made, content, blob, diff_id);
        if taken.is_err() {
            self.throw_away(&made);
        }
        taken
    }

    fn unpack_to(
        self: &Arc<Self>,
        made: &Path,
        content: impl Read + Send,
        blob: Option<&(Digest, u64)>,
        diff_id: &Digest,
    ) -> Result<LayerLease, PullError> {
        let internal = |error| {
            let message = "cannot create the directory of a layer";
            PullError::because(PullErrorKind::Internal, message, error)
        };
        let tree = made.join("fs");
        std::fs::create_dir(made).map_err(internal)?;
        open_directory(&tree).map_err(internal)?;
        let algorithm = blob.map_or(diff_id.algorithm(), |(blob, _)| blob.algorithm());
        let limits = &self.settings().limits.unpack;
        let algorithms = (algorithm, diff_id.algorithm());
        let found = unpack::unpack(content, algorithms, &tree, limits)?;
        check_digests(&found, blob, diff_id)?;
        if !found.applied.left_out.is_empty() {
            tracing::warn!(layer = %diff_id, devices = ?found.applied.left_out, "Skipped device nodes of the layer");
        }
        Ok(self.commit_layer(made, diff_id, &found.applied)?)
    }
}

fn check_digests(
    found: &UnpackedLayer,
    blob: Option<&(Digest, u64)>,
    diff_id: &Digest,
) -> Result<(), PullError> {
    let refused = |message: String| PullError::new(PullErrorKind::Refused, message);
    if let Some((digest, size)) = blob {
        if found.blob_bytes != *size {
            return Err(refused(format!(
                "the layer {digest} has {} bytes, the manifest says {size}",
                found.blob_bytes
            )));
        }
        if found.blob != *digest {
            return Err(refused(format!(
                "the layer {digest} does not match its digest, which is {}",
                found.blob
            )));
        }
    }
    if found.diff_id != *diff_id {
        return Err(refused(format!(
            "the uncompressed layer has the digest {}, the image configuration says {diff_id}",
            found.diff_id
        )));
    }
    Ok(())
}

/// An image in an archive, before its layers are read.
pub(crate) struct ArchivedImage {
    id: ImageId,
    config: Config,
    config_file: String,
    manifest: Option<String>,
    layers: Vec<ArchivedLayer>,
    names: Vec<String>,
    /// The digest of its manifest or index.
    digest: Option<Digest>,
}

struct ArchivedLayer {
    path: String,
    blob: Option<(Digest, u64)>,
}

impl ArchivedImage {
    fn shown(&self) -> String {
        self.names
            .first()
            .cloned()
            .unwrap_or_else(|| self.id.to_string())
    }
}

/// Converts the error of an image to that of its archive.
fn of_image(path: &Path, image: &str) -> impl FnOnce(PullError) -> LoadError + use<> {
    let (path, image) = (path.to_owned(), image.to_owned());
    move |source| LoadError::Image {
        path,
        image,
        source,
    }
}

/// Checks that there is one diff ID per layer, and not too many layers.
pub(crate) fn check_count(config: &Config, layers: usize, most: usize) -> Result<(), PullError> {
    let refused = |message: String| Err(PullError::new(PullErrorKind::Refused, message));
    if config.diff_ids.len() != layers {
        return refused(format!(
            "the manifest has {layers} layers, the image configuration {}",
            config.diff_ids.len()
        ));
    }
    if layers > most {
        return refused(format!("the image has {layers} layers, more than {most}"));
    }
    Ok(())
}

/// A configuration file, its text, and the image's identifier.
pub(crate) fn read_config(bytes: Vec<u8>) -> Result<(ImageId, Config, String), PullError> {
    let id = ImageId(Digest::of(&bytes));
    let config = parse_config(&bytes)?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let message = "the image configuration is not UTF-8 text";
        PullError::because(PullErrorKind::Refused, message, error)
    })?;
    Ok((id, config, text))
}

#[cfg(test)]
mod tests;
