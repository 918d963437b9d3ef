//! The image that is served.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};
use aws_lc_rs::digest::{SHA256, digest};
use serde_json::{Value, json};

use crate::images;

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// The documents that describe the image.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Form {
    /// An OCI manifest.
    #[default]
    Oci,
    /// A docker manifest.
    Docker,
    /// An OCI index that also has manifests for other platforms.
    Index,
}

/// The compression of the layer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Compression {
    /// None.
    #[default]
    None,
    /// With gzip.
    Gzip,
    /// With zstd.
    Zstd,
}

/// The image: its first document and its blobs by digest, each with its media type.
#[derive(Debug)]
pub(super) struct Content {
    top: String,
    layer: String,
    /// Manifests and indexes, in order of creation.
    documents: Vec<String>,
    blobs: BTreeMap<String, (String, Vec<u8>)>,
}

impl Content {
    pub(super) fn build(form: Form, compression: Compression) -> Result<Self> {
        // A unique image each time, configuration and layer, because a runtime does not pull what
        // it has.
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let note = format!("image {number} of process {}", std::process::id());
        let config = json!({ "Env": ["PATH=/bin"], "Cmd": ["sh"], "Labels": { "note": note } });
        let archive = images::archive_with_note(("served".to_owned(), config), &note)?;
        let mut files = BTreeMap::new();
        for entry in tar::Archive::new(archive.as_slice()).entries()? {
            let mut entry = entry?;
            let path = entry.path()?.display().to_string();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes)?;
            files.insert(path, bytes);
        }
        let index: Value = json_of(&files, "index.json")?;
        let inner = json_of(&files, &path_of(&digest_of(&index["manifests"][0])?))?;
        let mut blob = |descriptor: &Value| -> Result<Vec<u8>> {
            let path = path_of(&digest_of(descriptor)?);
            files.remove(&path).context("a blob is missing")
        };
        let config = blob(&inner["config"])?;
        let layer = packed(blob(&inner["layers"][0])?, compression)?;
        let mut content = Self {
            top: String::new(),
            layer: String::new(),
            documents: Vec::new(),
            blobs: BTreeMap::new(),
        };
        let (config_type, layer_type, manifest_type) = types(form, compression);
        let config = content.add(config_type, config);
        let layer = content.add(layer_type, layer);
        content.layer = digest_of(&layer)?;
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": manifest_type,
            "config": config,
            "layers": [layer],
        });
        let mut top = content.add(manifest_type, serde_json::to_vec(&manifest)?);
        content.documents.push(digest_of(&top)?);
        if form == Form::Index {
            let mut elsewhere = top.clone();
            elsewhere["platform"] = json!({ "os": "linux", "architecture": "mips64le" });
            top["platform"] = json!({ "os": "linux", "architecture": images::architecture() });
            let index = json!({
                "schemaVersion": 2,
                "mediaType": INDEX,
                "manifests": [elsewhere, top],
            });
            top = content.add(INDEX, serde_json::to_vec(&index)?);
            content.documents.push(digest_of(&top)?);
        }
        content.top = digest_of(&top)?;
        Ok(content)
    }

    /// The digest of every tag.
    pub(super) fn top(&self) -> &str {
        &self.top
    }

    /// Whether this is the layer, the only large blob.
    pub(super) fn is_layer(&self, digest: &str) -> bool {
        digest == self.layer
    }

    /// The media type and the bytes of a blob.
    pub(super) fn blob(&self, digest: &str) -> Option<(&str, &[u8])> {
        let (media_type, bytes) = self.blobs.get(digest)?;
        Some((media_type, bytes))
    }

    /// Blobs that manifests refer to: the configuration and the layer.
    pub(super) fn parts(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let blobs = self.blobs.iter();
        blobs
            .filter(|(digest, _)| !self.documents.contains(digest))
            .map(|(digest, (_, bytes))| (digest.as_str(), bytes.as_slice()))
    }

    /// The manifests with their media types, referenced ones first; the last one has the tag `1`,
    /// the others are identified by digest.
    pub(super) fn documents(&self) -> impl Iterator<Item = (&str, &str, &[u8])> {
        self.documents.iter().filter_map(|digest| {
            let (media_type, bytes) = self.blob(digest)?;
            let tag = if *digest == self.top { "1" } else { digest };
            Some((tag, media_type, bytes))
        })
    }

    /// Changes a byte of the layer without changing its digest.
    pub(super) fn spoil_layer(&mut self) {
        if let Some((_, bytes)) = self.blobs.get_mut(&self.layer)
            && let Some(byte) = bytes.iter_mut().rev().nth(2000)
        {
            *byte ^= 1;
        }
    }

    fn add(&mut self, media_type: &str, bytes: Vec<u8>) -> Value {
        let digest = format!("sha256:{}", hex::encode(digest(&SHA256, &bytes)));
        let descriptor = json!({
            "mediaType": media_type,
            "digest": digest,
            "size": bytes.len(),
        });
        self.blobs.insert(digest, (media_type.to_owned(), bytes));
        descriptor
    }
}

fn types(form: Form, compression: Compression) -> (&'static str, &'static str, &'static str) {
    let layer = match (form, compression) {
        (Form::Docker, _) => "application/vnd.docker.image.rootfs.diff.tar.gzip",
        (_, Compression::None) => "application/vnd.oci.image.layer.v1.tar",
        (_, Compression::Gzip) => "application/vnd.oci.image.layer.v1.tar+gzip",
        (_, Compression::Zstd) => "application/vnd.oci.image.layer.v1.tar+zstd",
    };
    match form {
        Form::Docker => (
            "application/vnd.docker.container.image.v1+json",
            layer,
            "application/vnd.docker.distribution.manifest.v2+json",
        ),
        Form::Oci | Form::Index => ("application/vnd.oci.image.config.v1+json", layer, MANIFEST),
    }
}

fn packed(layer: Vec<u8>, compression: Compression) -> Result<Vec<u8>> {
    Ok(match compression {
        Compression::None => layer,
        Compression::Gzip => {
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            gzip.write_all(&layer)?;
            gzip.finish()?
        }
        Compression::Zstd => zstd::encode_all(layer.as_slice(), 1)?,
    })
}

fn json_of(files: &BTreeMap<String, Vec<u8>>, path: &str) -> Result<Value> {
    let bytes = files
        .get(path)
        .with_context(|| format!("missing file {path}"))?;
    Ok(serde_json::from_slice(bytes)?)
}

fn digest_of(descriptor: &Value) -> Result<String> {
    let digest = descriptor["digest"].as_str();
    let digest = digest.with_context(|| format!("{descriptor} is not a descriptor"))?;
    Ok(digest.to_owned())
}

fn path_of(digest: &str) -> String {
    format!("blobs/{}", digest.replace(':', "/"))
}
