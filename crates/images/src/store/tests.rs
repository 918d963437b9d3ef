//! What is kept, shared, removed, and found again after a crash.

use std::{fs, os::unix::fs::MetadataExt as _};

use rubelet_oci::IdMapping;

use super::*;
use crate::{
    LoadRequest, OpenError, Platform,
    test_image::{Blobs, directory, layer, names, open, settings},
};

/// Loads an image with these layers.
async fn load(store: &Arc<ImageStore>, name: &str, layers: &[Vec<u8>], marker: &str) -> Arc<Image> {
    let dir = directory();
    let mut blobs = Blobs::default();
    let image = blobs.image(layers, &Platform::host(), marker);
    blobs.layout(dir.path(), &[(name, image)]);
    let request = LoadRequest {
        path: dir.path().to_owned(),
        name: None,
    };
    store.load(request).await.unwrap().remove(0).image
}

fn layers(store: &ImageStore) -> usize {
    // Beside them there is the empty one.
    names(&store.directories.layers()).len() - 1
}

#[tokio::test]
async fn an_image_is_found_by_each_of_its_names() {
    if !rubelet_needs::root() {
        return;
    }
    let dir = directory();
    let store = open(dir.path()).await;
    let image = load(
        &store,
        "docker.io/library/app:1",
        &[layer(&[("x", "1")])],
        "a",
    )
    .await;
    let id = image.id.to_string();
    for name in [
        "app:1",
        "docker.io/library/app:1",
        &id,
        &id[7..],
        &id[7..20],
        &id[..20],
    ] {
        assert_eq!(store.find(name).as_ref(), Some(&image), "{name}");
    }
    assert!(store.find(&image.repo_digests[0]).is_some());
    for name in ["app", "app:2", "r.test/app:1", "", "sha256:", "zzz"] {
        assert_eq!(store.find(name), None, "{name}");
    }
    assert!(image.size > 0);
    let details = store.inspect("app:1").await.unwrap();
    assert!(details.config_file.contains("MARKER=a") && details.manifest.is_some());
}

#[tokio::test]
async fn layers_go_with_the_last_one_who_needs_them() {
    if !rubelet_needs::root() {
        return;
    }
    let dir = directory();
    let store = open(dir.path()).await;
    let (base, one, two) = (
        layer(&[("b", "b")]),
        layer(&[("x", "1")]),
        layer(&[("x", "2")]),
    );
    let first = load(&store, "r.test/a:1", &[base.clone(), one], "a").await;
    load(&store, "r.test/b:1", &[base.clone(), two], "b").await;
    assert_eq!(layers(&store), 3);
    store.prepare_rootfs("c1", &first.id, None).await.unwrap();
    let removed = store.remove("r.test/a:1").await.unwrap();
    assert_eq!(removed.image.as_ref(), Some(&first.id));
    assert_eq!(
        (layers(&store), store.list().len()),
        (3, 1),
        "the container has it still"
    );
    assert!(store.prepare_rootfs("c2", &first.id, None).await.is_err());
    assert!(store.rootfs("c1").unwrap().lower[0].join("x").exists());
    store.remove_rootfs("c1").await.unwrap();
    assert_eq!(layers(&store), 2);
    assert_eq!(
        store.remove("r.test/a:1").await.unwrap(),
        RemovalResult::default()
    );
    store.remove("r.test/b:1").await.unwrap();
    assert_eq!(
        (layers(&store), store.fs_info().images),
        (0, DiskUsage::default())
    );
    assert_eq!(names(&store.directories.ingest()), [""; 0]);
}

#[tokio::test]
async fn images_that_a_container_mounts_keep_their_layers_as_long_as_it_is_there() {
    if !rubelet_needs::root() {
        return;
    }
    let dir = directory();
    let store = open(dir.path()).await;
    let (base, more) = (layer(&[("b", "b")]), layer(&[("x", "1")]));
    let own = load(&store, "r.test/own:1", std::slice::from_ref(&base), "own").await;
    let volume = load(&store, "r.test/volume:1", &[base, more], "volume").await;
    let none = load(&store, "r.test/none:1", &[], "none").await;
    let images = [volume.id.clone(), none.id.clone()];
    assert!(store.hold_volumes("c", &images).await.is_err());
    store.prepare_rootfs("c", &own.id, None).await.unwrap();
    let trees = store.hold_volumes("c", &images).await.unwrap();
    assert_eq!((trees[0].len(), trees[1].len()), (2, 1));
    assert!(trees[0][0].join("x").exists() && trees[0][1].join("b").exists());
    for image in [&own, &volume, &none] {
        store.remove(&image.id.to_string()).await.unwrap();
    }
    assert!(store.hold_volumes("c", &images).await.is_err());

    // So does a restarted runtime.
    drop(store);
    let store = open(dir.path()).await;
    assert_eq!(layers(&store), 2);
    assert!(trees[0][0].join("x").exists());
    store.remove_rootfs("c").await.unwrap();
    assert_eq!(layers(&store), 0);
}

