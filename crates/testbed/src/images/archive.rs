//! Images in an archive of the OCI image layout.

use std::collections::BTreeMap;

use anyhow::Result;
use aws_lc_rs::digest::{SHA256, digest};
use serde_json::{Value, json};
use tar::{Builder, Header};

use super::Image;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";

/// An archive with all `images`, each made of the one `layer`. An empty name means no name.
pub(super) fn build(layer: &[u8], images: &[Image]) -> Result<Vec<u8>> {
    let mut blobs = Blobs::default();
    let layer = blobs.add(LAYER, layer.to_vec());
    let mut manifests = Vec::new();
    for (name, config) in images {
        let config = json!({
            "architecture": architecture(),
            "os": "linux",
            "config": config,
            "rootfs": { "type": "layers", "diff_ids": [layer["digest"]] },
        });
        let config = blobs.add(CONFIG, serde_json::to_vec(&config)?);
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": config,
            "layers": [layer],
        });
        let mut entry = blobs.add(MANIFEST, serde_json::to_vec(&manifest)?);
        if !name.is_empty() {
            entry["annotations"] = json!({ "io.containerd.image.name": name });
        }
        manifests.push(entry);
    }
    let index = json!({ "schemaVersion": 2, "manifests": manifests });
    let mut archive = Builder::new(Vec::new());
    add(
        &mut archive,
        "oci-layout",
        br#"{"imageLayoutVersion":"1.0.0"}"#,
    )?;
    add(&mut archive, "index.json", &serde_json::to_vec(&index)?)?;
    for (digest, bytes) in &blobs.0 {
        add(&mut archive, &format!("blobs/sha256/{digest}"), bytes)?;
    }
    Ok(archive.into_inner()?)
}

/// Contents by their SHA-256 in hexadecimal digits.
#[derive(Default)]
struct Blobs(BTreeMap<String, Vec<u8>>);

impl Blobs {
    /// Adds `bytes`; returns the descriptor.
    fn add(&mut self, media_type: &str, bytes: Vec<u8>) -> Value {
        let digest = hex::encode(digest(&SHA256, &bytes));
        let descriptor = json!({
            "mediaType": media_type,
            "digest": format!("sha256:{digest}"),
            "size": bytes.len(),
        });
        self.0.insert(digest, bytes);
        descriptor
    }
}

fn add(archive: &mut Builder<Vec<u8>>, path: &str, bytes: &[u8]) -> Result<()> {
    let mut header = Header::new_gnu();
    header.set_mode(0o644);
    header.set_mtime(0);
    header.set_size(bytes.len() as u64);
    archive.append_data(&mut header, path, bytes)?;
    Ok(())
}

/// This machine's architecture as OCI spells it.
pub(crate) fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn every_digest_in_the_archive_matches_a_blob() {
        let archive = build(
            b"a layer",
            &[
                ("localhost/a:1".to_owned(), json!({})),
                ("localhost/b:1".to_owned(), json!({"User": "7"})),
            ],
        );
        let archive = archive.unwrap();
        let mut files = BTreeMap::new();
        for entry in tar::Archive::new(archive.as_slice()).entries().unwrap() {
            let mut entry = entry.unwrap();
            let path = entry.path().unwrap().display().to_string();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).unwrap();
            files.insert(path, bytes);
        }
        let read = |descriptor: &Value| -> Vec<u8> {
            let digest = descriptor["digest"].as_str().unwrap().replace(':', "/");
            let bytes = files[&format!("blobs/{digest}")].clone();
            assert_eq!(descriptor["size"], bytes.len());
            bytes
        };
        let index: Value = serde_json::from_slice(&files["index.json"]).unwrap();
        let manifests = index["manifests"].as_array().unwrap();
        assert_eq!(
            manifests[1]["annotations"]["io.containerd.image.name"],
            "localhost/b:1"
        );
        for manifest in manifests {
            let manifest: Value = serde_json::from_slice(&read(manifest)).unwrap();
            assert_eq!(read(&manifest["layers"][0]), b"a layer");
            let config: Value = serde_json::from_slice(&read(&manifest["config"])).unwrap();
            assert_eq!(
                config["rootfs"]["diff_ids"][0],
                manifest["layers"][0]["digest"]
            );
        }
    }
}
