//! Volumes of well-meaning and of hostile images.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    sync::Arc,
};

use rubelet_oci::IdMapping;

use crate::{
    Image, ImageStore, LoadRequest, Platform, StoreError,
    store::IdMappings,
    test_image::{Blobs, directory, open},
};

/// A layer that is put together from directories, links and files.
struct Layer(tar::Builder<Vec<u8>>);

impl Default for Layer {
    fn default() -> Self {
        Self(tar::Builder::new(Vec::new()))
    }
}

impl Layer {
    fn add(mut self, path: &str, kind: tar::EntryType, link: &str, text: &[u8]) -> Self {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(if kind.is_dir() { 0o750 } else { 0o4711 });
        header.set_mtime(1_000_000_000);
        header.set_uid(33);
        header.set_gid(34);
        header.set_size(text.len() as u64);
        match link {
            "" => self.0.append_data(&mut header, path, text).unwrap(),
            link => self.0.append_link(&mut header, path, link).unwrap(),
        }
        self
    }

    fn dir(self, path: &str) -> Self {
        self.add(path, tar::EntryType::Directory, "", b"")
    }

    fn file(self, path: &str, text: &str) -> Self {
        self.add(path, tar::EntryType::Regular, "", text.as_bytes())
    }

    fn link(self, path: &str, to: &str) -> Self {
        self.add(path, tar::EntryType::Symlink, to, b"")
    }

    fn hard(self, path: &str, to: &str) -> Self {
        self.add(path, tar::EntryType::Link, to, b"")
    }

    fn done(self) -> Vec<u8> {
        self.0.into_inner().unwrap()
    }
}

/// A store with an image of these layers, the lowest first, and the root file system `c` of it.
async fn prepared(
    dir: &Path,
    layers: Vec<Layer>,
    userns: Option<&IdMappings>,
) -> (Arc<ImageStore>, Arc<Image>) {
    let store = open(&dir.join("store")).await;
    let layout = dir.join("layout");
    fs::create_dir(&layout).unwrap();
    let mut blobs = Blobs::default();
    let layers: Vec<Vec<u8>> = layers.into_iter().map(Layer::done).collect();
    let image = blobs.image(&layers, &Platform::host(), "volumes");
    blobs.layout(&layout, &[("r.test/app:1", image)]);
    let request = LoadRequest {
        path: layout,
        name: None,
    };
    let image = store.load(request).await.unwrap().remove(0).image;
    store.prepare_rootfs("c", &image.id, userns).await.unwrap();
    (store, image)
}

fn paths(list: &[&str]) -> Vec<PathBuf> {
    list.iter().map(PathBuf::from).collect()
}

async fn resolve(store: &Arc<ImageStore>, path: &str) -> Result<PathBuf, StoreError> {
    let resolved = store.resolve_volumes("c", paths(&[path])).await?;
    assert_eq!(resolved[0].0, Path::new(path));
    Ok(resolved[0].1.clone())
}

