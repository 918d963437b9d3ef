//! The target of a watch, and the paths of its requests.

use std::fmt::{self, Write as _};

/// A collection, or the part of it that selectors choose.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WatchTarget {
    /// The collection, such as `/api/v1/pods` or `/api/v1/namespaces/a/configmaps`.
    pub path: String,
    /// Such as `spec.nodeName=a` or `metadata.name=b`.
    pub field_selector: Option<String>,
    /// Such as `app=web`.
    pub label_selector: Option<String>,
}

/// Objects of one page.
const PAGE: &str = "500";

impl WatchTarget {
    /// A page of the list, the first one or what `continues` names. Without `paged`: all of it.
    pub(super) fn list_path(&self, paged: bool, continues: &str) -> String {
        let mut path = self.selected();
        if paged {
            parameter(&mut path, "limit", PAGE);
        }
        if !continues.is_empty() {
            parameter(&mut path, "continue", continues);
        }
        path
    }

    /// A watch that continues after `version`.
    pub(super) fn watch_path(&self, version: &str, seconds: u64) -> String {
        let mut path = self.watched(seconds);
        parameter(&mut path, "resourceVersion", version);
        path
    }

    /// A watch that begins with the existing objects (`sendInitialEvents`).
    pub(super) fn streaming_list_path(&self, seconds: u64) -> String {
        let mut path = self.watched(seconds);
        parameter(&mut path, "sendInitialEvents", "true");
        parameter(&mut path, "resourceVersionMatch", "NotOlderThan");
        path
    }

    fn watched(&self, seconds: u64) -> String {
        let mut path = self.selected();
        parameter(&mut path, "watch", "true");
        parameter(&mut path, "allowWatchBookmarks", "true");
        parameter(&mut path, "timeoutSeconds", &seconds.to_string());
        path
    }

    fn selected(&self) -> String {
        let mut path = self.path.clone();
        if let Some(selector) = &self.field_selector {
            parameter(&mut path, "fieldSelector", selector);
        }
        if let Some(selector) = &self.label_selector {
            parameter(&mut path, "labelSelector", selector);
        }
        path
    }
}

impl fmt::Display for WatchTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)?;
        for selector in [&self.field_selector, &self.label_selector]
            .into_iter()
            .flatten()
        {
            write!(f, " ({selector})")?;
        }
        Ok(())
    }
}

fn parameter(path: &mut String, name: &str, value: &str) {
    path.push(if path.contains('?') { '&' } else { '?' });
    path.push_str(name);
    path.push('=');
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            path.push(char::from(byte));
        } else {
            write!(path, "%{byte:02X}").expect("a String takes any text");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_and_versions_are_escaped() {
        let target = WatchTarget {
            path: "/api/v1/pods".to_owned(),
            field_selector: Some("spec.nodeName=a".to_owned()),
            label_selector: Some("x in (a,b)".to_owned()),
        };
        let selected =
            "/api/v1/pods?fieldSelector=spec.nodeName%3Da&labelSelector=x%20in%20%28a%2Cb%29";
        assert_eq!(
            target.list_path(true, "a/b"),
            format!("{selected}&limit=500&continue=a%2Fb")
        );
        assert_eq!(target.list_path(false, ""), selected);
        assert_eq!(
            target.watch_path("7", 300),
            format!(
                "{selected}&watch=true&allowWatchBookmarks=true&timeoutSeconds=300&resourceVersion=7"
            )
        );
        assert_eq!(
            target.to_string(),
            "/api/v1/pods (spec.nodeName=a) (x in (a,b))"
        );
    }
}