#[tokio::test]
async fn a_tag_moves_to_the_image_that_came_last() {
    if !rubelet_needs::root() {
        return;
    }
    let dir = directory();
    let store = open(dir.path()).await;
    let old = load(&store, "r.test/a:1", &[layer(&[("x", "1")])], "old").await;
    let new = load(&store, "r.test/a:1", &[layer(&[("x", "2")])], "new").await;
    assert_eq!(store.find("r.test/a:1").unwrap().id, new.id);
    assert!(
        store
            .find(&old.id.to_string())
            .unwrap()
            .repo_tags
            .is_empty()
    );
    drop(store);
    let store = open(dir.path()).await;
    assert_eq!(store.find("r.test/a:1").unwrap().id, new.id);
    assert!(
        store
            .find(&old.id.to_string())
            .unwrap()
            .repo_tags
            .is_empty()
    );
}

#[tokio::test]
async fn a_name_can_be_taken_away_alone() {
    if !rubelet_needs::root() {
        return;
    }
    let dir = directory();
    let store = open(dir.path()).await;
    let content = [layer(&[("x", "1")])];
    load(&store, "r.test/a:1", &content, "a").await;
    load(&store, "r.test/a:2", &content, "a").await;
    let removed = store.untag("r.test/a:1").await.unwrap();
    assert_eq!(
        (removed.image, removed.untagged),
        (None, vec!["r.test/a:1".to_owned()])
    );
    assert!(store.find("r.test/a:1").is_none() && store.find("r.test/a:2").is_some());
    let removed = store.untag("r.test/a:2").await.unwrap();
    assert!(removed.image.is_some() && store.list().is_empty());
    assert_eq!(layers(&store), 0);
}

#[tokio::test]
async fn the_next_process_finds_all_again() {
    if !rubelet_needs::root() {
        return;
    }
    let dir = directory();
    let store = open(dir.path()).await;
    let image = load(&store, "r.test/a:1", &[layer(&[("x", "1")])], "a").await;
    let rootfs = store.prepare_rootfs("c1", &image.id, None).await.unwrap();
    store.pin("r.test/a:1", true).await.unwrap();
    let used = store.fs_info().images;
    let second = ImageStore::open(dir.path(), settings()).await;
    assert!(matches!(second, Err(OpenError::InUse(_))));
    drop(store);
    let store = open(dir.path()).await;
    let found = store.find("r.test/a:1").unwrap();
    assert_eq!(
        (found.id.clone(), found.size, found.pinned),
        (image.id.clone(), image.size, true)
    );
    assert_eq!(store.rootfs("c1").unwrap(), rootfs);
    assert_eq!(
        (store.snapshots(), store.fs_info().images),
        (vec!["c1".to_owned()], used)
    );
    // The layers are still in use by the container.
    store.remove("r.test/a:1").await.unwrap();
    assert_eq!(layers(&store), 1);
    drop(store);
    let store = open(dir.path()).await;
    assert_eq!(layers(&store), 1);
    store.remove_rootfs("c1").await.unwrap();
    assert_eq!(layers(&store), 0);
}

