//! Manifests of registries, valid and invalid.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn digest(seed: u8) -> String {
    Digest::of(&[seed]).to_string()
}

fn manifest(kind: &str) -> Value {
    let (manifest, config, layer) = match kind {
        "oci" => (
            "application/vnd.oci.image.manifest.v1+json",
            "application/vnd.oci.image.config.v1+json",
            "application/vnd.oci.image.layer.v1.tar+gzip",
        ),
        _ => (
            "application/vnd.docker.distribution.manifest.v2+json",
            "application/vnd.docker.container.image.v1+json",
            "application/vnd.docker.image.rootfs.diff.tar.gzip",
        ),
    };
    json!({
        "schemaVersion": 2,
        "mediaType": manifest,
        "config": {"mediaType": config, "digest": digest(1), "size": 10, "annotations": null},
        "layers": [{"mediaType": layer, "digest": digest(2), "size": 20, "urls": []}],
    })
}

fn read(value: &Value, claimed: Option<&str>) -> Result<Document, ManifestError> {
    parse(value.to_string().as_bytes(), claimed)
}

#[test]
fn both_kinds_of_manifests_are_read() {
    for kind in ["oci", "docker"] {
        let Document::Manifest(found) = read(&manifest(kind), None).unwrap() else {
            panic!("{kind}")
        };
        assert_eq!((found.config.size, found.layers[0].size), (10, 20));
    }
    // OCI leaves the media type out at times; the registry says it then.
    let mut silent = manifest("oci");
    silent.as_object_mut().unwrap().remove("mediaType");
    assert!(
        read(
            &silent,
            Some("application/vnd.oci.image.manifest.v1+json; charset=utf-8")
        )
        .is_ok()
    );
    assert!(read(&silent, None).is_ok());
    assert!(read(&silent, Some("application/vnd.oci.image.index.v1+json")).is_err());
}

#[test]
fn the_image_for_this_machine_is_chosen() {
    let entry = |seed, architecture: &str, variant: &str| {
        json!({
            "mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": digest(seed), "size": 1,
            "platform": {"os": "linux", "architecture": architecture, "variant": variant},
        })
    };
    let index = json!({
        "schemaVersion": 2,
        "manifests": [
            entry(1, "unknown", ""), entry(2, "arm64", "v8"), entry(3, "amd64", ""), entry(4, "amd64", "v3"),
            {"mediaType": "application/x.other", "digest": digest(5), "size": 1},
            {"digest": digest(6), "size": 1},
        ],
    });
    let Document::Index(manifests) = read(&index, None).unwrap() else {
        panic!()
    };
    let chosen = |platform: Platform| -> Vec<String> {
        choose(&manifests, &platform)
            .iter()
            .map(|m| m.digest.to_string())
            .collect()
    };
    assert_eq!(
        chosen(Platform::new("linux", "amd64", "v1")),
        [digest(3), digest(6)]
    );
    assert_eq!(
        chosen(Platform::new("linux", "amd64", "v3")),
        [digest(4), digest(3), digest(6)]
    );
    assert_eq!(
        chosen(Platform::new("linux", "arm64", "v8")),
        [digest(2), digest(6)]
    );
}

#[test]
fn what_could_be_read_in_two_ways_is_refused() {
    let mut both = manifest("oci");
    both["manifests"] = json!([]);
    assert!(matches!(
        read(&both, None),
        Err(ManifestError::Ambiguous(_))
    ));
    let index = Some("application/vnd.oci.image.index.v1+json");
    assert!(matches!(
        read(&manifest("oci"), index),
        Err(ManifestError::Ambiguous(_))
    ));
}

#[test]
fn documents_that_are_not_images_have_different_errors() {
    let first = json!({"schemaVersion": 1, "fsLayers": []});
    assert!(matches!(read(&first, None), Err(ManifestError::Schema1)));
    let mut chart = manifest("oci");
    chart["config"]["mediaType"] = json!("application/vnd.cncf.helm.config.v1+json");
    assert!(matches!(read(&chart, None), Err(ManifestError::Media(_))));
    let mut encrypted = manifest("oci");
    encrypted["layers"][0]["mediaType"] =
        json!("application/vnd.oci.image.layer.v1.tar+gzip+encrypted");
    assert!(matches!(
        read(&encrypted, None),
        Err(ManifestError::Layer(_))
    ));
    let mut path = manifest("oci");
    path["layers"][0]["digest"] = json!("sha256:../../../etc/passwd");
    assert!(matches!(read(&path, None), Err(ManifestError::Json { .. })));
    for value in [
        json!({}),
        json!([]),
        json!({"schemaVersion": 2}),
        json!({"schemaVersion": 3}),
    ] {
        assert!(read(&value, None).is_err(), "{value}");
    }
}

#[test]
fn a_configuration_file_names_its_layers() {
    let text = json!({"os": "linux", "architecture": "amd64", "rootfs": {"type": "layers", "diff_ids": [digest(1)]},
        "config": {"Env": ["A=b"], "Cmd": null}});
    let config = parse_config(text.to_string().as_bytes()).unwrap();
    assert_eq!(config.diff_ids[0].to_string(), digest(1));
    assert_eq!(config.file.config.env, ["A=b"]);
    assert!(parse_config(br#"{"rootfs":{"type":"layers","diff_ids":["x"]}}"#).is_err());
    assert!(parse_config(b"[]").is_err());
}

proptest! {
    #[test]
    fn no_damage_makes_the_parsers_panic(flips in prop::collection::vec((0usize..600, any::<u8>()), 0..6)) {
        let mut bytes = manifest("oci").to_string().into_bytes();
        for (at, value) in flips {
            let at = at % bytes.len();
            bytes[at] = value;
        }
        let _ = parse(&bytes, None);
        let _ = parse_config(&bytes);
    }
}
