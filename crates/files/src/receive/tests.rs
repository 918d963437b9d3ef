//! Trees there and back, and streams and containers that want something else.

use std::{
    fs as std_fs,
    io::Read as _,
    os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _, symlink},
    path::Path,
};

use tar::{Builder, Header};
use tempfile::{TempDir, tempdir};

use super::*;
use crate::{ContainerRoot, Source};

fn root_of(directory: &Path) -> OwnedFd {
    std_fs::File::open(directory).unwrap().into()
}

fn copy(from: &Path, to: &Path) -> Result<Received, FilesError> {
    let mut stream = Vec::new();
    Source::local(from)?.send(&mut stream)?;
    Destination::local(to)?.receive(&*stream, Attributes::Restricted)
}

fn write(path: impl AsRef<Path>, text: &str) {
    std_fs::write(path, text).unwrap();
}

fn read(path: impl AsRef<Path>) -> String {
    std_fs::read_to_string(path).unwrap()
}

fn mode(path: impl AsRef<Path>) -> u32 {
    std_fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

fn chmod(path: impl AsRef<Path>, mode: u32) {
    std_fs::set_permissions(path, std_fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_tree_arrives_as_it_was() {
    let home = tempdir().unwrap();
    let from = home.path().join("from");
    let long = "d".repeat(200);
    std_fs::create_dir_all(from.join("deep").join(&long)).unwrap();
    write(from.join("deep").join(&long).join("f".repeat(200)), "long");
    write(from.join("empty"), "");
    write(from.join("run"), "#!");
    symlink("../../nowhere", from.join("link")).unwrap();
    symlink("/etc", from.join("absolute")).unwrap();
    chmod(from.join("run"), 0o4755);
    chmod(from.join("deep"), 0o500);
    fs::mknodat(root_of(&from), "fifo", fs::FileType::Fifo, Mode::RWXU, 0).unwrap();
    let old = std::time::UNIX_EPOCH + std::time::Duration::from_secs(86400);
    for name in ["run", "deep"] {
        let file = std_fs::File::open(from.join(name)).unwrap();
        file.set_modified(old).unwrap();
    }
    let to = home.path().join("to");
    let received = copy(&from, &to).unwrap();
    assert_eq!((received.entries, received.bytes), (8, 6));
    assert_eq!(received.skipped, ["from/fifo"]);
    assert_eq!(
        read(to.join("deep").join(&long).join("f".repeat(200))),
        "long"
    );
    assert_eq!(
        std_fs::read_link(to.join("link")).unwrap(),
        Path::new("../../nowhere")
    );
    assert_eq!(
        std_fs::read_link(to.join("absolute")).unwrap(),
        Path::new("/etc")
    );
    // No program of a container runs as its owner here.
    assert_eq!(
        (mode(to.join("run")), mode(to.join("deep"))),
        (0o755, 0o500)
    );
    for name in ["run", "deep"] {
        let metadata = std_fs::metadata(to.join(name)).unwrap();
        assert_eq!(metadata.modified().unwrap(), old, "{name}");
    }
    assert!(!to.join("fifo").exists());
}

#[test]
fn holes_stay_holes() {
    let home = tempdir().unwrap();
    for (name, size, data) in [
        ("hole", 64 << 20, &[][..]),
        ("end", 32 << 20, &[0][..]),
        (
            "parts",
            (16 << 20) + 100,
            &[1 << 20, 3 << 20, 5 << 20, 7 << 20, 9 << 20, 16 << 20],
        ),
    ] {
        let (from, to) = (home.path().join(name), home.path().join(format!("{name}2")));
        let file = std_fs::File::create(&from).unwrap();
        file.set_len(size).unwrap();
        for place in data {
            file.write_all_at(b"data", *place).unwrap();
        }
        let mut stream = Vec::new();
        Source::local(&from).unwrap().send(&mut stream).unwrap();
        assert!(stream.len() < 200_000, "{name}: {}", stream.len());
        let received = Destination::local(&to).unwrap();
        let received = received.receive(&*stream, Attributes::Full).unwrap();
        assert_eq!(received.bytes, size, "{name}");
        assert_eq!(std_fs::read(&from).unwrap(), std_fs::read(&to).unwrap());
        assert!(std_fs::metadata(&to).unwrap().blocks() < 1000, "{name}");
    }
}

#[test]
fn a_copy_goes_where_cp_would_put_it() {
    for (from, to, expected) in [
        ("file", "new", Ok("new")),
        ("file", "there", Ok("there/file")),
        ("file", "there/", Ok("there/file")),
        ("file", "old", Ok("old")),
        ("file", "new/", Err("No such file")),
        ("file", "none/new", Err("no such file")),
        ("file", "old/", Err("Not a directory")),
        ("dir", "new", Ok("new/inner")),
        ("dir/", "there", Ok("there/dir/inner")),
        ("dir/.", "there", Ok("there/inner")),
        ("dir/.", "new", Ok("new/inner")),
        ("dir", "old", Err("no directory")),
        ("tolink", "new", Ok("new")),
        ("none", "new", Err("no such file")),
        ("file/", "new", Err("Not a directory")),
        ("", "new", Err("no such file")),
    ] {
        let home = tempdir().unwrap();
        let path = |name: &str| home.path().join(name);
        write(path("file"), "text");
        write(path("old"), "old text, longer");
        std_fs::create_dir(path("dir")).unwrap();
        write(path("dir/inner"), "text");
        symlink("file", path("tolink")).unwrap();
        std_fs::create_dir(path("there")).unwrap();
        // A slash at the end must survive.
        let place = |name: &str| match name {
            "" => std::path::PathBuf::new(),
            name => format!("{}/{name}", home.path().display()).into(),
        };
        match (copy(&place(from), &place(to)), expected) {
            (Ok(_), Ok(file)) => assert_eq!(read(path(file)), "text", "{from} {to}"),
            (Err(error), Err(part)) => {
                let text = format!("{:#}", chain(&error));
                assert!(
                    text.to_lowercase().contains(&part.to_lowercase()),
                    "{from} {to}: {text}"
                );
            }
            (found, _) => panic!("{from} {to}: {found:?}"),
        }
        if from == "tolink" {
            assert_eq!(std_fs::read_link(path("new")).unwrap(), Path::new("file"));
        }
    }
}

fn chain(error: &FilesError) -> String {
    let source = std::error::Error::source(error).map(ToString::to_string);
    format!("{error}: {}", source.unwrap_or_default())
}

/// A stream of entries: type, name, and text or link.
fn stream(entries: &[(EntryType, &str, &str)]) -> Vec<u8> {
    let mut archive = Builder::new(Vec::new());
    for (kind, name, text) in entries {
        let mut header = Header::new_gnu();
        // Written by hand: the library refuses such names.
        header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_mode(0o644);
        header.set_mtime(0);
        header.set_entry_type(*kind);
        let is_link = matches!(kind, EntryType::Symlink | EntryType::Link);
        let data = if is_link { "" } else { text };
        if is_link {
            header.set_link_name_literal(text).unwrap();
        }
        header.set_size(data.len() as u64);
        header.set_cksum();
        archive.append(&header, data.as_bytes()).unwrap();
    }
    archive.into_inner().unwrap()
}

#[test]
fn nothing_is_written_outside() {
    use EntryType::{Directory as D, Link as H, Regular as F, Symlink as L};
    let home = tempdir().unwrap();
    let outside = home.path().join("outside");
    write(&outside, "untouched");
    let text = outside.to_str().unwrap().to_owned();
    let directory = home.path().to_str().unwrap().to_owned();
    for (entries, why) in [
        (vec![(F, "../x", "new")], "`..`"),
        (vec![(D, "a", ""), (F, "a/../../x", "new")], "`..`"),
        (vec![(F, "/x", "new")], "absolute"),
        (vec![(D, "a", ""), (F, "b", "new")], "first entry"),
        (
            vec![
                (D, "a", ""),
                (L, "a/l", &*directory),
                (F, "a/l/outside", "new"),
            ],
            "symbolic link",
        ),
        (
            vec![(L, "a", &*directory), (F, "a/outside", "new")],
            "symbolic link",
        ),
        (
            vec![(D, "a", ""), (L, "a/l", ".."), (D, "a/l/x", "")],
            "symbolic link",
        ),
        (vec![(L, "a", &*directory), (D, "a", "")], "no directory"),
        (vec![(D, "a", ""), (H, "a/h", &*text)], "hard links"),
    ] {
        let to = tempdir().unwrap();
        let place = Destination::local(to.path()).unwrap();
        let error = place
            .receive(&*stream(&entries), Attributes::Full)
            .unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
        assert_eq!(read(&outside), "untouched");
        assert_eq!(std_fs::read_dir(home.path()).unwrap().count(), 1);
    }
    // A file takes the place of a link, and does not go through it.
    let to = tempdir().unwrap();
    let entries = stream(&[(D, "a", ""), (L, "a/l", &text), (F, "a/l", "new")]);
    let place = Destination::local(to.path()).unwrap();
    place.receive(&*entries, Attributes::Full).unwrap();
    assert_eq!(
        (read(to.path().join("a/l")), read(&outside)),
        ("new".into(), "untouched".into())
    );
}

#[test]
fn a_stream_that_breaks_off_is_an_error() {
    let home = tempdir().unwrap();
    write(home.path().join("file"), &"x".repeat(10_000));
    let mut whole = Vec::new();
    Source::local(&home.path().join("file"))
        .unwrap()
        .send(&mut whole)
        .unwrap();
    for length in [0, 100, 1000, 5000] {
        let to = tempdir().unwrap();
        let place = Destination::local(to.path()).unwrap();
        let error = place
            .receive(&whole[..length], Attributes::Full)
            .unwrap_err();
        assert!(matches!(error, FilesError::Stream(_)), "{length}: {error}");
    }
}

#[test]
fn the_sender_says_why_there_is_no_more() {
    let home = tempdir().unwrap();
    let mut deep = home.path().join("top");
    for _ in 0..300 {
        deep.push("d");
    }
    std_fs::create_dir_all(&deep).unwrap();
    let mut stream = Vec::new();
    let sent = Source::local(&home.path().join("top"))
        .unwrap()
        .send(&mut stream);
    let sent = sent.unwrap_err().to_string();
    let place = Destination::local(&home.path().join("copy")).unwrap();
    let received = place.receive(&*stream, Attributes::Full).unwrap_err();
    assert!(sent.contains("nested too deeply"), "{sent}");
    assert_eq!(received.to_string(), sent);
}

/// A container's root, with links that mean other files on the host.
fn container(uid: u32) -> (TempDir, ContainerRoot) {
    let home = tempdir().unwrap();
    let root = home.path().join("root");
    for name in ["etc", "data", "tmp"] {
        std_fs::create_dir_all(root.join(name)).unwrap();
    }
    write(root.join("etc/passwd"), "inside");
    write(home.path().join("secret"), "outside");
    symlink("/etc", root.join("data/abs")).unwrap();
    symlink("../../../etc", root.join("data/up")).unwrap();
    symlink("/secret", root.join("data/secret")).unwrap();
    symlink("/proc/self/root", root.join("data/magic")).unwrap();
    let container = ContainerRoot::of_directory(root_of(&root), uid, uid);
    (home, container)
}

fn fetch(container: &ContainerRoot, path: &str) -> Result<String, FilesError> {
    let mut stream = Vec::new();
    container.source(path.as_bytes())?.send(&mut stream)?;
    let mut archive = Archive::new(&*stream);
    let mut text = String::new();
    for entry in archive.entries().unwrap() {
        entry.unwrap().read_to_string(&mut text).unwrap();
    }
    Ok(text)
}

#[test]
fn paths_of_a_container_stay_in_it() {
    let (_home, container) = container(0);
    for path in [
        "/etc/passwd",
        "etc/passwd",
        "/data/abs/passwd",
        "/data/up/passwd",
        "/../../etc/passwd",
        "/data/../../etc/passwd",
        "/etc/.",
    ] {
        assert_eq!(fetch(&container, path).unwrap(), "inside", "{path}");
    }
    // The link itself, and not what it leads to.
    assert_eq!(fetch(&container, "/data/secret").unwrap(), "");
    for path in ["/../secret", "/data/magic/etc/passwd", "/data/secret/."] {
        fetch(&container, path).unwrap_err();
    }
}

#[test]
fn files_belong_to_the_user_of_the_container() {
    let (home, container) = container(131_072);
    let mut sent = Vec::new();
    let tree = home.path().join("tree");
    std_fs::create_dir_all(tree.join("sub")).unwrap();
    write(tree.join("sub/file"), "text");
    symlink("file", tree.join("sub/link")).unwrap();
    Source::local(&tree).unwrap().send(&mut sent).unwrap();
    // The directory is root's, as one that an image has; its mode does not stop the agent.
    chmod(home.path().join("root/tmp"), 0o700);
    let place = container.destination(b"/tmp").unwrap();
    place.receive(&*sent, Attributes::Full).unwrap();
    for name in ["tree", "tree/sub", "tree/sub/file", "tree/sub/link"] {
        let found = std_fs::symlink_metadata(home.path().join("root/tmp").join(name)).unwrap();
        assert_eq!((found.uid(), found.gid()), (131_072, 131_072), "{name}");
    }
    // This thread is still itself.
    write(home.path().join("mine"), "");
    assert_eq!(std_fs::metadata(home.path().join("mine")).unwrap().uid(), 0);
}

#[test]
fn fifos_and_devices_are_never_opened() {
    let (home, container) = container(0);
    let root = root_of(&home.path().join("root"));
    let kinds = [
        ("fifo", fs::FileType::Fifo, 0),
        ("tty", fs::FileType::CharacterDevice, fs::makedev(5, 0)),
    ];
    for (name, kind, device) in kinds {
        fs::mknodat(&root, format!("data/{name}"), kind, Mode::RWXU, device).unwrap();
    }
    // It would wait for a writer.
    assert_eq!(fetch(&container, "/data").unwrap(), "");
    // What replaces them is a file.
    let file = stream(&[(EntryType::Regular, "fifo", "text")]);
    let place = container.destination(b"/data/fifo").unwrap();
    place.receive(&*file, Attributes::Full).unwrap();
    assert_eq!(read(home.path().join("root/data/fifo")), "text");
}
