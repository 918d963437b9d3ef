//! The images that tests run, built from the static busybox of this machine: no registry can be
//! reached, and none is needed.

mod archive;
mod layer;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
pub(crate) use archive::architecture;
use serde_json::{Value, json};

use crate::packages::BUSYBOX;
use crate::{Containerd, wait};

/// A shell and some 270 small programs, linked in `/bin`; runs as root.
pub const BUSYBOX_IMAGE: &str = "localhost/rubelet/busybox:1";
/// The same, with the numeric user and group 1000:1000.
pub const NUMERIC_USER: &str = "localhost/rubelet/busybox-uid:1";
/// The same, with the user named `app`, which `/etc/passwd` gives the number 1000.
pub const NAMED_USER: &str = "localhost/rubelet/busybox-user:1";
/// The sandbox container: one process that waits, and ends at SIGTERM.
pub const PAUSE: &str = "localhost/rubelet/pause:1";

/// How long the CRI service may take to notice images that were imported.
const NOTICE_TIMEOUT: Duration = Duration::from_secs(30);

/// One shell and nothing else: it blocks in `read` on a named pipe that it holds open itself, and
/// unlike a `sleep` that is process 1, it ends at SIGTERM.
const PAUSE_SCRIPT: &str =
    "trap 'exit 0' TERM INT; exec 3<>/pause; while :; do read -r line <&3; done";

/// An image's name and the `config` part of its configuration.
pub(crate) type Image = (&'static str, Value);

fn images() -> [Image; 4] {
    let env = json!(["PATH=/bin"]);
    [
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
    ]
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

/// An archive in the OCI layout with an image whose layer no other image has: the file `/note` in it
/// says something else.
pub(crate) fn archive_with_note(image: Image, note: &str) -> Result<Vec<u8>> {
    archive::build(&layer::build(Path::new(BUSYBOX), Some(note))?, &[image])
}

/// Imports all images and waits until the CRI service knows them.
///
/// # Errors
/// When they can't be built or imported.
pub fn import(containerd: &Containerd) -> Result<()> {
    let path = containerd.scratch().dir().join("images.tar");
    write_archive(&path)?;
    containerd.ctr(&["images", "import", &path.display().to_string()])?;
    std::fs::remove_file(&path)?;
    let truth = containerd.truth()?;
    wait::until(
        "containerd's CRI service knows the images",
        NOTICE_TIMEOUT,
        || {
            let known = truth.image_names()?;
            Ok(images()
                .iter()
                .all(|(name, _)| known.iter().any(|found| found == name))
                .then_some(()))
        },
    )
}
