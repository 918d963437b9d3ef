//! How archives say that something of the layers below is gone.

const PREFIX: &[u8] = b".wh.";
const OPAQUE: &[u8] = b".wh..wh..opq";
const META: &[u8] = b".wh..wh.";

/// What the name of a file means.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Meaning<'a> {
    /// What it is.
    Plain,
    /// This name of the layers below is gone.
    Gone(&'a [u8]),
    /// The folder hides that of the layers below.
    Opaque,
    /// Notes that aufs kept for itself.
    Note,
    /// Nothing that could be.
    Nonsense,
}

pub(super) fn meaning(name: &[u8]) -> Meaning<'_> {
    let Some(rest) = name.strip_prefix(PREFIX) else {
        return Meaning::Plain;
    };
    if name == OPAQUE {
        return Meaning::Opaque;
    }
    if name.starts_with(META) {
        return Meaning::Note;
    }
    match rest {
        b"" | b"." | b".." => Meaning::Nonsense,
        gone => Meaning::Gone(gone),
    }
}
