//! Archives as other tools write them, and damaged ones.

use std::{fs, path::Path, process::Command};

use rubelet_base::ErrorChain;
use serde_json::json;

use super::*;
use crate::test_image::{Blobs, directory, gzip, layer, names, open};

async fn load(store: &Arc<ImageStore>, path: &Path) -> Result<Vec<LoadedImage>, LoadError> {
    let path = path.to_owned();
    store.load(LoadRequest { path, name: None }).await
}

/// The archive of a directory's content.
fn archive_of(directory: &Path, to: &Path) {
    let made = Command::new("tar")
        .arg("-cf")
        .arg(to)
        .arg("-C")
        .arg(directory)
        .arg(".")
        .status();
    assert!(made.unwrap().success());
}

#[tokio::test]
async fn a_layout_is_loaded_from_a_directory_and_from_archives() {
    if !rubelet_needs::root() {
        return;
    }
    let dir = directory();
    let mut blobs = Blobs::default();
    let host = Platform::host();
    let layers = [
        layer(&[("bin/app", "1")]),
        layer(&[("etc/x", "2")]),
        layer(&[("top", "3")]),
    ];
    let image = blobs.image(&layers, &host, "layout");
    let other = blobs.image(&layers, &Platform::new("linux", "s390x", ""), "other");
    let index = blobs.index(&[other, image]);
    let layout = dir.path().join("layout");
    blobs.layout(&layout, &[("r.test/app:1", index.clone())]);
    let tar = dir.path().join("layout.tar");
    archive_of(&layout, &tar);
    let packed = dir.path().join("layout.tar.gz");
    fs::write(&packed, gzip(&fs::read(&tar).unwrap())).unwrap();
    for (number, path) in [layout, tar, packed].iter().enumerate() {
        let store = open(&dir.path().join(format!("store{number}"))).await;
        let loaded = load(&store, path).await.unwrap();
        assert_eq!(loaded[0].names, ["r.test/app:1"]);
        let image = store.find("r.test/app:1").unwrap();
        assert_eq!(image.config.env, ["MARKER=layout"]);
        let digest = index["digest"].as_str().unwrap();
        assert_eq!(image.repo_digests, [format!("r.test/app@{digest}")]);
        let rootfs = store.prepare_rootfs("c", &image.id, None).await.unwrap();
        assert_eq!(fs::read(rootfs.lower[2].join("bin/app")).unwrap(), b"1");
        assert_eq!(fs::read(rootfs.lower[0].join("top")).unwrap(), b"3");
        assert_eq!(
            names(&dir.path().join(format!("store{number}/ingest"))),
            [""; 0]
        );
    }
}

#[tokio::test]
async fn a_docker_archive_is_loaded_with_all_its_names() {
    if !rubelet_needs::root() {
        return;
    }
    let dir = directory();
    let image = dir.path().join("image");
    let bottom = layer(&[("bin/app", "1")]);
    let config = json!({
        "os": "linux", "architecture": Platform::host().architecture, "config": {"Cmd": ["/bin/app"]},
        "rootfs": {"type": "layers", "diff_ids": [Digest::of(&bottom).to_string(), Digest::of(&bottom).to_string()]},
    });
    fs::create_dir_all(image.join("aaa")).unwrap();
    fs::create_dir_all(image.join("bbb")).unwrap();
    fs::write(image.join("aaa/layer.tar"), &bottom).unwrap();
    // Older docker writes the same layer once.
    std::os::unix::fs::symlink("../aaa/layer.tar", image.join("bbb/layer.tar")).unwrap();
    fs::write(image.join("ccc.json"), config.to_string()).unwrap();
    let manifest = json!([{"Config": "ccc.json", "RepoTags": ["app:1", "r.test/app:2"], "Layers": ["aaa/layer.tar", "bbb/layer.tar"]}]);
    fs::write(image.join("manifest.json"), manifest.to_string()).unwrap();
    let tar = dir.path().join("image.tar");
    archive_of(&image, &tar);
    let store = open(&dir.path().join("store")).await;
    let loaded = load(&store, &tar).await.unwrap();
    assert_eq!(loaded[0].names.len(), 2);
    assert_eq!(loaded[0].image.repo_tags.len(), 2);
    let image = store.find("app:1").unwrap();
    assert_eq!(
        image.id.digest(),
        &Digest::of(config.to_string().as_bytes())
    );
    let rootfs = store.prepare_rootfs("c", &image.id, None).await.unwrap();
    assert_eq!(rootfs.lower.len(), 1, "overlayfs takes each directory once");
}