#[tokio::test]
async fn a_volume_has_what_the_layers_show_together() {
    if !rubelet_needs::root() {
        return;
    }
    let dir = directory();
    let layers = vec![
        Layer::default()
            .dir("data")
            .file("data/below", "below")
            .file("data/replaced", "old")
            .file("data/removed", "")
            .dir("data/opaque")
            .file("data/opaque/hidden", "")
            .file("data/was-file", "")
            .dir("data/was-dir")
            .file("data/was-dir/hidden", ""),
        Layer::default()
            .dir("data")
            .file("data/replaced", "new")
            .file("data/.wh.removed", "")
            .dir("data/opaque")
            .file("data/opaque/.wh..wh..opq", "")
            .file("data/opaque/shown", "")
            .dir("data/was-file")
            .file("data/was-file/inside", "")
            .file("data/was-dir", "")
            .link("data/link", "/etc/shadow")
            .file("data/deep/er/file", "")
            .hard("data/twin", "data/deep/er/file"),
    ];
    let (store, _) = prepared(dir.path(), layers, None).await;
    let made = store.fill_volumes("c", paths(&["/data", "/missing"]), None);
    let made = made.await.unwrap();
    let [data, missing] = made.as_slice() else {
        panic!("{made:?}")
    };
    let read = |path: &str| fs::read_to_string(data.join(path)).unwrap();
    assert_eq!(
        (read("below"), read("replaced")),
        ("below".into(), "new".into())
    );
    for path in ["removed", "opaque/hidden", "was-dir/hidden"] {
        assert!(!data.join(path).exists(), "{path}");
    }
    for path in ["opaque/shown", "was-file/inside", "was-dir"] {
        assert!(data.join(path).exists(), "{path}");
    }
    assert_eq!(
        fs::read_link(data.join("link")).unwrap(),
        Path::new("/etc/shadow")
    );
    let twin = fs::metadata(data.join("twin")).unwrap();
    assert_eq!(
        twin.ino(),
        fs::metadata(data.join("deep/er/file")).unwrap().ino()
    );
    for (path, mode) in [("", 0o40750), ("opaque", 0o40750), ("below", 0o104_711)] {
        let found = fs::metadata(data.join(path)).unwrap();
        assert_eq!(
            (found.uid(), found.gid(), found.mode()),
            (33, 34, mode),
            "{path}"
        );
        assert_eq!(found.mtime(), 1_000_000_000, "{path}");
    }
    assert_eq!(fs::metadata(missing).unwrap().mode(), 0o40755);
    assert_eq!(fs::read_dir(missing).unwrap().count(), 0);

    // Counted, and gone with the root file system.
    let usage = store.rootfs_usage("c").await.unwrap();
    assert!(usage.inodes > 10, "{usage:?}");
    store.remove_rootfs("c").await.unwrap();
    assert!(!data.exists());
}

#[tokio::test]
async fn links_of_each_kind_and_depth_stay_in_the_image() {
    if !rubelet_needs::root() {
        return;
    }
    let dir = directory();
    let layers = vec![
        Layer::default()
            .dir("run/lock")
            .dir("var")
            .dir("a/b/c")
            .link("var/run", "/run")
            .link("var/relative", "../run/lock")
            .link("up", "../../../../../../../../../..")
            .link("a/b/c/up", "../../../../../../sys")
            .link("sys-link", "/sys/kernel")
            .link("chain", "var/run/../var/relative")
            .link("dangling", "no/where")
            .link("loop", "pool")
            .link("pool", "loop")
            .link("covered", "/etc")
            .file("file", ""),
        Layer::default().dir("covered"),
    ];
    let (store, _) = prepared(dir.path(), layers, None).await;
    for (path, leads_to) in [
        ("/run", "/run"),
        ("/var/run", "/run"),
        ("/var/run/lock/x/y", "/run/lock/x/y"),
        ("/var/relative", "/run/lock"),
        ("/up", "/"),
        ("/up/a/b", "/a/b"),
        ("/a/b/c/up", "/sys"),
        ("/a/b/c/up/kernel", "/sys/kernel"),
        ("/sys-link/debug", "/sys/kernel/debug"),
        ("/chain", "/run/lock"),
        ("/dangling/x", "/no/where/x"),
        ("/covered", "/covered"),
        ("/missing/../../x", "/x"),
    ] {
        let found = resolve(&store, path).await.unwrap();
        assert_eq!(found, Path::new(leads_to), "{path}");
    }
    for path in ["/loop", "/loop/x", "/file", "/file/x"] {
        let error = resolve(&store, path).await.unwrap_err();
        assert!(error.to_string().contains(path), "{error}");
    }
    // Nobody looks behind a link that was not resolved before.
    for path in ["/var/run", "/sys-link", "/up"] {
        let id = format!("c{}", path.replace('/', "-"));
        let image = store.list().remove(0);
        store.prepare_rootfs(&id, &image.id, None).await.unwrap();
        let filled = store.fill_volumes(&id, paths(&[path]), None).await;
        assert!(filled.is_err(), "{path}");
    }
}

