//! The path of a request, parsed once: access control and routing can't understand it differently.

use rubelet_http_core::query::decode;

/// A path as its decoded segments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CleanPath {
    segments: Vec<String>,
    slash: bool,
}

impl CleanPath {
    /// Parses a path. `None` for one with empty, `.` or `..` segments, with an encoded slash or a
    /// zero byte in a segment, or without a leading slash: nothing is served there, so that no two
    /// parsers can disagree about its meaning.
    pub(super) fn read(path: &str) -> Option<Self> {
        let path = path.strip_prefix('/')?;
        let (path, slash) = match path.strip_suffix('/') {
            Some(path) => (path, true),
            None => (path, false),
        };
        if path.is_empty() {
            return (!slash).then_some(Self {
                segments: Vec::new(),
                slash: true,
            });
        }
        let segments = path.split('/').map(segment).collect::<Option<_>>()?;
        Some(Self { segments, slash })
    }

    /// The segments.
    pub(super) fn segments(&self) -> Vec<&str> {
        self.segments.iter().map(String::as_str).collect()
    }

    /// The first segment; empty for the root.
    pub(super) fn root(&self) -> &str {
        self.segments.first().map_or("", String::as_str)
    }

    /// True if the path ends with a slash.
    pub(super) fn ends_with_slash(&self) -> bool {
        self.slash
    }
}

fn segment(text: &str) -> Option<String> {
    let decoded = decode(text, false).ok()?;
    let clean = !matches!(decoded.as_str(), "" | "." | "..") && !decoded.contains(['/', '\0']);
    clean.then_some(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_decoded() {
        let path = CleanPath::read("/containerLogs/a/b%2Dc/d").unwrap();
        assert_eq!(path.segments(), ["containerLogs", "a", "b-c", "d"]);
        assert_eq!(path.root(), "containerLogs");
        assert!(!path.ends_with_slash());
        assert!(CleanPath::read("/pods/").unwrap().ends_with_slash());
        assert_eq!(CleanPath::read("/").unwrap().root(), "");
    }

    #[test]
    fn paths_that_could_be_read_in_two_ways_are_not_read() {
        for path in [
            "",
            "pods",
            "*",
            "//",
            "//pods",
            "/pods//",
            "/metrics/../exec/a/b/c",
            "/metrics/%2e%2e/exec/a/b/c",
            "/./pods",
            "/metrics%2f..%2fpods",
            "/pods%00",
            "/pods%zz",
            "/pods%ff",
        ] {
            assert_eq!(CleanPath::read(path), None, "{path}");
        }
    }
}
