//! Names of entries, made safe and simple.

/// A path below the folder: parts joined by `/`, none of them empty, `.` or `..`. Empty is the
/// folder itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Name(Vec<u8>);

/// The longest part that file systems take.
const MAX_PART: usize = 255;
/// The longest path that the kernel takes, without its end.
const MAX_PATH: usize = 4095;

impl Name {
    /// Leading slashes and single dots say nothing. Why it is refused otherwise.
    pub(super) fn parse(path: &[u8], depth: usize) -> Result<Self, &'static str> {
        let mut name = Vec::with_capacity(path.len());
        let mut parts = 0;
        for part in path.split(|byte| *byte == b'/') {
            match part {
                b"" | b"." => continue,
                b".." => return Err("its name has `..` in it"),
                _ => {}
            }
            if part.contains(&0) {
                return Err("its name has a zero byte");
            }
            if part.len() > MAX_PART {
                return Err("a part of its name is longer than a name can be");
            }
            if !name.is_empty() {
                name.push(b'/');
            }
            name.extend_from_slice(part);
            parts += 1;
        }
        if name.len() > MAX_PATH {
            return Err("its name is longer than a path can be");
        }
        if parts > depth {
            return Err("it is in too many folders");
        }
        Ok(Self(name))
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The folder it is in, and its name there.
    pub(super) fn split(&self) -> (&[u8], &[u8]) {
        match self.0.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => (&self.0[..slash], &self.0[slash + 1..]),
            None => (&[], &self.0),
        }
    }

    /// For a message.
    pub(super) fn shown(&self) -> String {
        shown(&self.0)
    }
}

/// For a message: the beginning, if it is long.
pub(super) fn shown(path: &[u8]) -> String {
    const MOST: usize = 200;
    String::from_utf8_lossy(&path[..path.len().min(MOST)]).into_owned()
}
