//! Paths of URLs.

/// Removes `.` and `..` segments, RFC 3986, section 5.2.4; `..` above the root stays at the root. A
/// path without a leading slash is not the path of a URL that can be requested, and stays unchanged.
#[must_use]
pub fn without_dots(path: &str) -> String {
    let Some(rest) = path.strip_prefix('/') else {
        return path.to_owned();
    };
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = rest.split('/').peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            "." | ".." => {
                if segment == ".." {
                    kept.pop();
                }
                if is_last {
                    kept.push("");
                }
            }
            other => kept.push(other),
        }
    }
    format!("/{}", kept.join("/"))
}
