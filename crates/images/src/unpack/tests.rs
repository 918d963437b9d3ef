//! Layers as builders write them, and hostile ones.

mod compression;

use std::{
    fs,
    os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _},
};

use proptest::prelude::*;
use tar::EntryType;

use super::*;

struct Layer(tar::Builder<Vec<u8>>);

impl Layer {
    fn new() -> Self {
        Self(tar::Builder::new(Vec::new()))
    }

    /// An entry whose name is taken as it is, be it hostile.
    fn entry(mut self, kind: EntryType, path: &str, content: &[u8], link: &str, mode: u32) -> Self {
        let mut header = tar::Header::new_gnu();
        header.as_gnu_mut().unwrap().name[..path.len()].copy_from_slice(path.as_bytes());
        header.as_gnu_mut().unwrap().linkname[..link.len()].copy_from_slice(link.as_bytes());
        header.set_entry_type(kind);
        header.set_size(content.len() as u64);
        header.set_mode(mode);
        header.set_uid(1);
        header.set_gid(2);
        header.set_mtime(1_000_000);
        header.set_device_major(0).unwrap();
        header.set_device_minor(0).unwrap();
        header.set_cksum();
        self.0.append(&header, content).unwrap();
        self
    }

    fn file(self, path: &str, content: &str) -> Self {
        self.entry(EntryType::Regular, path, content.as_bytes(), "", 0o644)
    }

    fn directory(self, path: &str) -> Self {
        self.entry(EntryType::Directory, path, b"", "", 0o755)
    }

    fn symlink(self, path: &str, to: &str) -> Self {
        self.entry(EntryType::Symlink, path, b"", to, 0o777)
    }

    fn hard_link(self, path: &str, to: &str) -> Self {
        self.entry(EntryType::Link, path, b"", to, 0o644)
    }

    fn device(mut self, kind: EntryType, path: &str, major: u32, minor: u32) -> Self {
        let mut header = tar::Header::new_gnu();
        header.set_path(path).unwrap();
        header.set_entry_type(kind);
        header.set_mode(0o666);
        header.set_uid(0);
        header.set_gid(0);
        header.set_size(0);
        header.set_mtime(0);
        header.set_device_major(major).unwrap();
        header.set_device_minor(minor).unwrap();
        header.set_cksum();
        self.0.append(&header, &b""[..]).unwrap();
        self
    }

    fn xattr(mut self, name: &str, value: &[u8]) -> Self {
        let key = format!("SCHILY.xattr.{name}");
        self.0
            .append_pax_extensions([(key.as_str(), value)])
            .unwrap();
        self
    }

    fn bytes(self) -> Vec<u8> {
        self.0.into_inner().unwrap()
    }

    fn apply(self) -> (tempfile::TempDir, Result<AppliedLayer, UnpackError>) {
        self.apply_with(&limits())
    }

    fn apply_with(
        self,
        limits: &UnpackLimits,
    ) -> (tempfile::TempDir, Result<AppliedLayer, UnpackError>) {
        let outer = tempfile::Builder::new()
            .prefix("rbt-images-")
            .tempdir()
            .unwrap();
        fs::create_dir(outer.path().join("fs")).unwrap();
        fs::write(outer.path().join("outside"), "untouched").unwrap();
        let applied = apply(self.bytes().as_slice(), &outer.path().join("fs"), limits);
        assert_eq!(
            fs::read(outer.path().join("outside")).unwrap(),
            b"untouched"
        );
        assert_eq!(fs::read_dir(outer.path()).unwrap().count(), 2);
        (outer, applied)
    }

    fn applied(self) -> (tempfile::TempDir, PathBuf, AppliedLayer) {
        let (outer, applied) = self.apply();
        let root = outer.path().join("fs");
        (outer, root, applied.unwrap())
    }

    fn refused(self) -> String {
        rubelet_base::ErrorChain(&self.apply().1.unwrap_err()).to_string()
    }
}

fn limits() -> UnpackLimits {
    UnpackLimits {
        spare_bytes: 0,
        spare_inodes: 0,
        ..UnpackLimits::default()
    }
}

fn is_gone(path: &Path) -> bool {
    let meta = fs::symlink_metadata(path).unwrap();
    meta.file_type().is_char_device() && meta.rdev() == 0
}

fn is_opaque(path: &Path) -> bool {
    let mut value = [0; 8];
    rustix::fs::lgetxattr(path, "trusted.overlay.opaque", &mut value)
        .is_ok_and(|n| value[..n] == *b"y")
}

