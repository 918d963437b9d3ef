//! The images for tests, built from the static busybox of this machine: no registry is available or
//! needed.

mod archive;
mod layer;
mod load_one;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
pub(crate) use archive::architecture;
use serde_json::{Value, json};

use crate::packages::BUSYBOX;

pub use load_one::{load_one, load_without_shell};

/// A shell and some 270 small programs, linked in `/bin`; runs as root.
pub const BUSYBOX_IMAGE: &str = "localhost/rubelet/busybox:1";
/// The same, with the numeric user and group 1000:1000.
pub const NUMERIC_USER: &str = "localhost/rubelet/busybox-uid:1";
/// The same, with the user named `app`, which `/etc/passwd` gives the number 1000.
pub const NAMED_USER: &str = "localhost/rubelet/busybox-user:1";
/// The same, with the declared volumes `/data`, which has a file `seed` of the user 1000;
/// `/links/run/cache`, where `/links/run` is a link to `/run`; `/links/guarded`, a link to `/guarded`; and
/// `/missing/deep`, which does not exist.
pub const VOLUMES: &str = "localhost/rubelet/volumes:1";
/// The sandbox container: one process that waits, and exits on SIGTERM.
pub const PAUSE: &str = "localhost/rubelet/pause:1";

/// How long the CRI service may take to detect imported images.
pub(crate) const NOTICE_TIMEOUT: Duration = Duration::from_secs(60);

/// A shell only: it blocks in `read` on a named pipe that it holds open itself, and unlike a
/// `sleep` with PID 1, it exits on SIGTERM.
const PAUSE_SCRIPT: &str =
    "trap 'exit 0' TERM INT; exec 3<>/pause; while :; do read -r line <&3; done";

/// An image's name and the `config` part of its configuration.
pub(crate) type Image = (String, Value);

/// Volumes that an image must not declare: in the kernel's file systems, or at links to them.
pub const HOSTILE_VOLUMES: [&str; 10] = [
    "/sys",
    "/sys/fs/cgroup",
    "/proc/self",
    "/dev/shm",
    "/links/sys",
    "/links/sys/kernel",
    "/links/proc",
    "/links/up/sys",
    "/links/deep/er/sys/fs",
    "/links/chain",
];

/// The same as [`BUSYBOX_IMAGE`], with one of [`HOSTILE_VOLUMES`] as its volume.
#[must_use]
pub fn with_volume(volume: &str) -> String {
    let name = volume.trim_start_matches('/').replace('/', "-");
    format!("localhost/rubelet/volume-{name}:1")
}

fn images() -> Vec<Image> {
    let env = json!(["PATH=/bin"]);
    let with = |volumes: &[&str]| {
        let volumes: serde_json::Map<String, Value> = volumes
            .iter()
            .map(|path| ((*path).to_owned(), json!({})))
            .collect();
        json!({ "Env": env, "Cmd": ["sh"], "Volumes": volumes })
    };
    let hostile = HOSTILE_VOLUMES.map(|volume| (with_volume(volume), with(&[volume])));
    let usual = [
        (
            VOLUMES,
            with(&[
                "/data",
                "/links/run/cache",
                "/links/guarded",
                "/missing/deep",
            ]),
        ),
        (BUSYBOX_IMAGE, json!({ "Env": env, "Cmd": ["sh"] })),
        (
            NUMERIC_USER,
            json!({ "Env": env, "Cmd": ["sh"], "User": "1000:1000" }),
        ),
        (
            NAMED_USER,
            json!({ "Env": env, "Cmd": ["sh"], "User": "app" }),
        ),
        (
            PAUSE,
            json!({ "Env": env, "Entrypoint": ["/bin/sh", "-c", PAUSE_SCRIPT] }),
        ),
    ];
    let usual = usual.map(|(name, config)| (name.to_owned(), config));
    usual.into_iter().chain(hostile).collect()
}

/// The names of all images.
pub(crate) fn names() -> impl Iterator<Item = String> {
    images().into_iter().map(|(name, _)| name)
}

/// Writes all images into one archive in the OCI layout, as `ctr images import` reads it.
///
/// # Errors
/// When busybox can't be read, or the archive can't be written.
pub fn write_archive(path: &Path) -> Result<()> {
    let archive = archive_of(&images())?;
    std::fs::write(path, archive).with_context(|| format!("cannot write {}", path.display()))
}

/// An archive in the OCI layout with these images.
fn archive_of(images: &[Image]) -> Result<Vec<u8>> {
    archive::build(&layer::build(Path::new(BUSYBOX), None)?, images)
}

/// An archive in the OCI layout with an image whose layer is unique: the file `/note` in it
/// differs.
pub(crate) fn archive_with_note(image: Image, note: &str) -> Result<Vec<u8>> {
    archive::build(&layer::build(Path::new(BUSYBOX), Some(note))?, &[image])
}
