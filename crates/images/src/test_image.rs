//! Images made for the tests of this crate, and stores to keep them in.

use std::{collections::BTreeMap, fs, io::Write as _, path::Path, sync::Arc};

use serde_json::{Value, json};

use crate::{Digest, ImageSettings, ImageStore, Limits, Platform, unpack::UnpackLimits};

pub(crate) fn directory() -> tempfile::TempDir {
    tempfile::Builder::new()
        .prefix("rbt-images-")
        .tempdir()
        .unwrap()
}

pub(crate) fn settings() -> ImageSettings {
    let unpack = UnpackLimits {
        spare_bytes: 0,
        spare_inodes: 0,
        ..UnpackLimits::default()
    };
    ImageSettings {
        limits: Limits {
            unpack,
            ..Limits::default()
        },
        ..ImageSettings::default()
    }
}

pub(crate) async fn open(root: &Path) -> Arc<ImageStore> {
    ImageStore::open(root, settings()).await.unwrap()
}

/// Names in a directory, sorted.
pub(crate) fn names(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// A plain layer with these files.
pub(crate) fn layer(files: &[(&str, &str)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        header.set_mtime(0);
        header.set_uid(0);
        header.set_gid(0);
        header.set_size(content.len() as u64);
        builder
            .append_data(&mut header, path, content.as_bytes())
            .unwrap();
    }
    builder.into_inner().unwrap()
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Blobs by their digest.
#[derive(Clone, Default)]
pub(crate) struct Blobs(pub(crate) BTreeMap<String, Vec<u8>>);

impl Blobs {
    /// Adds a blob and describes it.
    pub(crate) fn add(&mut self, media_type: &str, bytes: Vec<u8>) -> Value {
        let digest = Digest::of(&bytes).to_string();
        let size = bytes.len();
        self.0.insert(digest.clone(), bytes);
        json!({"mediaType": media_type, "digest": digest, "size": size})
    }

    /// Adds an image of plain layers, compressed by turns, and describes its manifest.
    pub(crate) fn image(&mut self, layers: &[Vec<u8>], platform: &Platform, marker: &str) -> Value {
        let diff_ids: Vec<String> = layers.iter().map(|l| Digest::of(l).to_string()).collect();
        let config = json!({
            "os": platform.os, "architecture": platform.architecture,
            "config": {"Env": [format!("MARKER={marker}")], "Cmd": ["/bin/app"]},
            "rootfs": {"type": "layers", "diff_ids": diff_ids},
        });
        let config = config.to_string().into_bytes();
        let config = self.add("application/vnd.oci.image.config.v1+json", config);
        let layers: Vec<Value> = layers
            .iter()
            .enumerate()
            .map(|(at, plain)| match at % 3 {
                0 => self.add("application/vnd.oci.image.layer.v1.tar+gzip", gzip(plain)),
                1 => {
                    let bytes = zstd::encode_all(plain.as_slice(), 3).unwrap();
                    self.add("application/vnd.oci.image.layer.v1.tar+zstd", bytes)
                }
                _ => self.add("application/vnd.oci.image.layer.v1.tar", plain.clone()),
            })
            .collect();
        let media_type = "application/vnd.oci.image.manifest.v1+json";
        let manifest = json!({
            "schemaVersion": 2, "mediaType": media_type, "config": config, "layers": layers,
        });
        let mut described = self.add(media_type, manifest.to_string().into_bytes());
        described["platform"] = json!({"os": platform.os, "architecture": platform.architecture});
        described
    }

    /// Adds an index of manifests and describes it.
    pub(crate) fn index(&mut self, manifests: &[Value]) -> Value {
        let media_type = "application/vnd.oci.image.index.v1+json";
        let index = json!({"schemaVersion": 2, "mediaType": media_type, "manifests": manifests});
        self.add(media_type, index.to_string().into_bytes())
    }

    /// Writes an OCI layout whose index has these entries, each with a name.
    pub(crate) fn layout(&self, at: &Path, entries: &[(&str, Value)]) {
        fs::create_dir_all(at.join("blobs/sha256")).unwrap();
        fs::write(at.join("oci-layout"), r#"{"imageLayoutVersion": "1.0.0"}"#).unwrap();
        let entries: Vec<Value> = entries
            .iter()
            .map(|(name, described)| {
                let mut described = described.clone();
                described["annotations"] = json!({"org.opencontainers.image.ref.name": name});
                described
            })
            .collect();
        let index = json!({"schemaVersion": 2, "manifests": entries});
        fs::write(at.join("index.json"), index.to_string()).unwrap();
        for (digest, bytes) in &self.0 {
            fs::write(at.join("blobs").join(digest.replace(':', "/")), bytes).unwrap();
        }
    }
}