#[tokio::test]
async fn half_things_are_thrown_away() {
    if !rubelet_needs::root() {
        return;
    }
    let dir = directory();
    let store = open(dir.path()).await;
    let whole = load(&store, "r.test/whole:1", &[layer(&[("x", "1")])], "whole").await;
    let half = load(&store, "r.test/half:1", &[layer(&[("x", "2")])], "half").await;
    let cut = load(&store, "r.test/cut:1", &[layer(&[("x", "3")])], "cut").await;
    // A layer without its record, one that is gone, a record cut in half, a pull that was cut off.
    fs::remove_file(store.directories.layer(&half.layers[0]).join("layer.json")).unwrap();
    let record = store.directories.image(&cut.id);
    let text = fs::read(&record).unwrap();
    fs::write(&record, &text[..text.len() / 2]).unwrap();
    fs::create_dir_all(dir.path().join("ingest/7/fs/deep")).unwrap();
    fs::write(dir.path().join("images/.x.json.tmp"), "half").unwrap();
    drop(store);
    let store = open(dir.path()).await;
    let found: Vec<_> = store.list().iter().map(|image| image.id.clone()).collect();
    assert_eq!(found, std::slice::from_ref(&whole.id));
    assert!(!store.directories.image(&half.id).exists());
    assert_eq!(names(&dir.path().join("ingest")), [""; 0]);
    assert_eq!(
        layers(&store),
        2,
        "the layer of the damaged record waits for its image"
    );
    store.sweep(true);
    assert_eq!(layers(&store), 1);
    load(&store, "r.test/cut:1", &[layer(&[("x", "3")])], "cut").await;
    assert!(store.find("r.test/cut:1").is_some());
}

#[tokio::test]
async fn a_root_file_system_is_the_containers_own() {
    if !rubelet_needs::root() {
        return;
    }
    let dir = directory();
    let store = open(dir.path()).await;
    let image = load(&store, "r.test/a:1", &[layer(&[("x", "1")])], "a").await;
    let uids = vec![IdMapping {
        container_id: 0,
        host_id: 100_000,
        size: 65_536,
    }];
    let mappings = IdMappings {
        gids: uids.clone(),
        uids,
    };
    let rootfs = store
        .prepare_rootfs("c1", &image.id, Some(&mappings))
        .await
        .unwrap();
    let meta = fs::metadata(&rootfs.upper).unwrap();
    assert_eq!(
        (meta.uid(), meta.gid(), meta.mode() & 0o7777),
        (100_000, 100_000, 0o755)
    );
    let again = store.prepare_rootfs("c1", &image.id, None).await;
    assert!(
        matches!(again, Err(StoreError::RootfsExists(_))),
        "{again:?}"
    );
    fs::write(rootfs.upper.join("new"), vec![1; 50_000]).unwrap();
    let usage = store.rootfs_usage("c1").await.unwrap();
    assert!(usage.bytes >= 50_000 && usage.inodes == 2, "{usage:?}");
    assert_eq!(store.fs_info().containers, usage);
    store.remove_rootfs("c1").await.unwrap();
    store.remove_rootfs("c1").await.unwrap();
    assert!(!rootfs.upper.exists() && store.snapshots().is_empty());
    assert!(store.rootfs_usage("c1").await.is_err() && store.rootfs("c1").is_err());
    for id in ["", "..", ".x", "a/b", &"x".repeat(200)] {
        assert!(matches!(
            store.prepare_rootfs(id, &image.id, None).await,
            Err(StoreError::ContainerId(_))
        ));
        assert!(store.remove_rootfs(id).await.is_err());
    }
}

#[tokio::test]
async fn an_image_without_content_has_an_empty_root() {
    if !rubelet_needs::root() {
        return;
    }
    let dir = directory();
    let store = open(dir.path()).await;
    for (name, content) in [
        ("r.test/none:1", vec![]),
        ("r.test/empty:1", vec![layer(&[])]),
    ] {
        let image = load(&store, name, &content, name).await;
        let rootfs = store
            .prepare_rootfs(name.get(7..8).unwrap(), &image.id, None)
            .await
            .unwrap();
        assert_eq!(rootfs.lower.len(), 1);
        assert_eq!(names(&rootfs.lower[0]), [""; 0]);
    }
}

#[tokio::test]
async fn pinned_images_are_marked_by_settings() {
    if !rubelet_needs::root() {
        return;
    }
    let dir = directory();
    let mut settings = settings();
    settings.pinned = vec!["app:1".into()];
    let store = ImageStore::open(dir.path(), settings.clone())
        .await
        .unwrap();
    let image = load(
        &store,
        "docker.io/library/app:1",
        &[layer(&[("x", "1")])],
        "a",
    )
    .await;
    assert!(image.pinned);
    settings.pinned = vec!["not a name".into()];
    let other = directory();
    let refused = ImageStore::open(other.path(), settings).await;
    assert!(matches!(refused, Err(OpenError::Pinned { .. })));
}

