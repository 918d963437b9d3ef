//! Names of entries, validated and normalized.

/// A path below the directory: parts joined by `/`, none of them empty, `.` or `..`. Empty is the
/// directory itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Name(Vec<u8>);

/// The longest part that file systems support.
const MAX_PART: usize = 255;
/// The longest path that the kernel accepts, without the terminator.
const MAX_PATH: usize = 4095;

impl Name {
    /// Leading slashes and single dots are ignored. The error says why a name is rejected.
    pub(super) fn parse(path: &[u8], depth: usize) -> Result<Self, &'static str> {
        let mut name = Vec::with_capacity(path.len());
        let mut parts = 0;
        for part in path.split(|byte| *byte == b'/') {
            match part {
                b"" | b"." => continue,
                b".." => return Err("path contains `..`"),
                _ => {}
            }
            if part.contains(&0) {
                return Err("path contains a NUL byte");
            }
            if part.len() > MAX_PART {
                return Err("path component is too long");
            }
            if !name.is_empty() {
                name.push(b'/');
            }
            name.extend_from_slice(part);
            parts += 1;
        }
        if name.len() > MAX_PATH {
            return Err("path is too long");
        }
        if parts > depth {
            return Err("path has too many directories");
        }
        Ok(Self(name))
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Its parent directory, and its name there.
    pub(super) fn split(&self) -> (&[u8], &[u8]) {
        match self.0.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => (&self.0[..slash], &self.0[slash + 1..]),
            None => (&[], &self.0),
        }
    }

    /// The name for a message.
    pub(super) fn shown(&self) -> String {
        shown(&self.0)
    }
}

/// A path for a message, truncated if it is long.
pub(super) fn shown(path: &[u8]) -> String {
    const MOST: usize = 200;
    String::from_utf8_lossy(&path[..path.len().min(MOST)]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_normalized() {
        for (path, simple) in [
            ("./a//b/", "a/b"),
            ("/", ""),
            (".", ""),
            ("", ""),
            ("/a/./b", "a/b"),
        ] {
            assert_eq!(
                Name::parse(path.as_bytes(), 10).unwrap().as_bytes(),
                simple.as_bytes()
            );
        }
        let long = "x".repeat(256);
        assert!(Name::parse(long.as_bytes(), 10).is_err());
        assert!(Name::parse("abc/".repeat(1100).as_bytes(), 5000).is_err());
        assert!(Name::parse(b"a\0b", 10).is_err());
    }
}
