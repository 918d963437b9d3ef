//! What is removed may be absent.

use std::io;

/// The result of a removal: what does not exist is removed already.
///
/// # Errors
/// Those of the removal, but for [`io::ErrorKind::NotFound`].
pub fn is_fine(removal: io::Result<()>) -> io::Result<()> {
    match removal {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