#[test]
fn files_have_all_attributes_of_the_archive() {
    if !rubelet_needs::root() {
        return;
    }
    // Version 2 of the kernel's form, with CAP_NET_RAW.
    let capability =
        b"\x01\x00\x00\x02\x00\x20\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00";
    let layer = Layer::new()
        .directory("bin")
        .xattr("security.capability", capability)
        .entry(EntryType::Regular, "bin/ping", b"program", "", 0o755)
        .entry(EntryType::Regular, "bin/su", b"x", "", 0o6755)
        .hard_link("bin/su2", "bin/su")
        .symlink("sbin", "bin")
        .xattr("user.note", b"n")
        .file("/absolute", "a")
        .xattr("trusted.overlay.redirect", b"/etc")
        .file("other", "o")
        .entry(EntryType::Fifo, "pipe", b"", "", 0o600)
        .entry(EntryType::Directory, "tmp", b"", "", 0o1777);
    let (_keep, root, applied) = layer.applied();
    let meta = |path: &str| fs::symlink_metadata(root.join(path)).unwrap();
    let ping = meta("bin/ping");
    assert_eq!(
        (ping.uid(), ping.gid(), ping.mode() & 0o7777),
        (1, 2, 0o755)
    );
    assert_eq!(ping.mtime(), 1_000_000);
    let mut value = [0; 64];
    let length = rustix::fs::getxattr(root.join("bin/ping"), "security.capability", &mut value);
    assert_eq!(value[..length.unwrap()], *capability);
    assert_eq!(meta("bin/su").mode() & 0o7777, 0o6755);
    assert_eq!(meta("bin/su").ino(), meta("bin/su2").ino());
    assert_eq!(
        (meta("bin").mtime(), meta("tmp").mode() & 0o7777),
        (1_000_000, 0o1777)
    );
    assert_eq!(fs::read_link(root.join("sbin")).unwrap(), Path::new("bin"));
    assert_eq!((meta("sbin").uid(), meta("sbin").mtime()), (1, 1_000_000));
    assert!(meta("pipe").file_type().is_fifo());
    let absolute = root.join("absolute");
    assert_eq!(fs::read(&absolute).unwrap(), b"a");
    let length = rustix::fs::getxattr(&absolute, "user.note", &mut value).unwrap();
    assert_eq!(value[..length], *b"n");
    let other = root.join("other");
    assert!(rustix::fs::getxattr(&other, "trusted.overlay.redirect", &mut value).is_err());
    assert_eq!((applied.usage.inodes, applied.root), (8, None));
    assert_eq!(applied.implicit, [] as [&Path; 0]);
}

#[test]
fn whiteouts_hide_files_of_lower_layers_as_overlayfs_does() {
    if !rubelet_needs::root() {
        return;
    }
    let layer = Layer::new()
        .directory("d")
        .file("d/.wh.old", "")
        .file("e/.wh..wh..opq", "")
        .file("e/new", "x")
        // Gone, and there again, in either order.
        .file("replaced/x", "x")
        .file(".wh.replaced", "")
        .file(".wh.again", "")
        .directory("again")
        .file("again/x", "x")
        .file(".wh.implied", "")
        .file("implied/x", "x")
        .file("f", "x")
        .file(".wh.f", "")
        .file(".wh..wh.plnk", "aufs");
    let (_keep, root, applied) = layer.applied();
    assert!(is_gone(&root.join("d/old")));
    for directory in ["e", "replaced", "again", "implied"] {
        assert!(is_opaque(&root.join(directory)), "{directory}");
    }
    assert!(!is_opaque(&root.join("d")));
    assert_eq!(fs::read(root.join("f")).unwrap(), b"x");
    assert!(!root.join(".wh..wh.plnk").exists());
    let implicit: Vec<_> = applied
        .implicit
        .iter()
        .map(|path| path.to_str().unwrap())
        .collect();
    assert_eq!(implicit, ["e", "implied", "replaced"]);
    assert_eq!(
        fs::metadata(root.join("e")).unwrap().permissions().mode() & 0o7777,
        0o755
    );
}

