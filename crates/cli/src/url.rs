//! Paths and queries of requests.

use std::fmt::Write as _;

/// A path with a query, built pair by pair.
#[derive(Debug, Clone)]
pub(super) struct Url {
    text: String,
    has_query: bool,
}

impl Url {
    /// Starts with a path whose segments are used as they are.
    pub(super) fn new(path: &str) -> Self {
        Self {
            text: path.to_owned(),
            has_query: false,
        }
    }

    /// Appends one path segment.
    pub(super) fn segment(mut self, segment: &str) -> Self {
        self.text.push('/');
        encode(&mut self.text, segment);
        self
    }

    /// Appends a pair to the query.
    pub(super) fn with(mut self, key: &str, value: impl AsRef<str>) -> Self {
        self.text.push(if self.has_query { '&' } else { '?' });
        self.has_query = true;
        self.text.push_str(key);
        self.text.push('=');
        encode(&mut self.text, value.as_ref());
        self
    }

    /// Appends a pair to the query if there is a value.
    pub(super) fn maybe(self, key: &str, value: Option<impl AsRef<str>>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    /// The request target.
    pub(super) fn as_str(&self) -> &str {
        &self.text
    }
}

fn encode(out: &mut String, text: &str) {
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(byte));
            }
            other => write!(out, "%{other:02X}").expect("a String takes any text"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_special_is_encoded() {
        let url = Url::new("/api/v1/pods")
            .segment("a/b?")
            .with("x", "a=b,c d")
            .maybe("y", Some("é"));
        assert_eq!(
            url.as_str(),
            "/api/v1/pods/a%2Fb%3F?x=a%3Db%2Cc%20d&y=%C3%A9"
        );
        assert_eq!(Url::new("/").maybe("y", None::<&str>).as_str(), "/");
    }
}