#[tokio::test]
async fn an_image_without_a_name_can_be_given_one() {
    if !rubelet_needs::root() {
        return;
    }
    let dir = directory();
    let mut blobs = Blobs::default();
    let image = blobs.image(&[layer(&[("x", "1")])], &Platform::host(), "a");
    blobs.layout(dir.path(), &[("latest", image)]);
    let store = open(&dir.path().join("store")).await;
    let loaded = load(&store, dir.path()).await.unwrap();
    assert!(loaded[0].names.is_empty() && loaded[0].image.repo_tags.is_empty());
    assert!(store.find(&loaded[0].image.id.to_string()).is_some());
    let request = LoadRequest {
        path: dir.path().to_owned(),
        name: Some("mine:3".into()),
    };
    store.load(request).await.unwrap();
    let image = store.find("mine:3").unwrap();
    assert_eq!(image.id, loaded[0].image.id);
    assert_eq!(store.list().len(), 1);
}

#[tokio::test]
async fn damaged_archives_leave_nothing_behind() {
    if !rubelet_needs::root() {
        return;
    }
    let dir = directory();
    let store = open(&dir.path().join("store")).await;
    let mut blobs = Blobs::default();
    let image = blobs.image(
        &[layer(&[("x", "1")]), layer(&[("y", "2")])],
        &Platform::host(),
        "a",
    );
    let foreign = blobs.image(
        &[layer(&[("x", "1")])],
        &Platform::new("linux", "s390x", ""),
        "b",
    );
    let digests: Vec<String> = blobs.0.keys().cloned().collect();
    for (number, digest) in digests.iter().enumerate() {
        let is_foreign = foreign["digest"] == **digest;
        let layout = dir.path().join(number.to_string());
        let mut damaged = blobs.clone();
        damaged.0.get_mut(digest).unwrap().push(b' ');
        damaged.layout(&layout, &[("r.test/app:1", image.clone())]);
        let loaded = load(&store, &layout).await;
        if loaded.is_ok() {
            // A blob of the other image.
            assert!(is_foreign || digests.len() > 5, "{digest}");
            store.remove("r.test/app:1").await.unwrap();
        }
    }
    let layout = dir.path().join("foreign");
    blobs.layout(&layout, &[("r.test/app:1", foreign)]);
    let error = load(&store, &layout).await.unwrap_err();
    assert!(
        ErrorChain(&error).to_string().contains("s390x"),
        "{}",
        ErrorChain(&error)
    );
    fs::write(dir.path().join("nothing.tar"), [0; 1024]).unwrap();
    assert!(matches!(
        load(&store, &dir.path().join("nothing.tar")).await,
        Err(LoadError::Form { .. })
    ));
    fs::write(dir.path().join("text"), "no archive at all").unwrap();
    assert!(matches!(
        load(&store, &dir.path().join("text")).await,
        Err(LoadError::Form { .. })
    ));
    assert!(matches!(
        load(&store, &dir.path().join("none")).await,
        Err(LoadError::Read { .. })
    ));
    assert!(store.list().is_empty());
    assert_eq!(names(&dir.path().join("store/ingest")), [""; 0]);
    store.sweep(true);
    assert_eq!(names(&dir.path().join("store/layers")), ["empty"]);
}