#[test]
fn overlayfs_shows_what_the_layers_say() {
    if !rubelet_needs::root() {
        return;
    }
    let (_one, lower, _) = Layer::new()
        .directory("d")
        .file("d/old", "1")
        .file("d/kept", "1")
        .file("e/old", "1")
        .file("same", "1")
        .applied();
    let (_two, upper, _) = Layer::new()
        .directory("d")
        .file("d/.wh.old", "")
        .file("e/.wh..wh..opq", "")
        .file("e/new", "2")
        .file("same", "2")
        .applied();
    let merged = tempfile::Builder::new()
        .prefix("rbt-images-")
        .tempdir()
        .unwrap();
    let options = format!("lowerdir={}:{}", upper.display(), lower.display());
    let options = std::ffi::CString::new(options).unwrap();
    let flags = rustix::mount::MountFlags::RDONLY;
    rustix::mount::mount(
        "overlay",
        merged.path(),
        "overlay",
        flags,
        options.as_c_str(),
    )
    .unwrap();
    let names = |path: &str| {
        let entries = fs::read_dir(merged.path().join(path)).unwrap();
        let mut names: Vec<_> = entries
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    let found = (
        names("d"),
        names("e"),
        fs::read(merged.path().join("same")).unwrap(),
    );
    rustix::mount::unmount(merged.path(), rustix::mount::UnmountFlags::DETACH).unwrap();
    assert_eq!(
        found,
        (
            vec!["kept".to_owned()],
            vec!["new".to_owned()],
            b"2".to_vec()
        )
    );
}

#[test]
fn links_never_lead_out_of_the_layer() {
    if !rubelet_needs::root() {
        return;
    }
    let (_keep, root, _) = Layer::new()
        .symlink("up", "../../..")
        .file("up/outside", "hostile")
        .symlink("abs", "/etc")
        .file("abs/passwd", "hostile")
        .symlink("p", "/proc/self/root")
        .file("p/x", "hostile")
        .symlink("chain", "up/../../abs")
        .file("chain/y", "hostile")
        .applied();
    // As a container would see it: the layer is the root.
    assert_eq!(fs::read(root.join("outside")).unwrap(), b"hostile");
    for path in ["etc/passwd", "etc/y", "proc/self/root/x"] {
        assert!(fs::symlink_metadata(root.join(path)).is_ok(), "{path}");
    }
}

#[test]
fn files_are_replaced_never_written_through() {
    if !rubelet_needs::root() {
        return;
    }
    let (_keep, root, _) = Layer::new()
        .symlink("link", "../outside")
        .file("link", "hostile")
        .file("a", "1")
        .hard_link("b", "a")
        .file("b", "2")
        .directory("dir")
        .file("dir/sub/x", "x")
        .file("dir", "now a file")
        .symlink("l2", "/elsewhere")
        .directory("l2")
        .file("l2/x", "x")
        .applied();
    assert_eq!(fs::read(root.join("link")).unwrap(), b"hostile");
    assert!(
        !fs::symlink_metadata(root.join("link"))
            .unwrap()
            .is_symlink()
    );
    assert_eq!(fs::read(root.join("a")).unwrap(), b"1");
    assert_eq!(fs::read(root.join("dir")).unwrap(), b"now a file");
    assert_eq!(fs::read(root.join("l2/x")).unwrap(), b"x");
    assert!(!root.join("elsewhere").exists());
}

#[test]
fn hostile_entries_are_refused() {
    if !rubelet_needs::root() {
        return;
    }
    let deep = "a/".repeat(49);
    let shallow = UnpackLimits {
        depth: 40,
        ..limits()
    };
    let depth = Layer::new()
        .directory(&deep)
        .apply_with(&shallow)
        .1
        .unwrap_err();
    assert!(
        depth.to_string().contains("too many directories"),
        "{depth}"
    );
    for (layer, why) in [
        (Layer::new().file("../outside", "x"), "`..`"),
        (Layer::new().file("a/../../outside", "x"), "`..`"),
        (Layer::new().hard_link("x", "../outside"), "`..`"),
        (
            Layer::new()
                .symlink("up", "..")
                .hard_link("x", "up/outside"),
            "not in the layer",
        ),
        (
            Layer::new().hard_link("x", "/etc/passwd"),
            "not in the layer",
        ),
        (
            Layer::new().directory("d").hard_link("x", "d"),
            "hard link to a directory",
        ),
        (Layer::new().hard_link("x", "."), "hard link to the root"),
        (
            Layer::new().file(".", "x"),
            "would replace the root directory",
        ),
        (Layer::new().file(".wh..", "x"), "invalid whiteout name"),
        (Layer::new().file("d/.wh...", "x"), "invalid whiteout name"),
        (
            Layer::new().file("f", "x").file("f/g", "x"),
            "not a directory",
        ),
        (
            Layer::new()
                .symlink("a", "b")
                .symlink("b", "a")
                .file("a/x", "x"),
            "levels of symbolic links",
        ),
        (
            Layer::new().device(EntryType::Block, "disk", 8, 0),
            "device",
        ),
        (Layer::new().device(EntryType::Char, "mem", 1, 1), "device"),
        (
            Layer::new().device(EntryType::Char, "x/dev/mem", 1, 1),
            "device",
        ),
        (Layer::new().symlink("x", ""), "invalid symlink target"),
    ] {
        let text = layer.refused();
        assert!(text.contains(why), "{text} instead of {why}");
    }
}

#[test]
fn devices_that_every_container_has_are_created() {
    if !rubelet_needs::root() {
        return;
    }
    let (_keep, root, applied) = Layer::new()
        .device(EntryType::Char, "dev/null", 1, 3)
        .device(EntryType::Char, "chroot/null", 1, 3)
        .device(EntryType::Block, "dev/sda", 8, 0)
        .device(EntryType::Char, "dev/mem", 1, 1)
        .device(EntryType::Char, "gone", 0, 0)
        .applied();
    assert!(
        fs::symlink_metadata(root.join("dev/null"))
            .unwrap()
            .file_type()
            .is_char_device()
    );
    assert!(fs::symlink_metadata(root.join("chroot/null")).is_ok());
    assert_eq!(applied.left_out, ["dev/sda", "dev/mem"]);
    assert!(!root.join("dev/sda").exists() && is_gone(&root.join("gone")));
}

#[test]
fn owners_that_mean_unchanged_are_refused() {
    let mut header = tar::Header::new_gnu();
    header.set_path("x").unwrap();
    header.set_size(0);
    header.set_mode(0o644);
    header.set_uid(u64::from(u32::MAX));
    header.set_gid(0);
    header.set_mtime(0);
    header.set_cksum();
    let mut layer = Layer::new();
    layer.0.append(&header, &b""[..]).unwrap();
    assert!(layer.refused().contains("uid or gid"));
}

#[test]
fn decompression_bombs_are_rejected() {
    let many = (0..20).fold(Layer::new(), |layer, n| layer.file(&format!("f{n}"), ""));
    let few = UnpackLimits {
        entries: 10,
        ..limits()
    };
    let error = many.apply_with(&few).1.unwrap_err();
    assert!(matches!(error, UnpackError::LimitExceeded(_)), "{error}");
    let small = UnpackLimits {
        bytes: 1000,
        ..limits()
    };
    let error = Layer::new()
        .file("f", &"x".repeat(2000))
        .apply_with(&small)
        .1
        .unwrap_err();
    assert!(matches!(error, UnpackError::LimitExceeded(_)), "{error}");
    let full = UnpackLimits {
        spare_bytes: u64::MAX,
        ..limits()
    };
    let error = Layer::new().file("f", "x").apply_with(&full).1.unwrap_err();
    assert!(matches!(error, UnpackError::NoSpace(_)), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_sequence_of_entries_leads_out(
        entries in prop::collection::vec((0u8..6, "(\\.\\./|/|[ab]|\\.wh\\.|\\.){1,6}", "(\\.\\./|/|[ab]|\\.){1,6}"), 1..12),
    ) {
        if rubelet_needs::root() {
            let mut layer = Layer::new();
            for (kind, path, link) in &entries {
                layer = match kind {
                    0 => layer.file(path, "hostile"),
                    1 => layer.directory(path),
                    2 | 3 => layer.symlink(path, link),
                    4 => layer.hard_link(path, link),
                    _ => layer.entry(EntryType::Fifo, path, b"", "", 0o600),
                };
            }
            // The check is in `apply`: what is outside is untouched.
            let _ = layer.apply();
        }
    }
}

#[test]
fn directories_keep_their_times_whatever_the_order_of_entries() {
    if !rubelet_needs::root() {
        return;
    }
    let (_keep, root, _) = Layer::new()
        .directory("./")
        .directory("a")
        .directory("a/b")
        .file("a/b/x", "1")
        .file("c", "1")
        .file("a/b/y", "late")
        .file("a/new/deep/z", "implicit")
        .symlink("l", "a/b")
        .file("l/through", "1")
        .file("a/.wh.gone", "")
        .applied();
    for path in ["", "a", "a/b"] {
        assert_eq!(
            fs::metadata(root.join(path)).unwrap().mtime(),
            1_000_000,
            "{path:?}"
        );
    }
    assert!(root.join("a/b/through").exists());
}

#[test]
fn directories_without_entries_are_bounded() {
    if !rubelet_needs::root() {
        return;
    }
    // Each entry makes hundreds of directories with long names.
    let layer = (0..40).fold(Layer::new(), |mut layer, n| {
        let path = format!("{n:03}/{}x", "branch/".repeat(500));
        let mut header = tar::Header::new_gnu();
        header.set_size(0);
        header.set_mode(0o644);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        layer.0.append_data(&mut header, path, &b""[..]).unwrap();
        layer
    });
    let error = layer.apply().1.unwrap_err();
    assert!(matches!(error, UnpackError::LimitExceeded(_)), "{error}");
}
