//! The one file system layer that all images share.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use tar::{Builder, EntryType, Header};

use crate::command::stdout_of;

const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\n\
                      app:x:1000:1000:app:/home/app:/bin/sh\n\
                      nobody:x:65534:65534:nobody:/:/bin/false\n";
const GROUP: &str = "root:x:0:\napp:x:1000:\nextra:x:2000:app\nnogroup:x:65534:\n";

/// Directories, with their modes.
const DIRECTORIES: [(&str, u32); 10] = [
    ("bin", 0o755),
    ("dev", 0o755),
    ("etc", 0o755),
    ("home", 0o755),
    ("proc", 0o755),
    ("root", 0o700),
    ("run", 0o755),
    ("sys", 0o755),
    ("tmp", 0o1777),
    ("var", 0o755),
];

/// Parent directories of declared volumes, and links in their paths, with their targets.
const LINKS: [(&str, &str); 7] = [
    ("links/run", "/run"),
    ("links/sys", "/sys"),
    ("links/proc", "/proc"),
    ("links/up", "../../../../../../../.."),
    ("links/deep/er/sys", "../../../../../../../../sys"),
    ("links/chain", "run/../links/sys"),
    ("links/guarded", "/guarded"),
];

/// An uncompressed tar archive with busybox, a link in `/bin` for each of its programs, a few
/// users, the targets of declared volumes, and the named pipe of the sandbox container. The same
/// busybox always results in the same bytes, unless there is a note.
pub(super) fn build(busybox: &Path, note: Option<&str>) -> Result<Vec<u8>> {
    let program =
        std::fs::read(busybox).with_context(|| format!("cannot read {}", busybox.display()))?;
    let applets = stdout_of(Command::new(busybox).arg("--list"))?;
    let mut layer = Layer(Builder::new(Vec::new()));
    for (name, mode) in DIRECTORIES {
        layer.add(&format!("{name}/"), EntryType::Directory, mode, 0, &[])?;
    }
    for name in ["data/", "links/", "links/deep/", "links/deep/er/"] {
        layer.add(name, EntryType::Directory, 0o755, 0, &[])?;
    }
    layer.add(
        "data/seed",
        EntryType::Regular,
        0o640,
        1000,
        b"of the image\n",
    )?;
    for (path, target) in LINKS {
        layer.link(path, target)?;
    }
    layer.add("home/app/", EntryType::Directory, 0o755, 1000, &[])?;
    layer.add("bin/busybox", EntryType::Regular, 0o755, 0, &program)?;
    for applet in applets.lines().filter(|name| *name != "busybox") {
        layer.link(&format!("bin/{applet}"), "busybox")?;
    }
    layer.add(
        "etc/passwd",
        EntryType::Regular,
        0o644,
        0,
        PASSWD.as_bytes(),
    )?;
    layer.add("etc/group", EntryType::Regular, 0o644, 0, GROUP.as_bytes())?;
    layer.add("pause", EntryType::Fifo, 0o666, 0, &[])?;
    if let Some(note) = note {
        layer.add("note", EntryType::Regular, 0o644, 0, note.as_bytes())?;
    }
    Ok(layer.0.into_inner()?)
}

/// An uncompressed tar archive with these programs of busybox in `/bin`, and nothing else: no shell. Busybox is
/// what its name says, so that each is a program of its own.
pub(super) fn build_programs(busybox: &Path, names: &[&str]) -> Result<Vec<u8>> {
    let program =
        std::fs::read(busybox).with_context(|| format!("cannot read {}", busybox.display()))?;
    let mut layer = Layer(Builder::new(Vec::new()));
    layer.add("bin/", EntryType::Directory, 0o755, 0, &[])?;
    for name in names {
        let path = format!("bin/{name}");
        layer.add(&path, EntryType::Regular, 0o755, 0, &program)?;
    }
    Ok(layer.0.into_inner()?)
}

struct Layer(Builder<Vec<u8>>);

impl Layer {
    fn add(
        &mut self,
        path: &str,
        kind: EntryType,
        mode: u32,
        owner: u64,
        data: &[u8],
    ) -> Result<()> {
        let mut header = header(kind, mode, owner);
        header.set_size(data.len() as u64);
        self.0.append_data(&mut header, path, data)?;
        Ok(())
    }

    fn link(&mut self, path: &str, target: &str) -> Result<()> {
        self.0
            .append_link(&mut header(EntryType::Symlink, 0o777, 0), path, target)?;
        Ok(())
    }
}

fn header(kind: EntryType, mode: u32, owner: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(owner);
    header.set_gid(owner);
    header.set_mtime(0);
    header.set_size(0);
    header
}