#[tokio::test]
async fn what_belongs_to_a_volume_below_is_copied_once() {
    if !rubelet_needs::root() {
        return;
    }
    let dir = directory();
    let layer = Layer::default()
        .file("a/top", "")
        .file("a/b/middle", "")
        .file("a/b/c/low", "");
    let (store, _) = prepared(dir.path(), vec![layer], None).await;
    let volumes = paths(&["/a", "/a/b", "/a/b/c"]);
    let made = store.fill_volumes("c", volumes, None).await.unwrap();
    let has = |volume: usize, path: &str| made[volume].join(path).exists();
    assert!(has(0, "top") && has(1, "middle") && has(2, "low"));
    assert!(has(0, "b") && !has(0, "b/middle") && has(1, "c") && !has(1, "c/low"));
}

#[tokio::test]
async fn in_a_user_namespace_all_is_owned_by_its_ids() {
    if !rubelet_needs::root() {
        return;
    }
    let ids = |size| {
        vec![IdMapping {
            container_id: 0,
            host_id: 500_000,
            size,
        }]
    };
    let userns = IdMappings {
        uids: ids(65536),
        // A group that is not mapped must not become the host's.
        gids: ids(10),
    };
    let dir = directory();
    let layer = Layer::default()
        .file("data/file", "")
        .link("data/link", "file");
    let (store, _) = prepared(dir.path(), vec![layer], Some(&userns)).await;
    let volumes = paths(&["/data", "/missing"]);
    let made = store
        .fill_volumes("c", volumes, Some(&userns))
        .await
        .unwrap();
    for path in ["file", "link"] {
        let found = fs::symlink_metadata(made[0].join(path)).unwrap();
        assert_eq!((found.uid(), found.gid()), (500_033, 65534), "{path}");
    }
    let missing = fs::metadata(&made[1]).unwrap();
    assert_eq!((missing.uid(), missing.gid()), (500_000, 500_000));
}

#[tokio::test]
async fn holes_stay_holes() {
    if !rubelet_needs::root() {
        return;
    }
    let dir = directory();
    let (store, _) = prepared(dir.path(), vec![Layer::default().dir("data")], None).await;
    // As an archive with a sparse file leaves it: larger than this disk.
    let tree = store.rootfs("c").unwrap().lower.remove(0);
    let file = fs::File::create(tree.join("data/sparse")).unwrap();
    file.set_len(1 << 42).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"x", 1 << 41).unwrap();
    let made = store
        .fill_volumes("c", paths(&["/data"]), None)
        .await
        .unwrap();
    let copy = fs::metadata(made[0].join("sparse")).unwrap();
    assert_eq!(copy.len(), 1 << 42);
    assert!(copy.blocks() < 1024, "{}", copy.blocks());
}

/// A layer is only data; what leads out of it is not followed, whatever put it there.
#[tokio::test]
async fn nothing_outside_of_the_layers_is_read() {
    if !rubelet_needs::root() {
        return;
    }
    let dir = directory();
    let outside = dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), "secret").unwrap();
    let layer = Layer::default().dir("data/sub");
    let (store, _) = prepared(dir.path(), vec![layer], None).await;
    let tree = store.rootfs("c").unwrap().lower.remove(0);
    symlink(&outside, tree.join("data/out")).unwrap();
    symlink(&outside, tree.join("out")).unwrap();
    let resolved = resolve(&store, "/out").await.unwrap();
    assert_eq!(resolved, outside);
    let volumes = vec!["/data".into(), resolved];
    let made = store.fill_volumes("c", volumes, None).await.unwrap();
    assert_eq!(fs::read_link(made[0].join("out")).unwrap(), outside);
    assert_eq!(
        fs::read_dir(&made[1]).unwrap().count(),
        0,
        "a path in the image"
    );
    let mode = fs::metadata(made[0].parent().unwrap())
        .unwrap()
        .permissions();
    assert_eq!(mode.mode() & 0o777, 0o700);
}