#[tokio::test]
async fn directories_without_an_entry_keep_the_attributes_from_below() {
    if !rubelet_needs::root() {
        return;
    }
    let directories = |entries: &[(&str, u32, u64)]| {
        let mut builder = tar::Builder::new(Vec::new());
        for (path, mode, uid) in entries {
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(tar::EntryType::Directory);
            header.set_mode(*mode);
            header.set_uid(*uid);
            header.set_gid(0);
            header.set_mtime(0);
            header.set_size(0);
            builder.append_data(&mut header, path, &b""[..]).unwrap();
        }
        builder.into_inner().unwrap()
    };
    let base = directories(&[
        ("./", 0o700, 0),
        ("tmp", 0o1777, 0),
        ("home", 0o711, 0),
        ("home/me", 0o700, 1000),
        ("gone", 0o700, 0),
        ("own", 0o700, 0),
    ]);
    let top = layer(&[
        ("tmp/x", "1"),
        ("home/me/.config/y", "1"),
        ("gone/.wh..wh..opq", ""),
        ("gone/z", "1"),
        ("new/n", "1"),
    ]);
    let own = [
        directories(&[("own", 0o750, 0)])[..512].to_vec(),
        layer(&[("own/x", "1")]),
    ]
    .concat();
    let dir = directory();
    let store = open(dir.path()).await;
    let image = load(&store, "r.test/a:1", &[base, top, own], "a").await;
    assert_eq!(image.layers.len(), 4);
    let rootfs = store.prepare_rootfs("c", &image.id, None).await.unwrap();
    let merged = directory();
    let lower: Vec<_> = rootfs
        .lower
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let options = format!(
        "lowerdir={},upperdir={},workdir={}",
        lower.join(":"),
        rootfs.upper.display(),
        rootfs.work.display()
    );
    let options = std::ffi::CString::new(options).unwrap();
    let flags = rustix::mount::MountFlags::empty();
    rustix::mount::mount(
        "overlay",
        merged.path(),
        "overlay",
        flags,
        options.as_c_str(),
    )
    .unwrap();
    let found: Vec<_> = [
        "",
        "tmp",
        "home",
        "home/me",
        "home/me/.config",
        "gone",
        "new",
        "own",
    ]
    .iter()
    .map(|path| fs::metadata(merged.path().join(path)).unwrap())
    .map(|meta| (meta.mode() & 0o7777, meta.uid()))
    .collect();
    rustix::mount::unmount(merged.path(), rustix::mount::UnmountFlags::DETACH).unwrap();
    assert_eq!(
        found,
        [
            (0o700, 0),
            (0o1777, 0),
            (0o711, 0),
            (0o700, 1000),
            (0o755, 0),
            (0o755, 0),
            (0o755, 0),
            (0o750, 0)
        ]
    );
    store.remove_rootfs("c").await.unwrap();
    store.remove("r.test/a:1").await.unwrap();
    assert_eq!(layers(&store), 0);
}

#[tokio::test]
async fn a_full_disk_is_reported_and_leaves_nothing_incomplete() {
    if !rubelet_needs::root() {
        return;
    }
    let dir = directory();
    let disk = dir.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let flags = rustix::mount::MountFlags::empty();
    rustix::mount::mount("tmpfs", &disk, "tmpfs", flags, c"size=2m").unwrap();
    let store = open(&disk).await;
    load(&store, "r.test/small:1", &[layer(&[("x", "1")])], "small").await;
    let mut blobs = Blobs::default();
    let content = "0123456789abcdef".repeat(1 << 18);
    let large = [layer(&[("y", "1")]), layer(&[("large", &content)])];
    let image = blobs.image(&large, &Platform::host(), "large");
    let layout = dir.path().join("layout");
    blobs.layout(&layout, &[("r.test/large:1", image)]);
    let failed = store
        .load(LoadRequest {
            path: layout,
            name: None,
        })
        .await;
    let left = (names(&disk.join("ingest")), store.list().len());
    drop(store);
    let store = open(&disk).await;
    let found: Vec<_> = store
        .list()
        .iter()
        .flat_map(|image| image.repo_tags.clone())
        .collect();
    drop(store);
    rustix::mount::unmount(&disk, rustix::mount::UnmountFlags::DETACH).unwrap();
    let crate::LoadError::Image { source, .. } = failed.unwrap_err() else {
        panic!()
    };
    assert_eq!(
        source.kind(),
        crate::PullErrorKind::NoSpace,
        "{}",
        rubelet_base::ErrorChain(&source)
    );
    assert_eq!(left, (vec![], 1));
    assert_eq!(found, ["r.test/small:1"]);
}
