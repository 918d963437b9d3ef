//! Compresses one rotated file to a temporary file, which is renamed once it is on the disk.

use std::{ffi::OsStr, io};

use flate2::{Compression, write::GzEncoder};

use crate::{
    layout::{COMPRESSED, PARTIAL},
    place::LogPlace,
};

/// Replaces a file by a compressed one. A missing file was removed as the oldest meanwhile.
pub(super) fn compress(place: &LogPlace, name: &str) -> io::Result<()> {
    let from = match place.read_other(OsStr::new(name)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    let partial = format!("{name}{PARTIAL}");
    let partial = OsStr::new(&partial);
    place.remove(partial)?;
    let written = place.new_other(partial).and_then(|to| {
        let mut encoder = GzEncoder::new(to, Compression::default());
        io::copy(&mut &from, &mut encoder)?;
        // Without this, a loss of power could leave neither of the two files.
        encoder.finish()?.sync_data()
    });
    let renamed = written
        .and_then(|()| place.rename_other(partial, OsStr::new(&format!("{name}{COMPRESSED}"))));
    match renamed {
        Ok(()) => place.remove(OsStr::new(name)),
        Err(error) => {
            // The next rotation removes a leftover.
            let _ = place.remove(partial);
            Err(error)
        }
    }
}
