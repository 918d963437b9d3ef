//! Whiteouts: files of a layer whose names remove entries of the layers below (OCI image layer
//! specification, "Whiteouts").

const PREFIX: &[u8] = b".wh.";
const OPAQUE: &[u8] = b".wh..wh..opq";
const META: &[u8] = b".wh..wh.";

/// The meaning of a file name for the layers below.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Whiteout<'a> {
    /// Nothing: an ordinary file.
    None,
    /// This name of the layers below is removed.
    Removed(&'a [u8]),
    /// The directory is opaque: it hides that of the layers below.
    Opaque,
    /// Metadata of aufs.
    AufsMetadata,
    /// A whiteout of an invalid name.
    Invalid,
}

pub(super) fn parse_whiteout(name: &[u8]) -> Whiteout<'_> {
    let Some(rest) = name.strip_prefix(PREFIX) else {
        return Whiteout::None;
    };
    if name == OPAQUE {
        return Whiteout::Opaque;
    }
    if name.starts_with(META) {
        return Whiteout::AufsMetadata;
    }
    match rest {
        b"" | b"." | b".." => Whiteout::Invalid,
        gone => Whiteout::Removed(gone),
    }
}
