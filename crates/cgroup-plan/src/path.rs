//! A cgroup's path below the root of the hierarchy. The root itself can't be expressed: killing or
//! removing an empty path would mean every process of the machine.

use std::{fmt, sync::Arc};

/// The path of one cgroup that is not the root, for example `/kubepods/burstable/pod1f2e`. It has
/// no `.`, `..` or empty component, so joining it to a mount point can't leave that mount point.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CgroupPath(Arc<str>);

/// Why a cgroup path is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CgroupPathError {
    /// The path is empty or the root.
    #[error("the cgroup path `{0}` names the root of the hierarchy, which is never ours")]
    Root(String),
    /// A component is empty, `.`, `..`, longer than 255 bytes or has a slash or control character.
    #[error("`{component}` cannot be a component of the cgroup path `{path}`")]
    Component {
        /// The whole path.
        path: String,
        /// The offending component.
        component: String,
    },
}

impl CgroupPath {
    /// Reads a path as a kubelet flag or a runtime writes it; the leading slash may be missing.
    ///
    /// # Errors
    /// The path is empty, is the root, or has a component that is not a valid directory name.
    pub fn parse(text: &str) -> Result<Self, CgroupPathError> {
        let inner = text.strip_prefix('/').unwrap_or(text);
        if inner.is_empty() {
            return Err(CgroupPathError::Root(text.to_owned()));
        }
        for component in inner.split('/') {
            check(component, text)?;
        }
        Ok(Self(format!("/{inner}").into()))
    }

    /// The cgroup of that name directly below this one.
    ///
    /// # Errors
    /// `name` is not one component.
    pub fn join(&self, name: &str) -> Result<Self, CgroupPathError> {
        check(name, &format!("{self}/{name}"))?;
        Ok(Self(format!("{self}/{name}").into()))
    }

    /// The path with its leading slash, as in the CRI's `cgroup_parent`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path without its leading slash, to join to a mount point. Never empty.
    #[must_use]
    pub fn relative(&self) -> &str {
        &self.0[1..]
    }

    /// The last component.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    /// The parent cgroup; `None` if that is the root.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        let (parent, _) = self.0.rsplit_once('/')?;
        (!parent.is_empty()).then(|| Self(parent.into()))
    }

    /// The components from the top, at least one.
    pub fn components(&self) -> impl Iterator<Item = &str> {
        self.relative().split('/')
    }
}

fn check(component: &str, path: &str) -> Result<(), CgroupPathError> {
    let bad = matches!(component, "" | "." | "..")
        || component.len() > 255
        || component.chars().any(|c| c == '/' || c.is_control());
    if bad {
        return Err(CgroupPathError::Component {
            path: path.to_owned(),
            component: component.to_owned(),
        });
    }
    Ok(())
}

impl fmt::Display for CgroupPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for CgroupPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CgroupPath({})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_and_paths_that_climb_are_refused() {
        for text in [
            "", "/", "//", "/.", "/..", "..", "a/..", "/a/../b", "/a//b", "/a/", "a\nb",
        ] {
            assert!(CgroupPath::parse(text).is_err(), "{text:?} was taken");
        }
        assert_eq!(
            CgroupPath::parse("/"),
            Err(CgroupPathError::Root("/".into()))
        );
    }

    #[test]
    fn a_path_keeps_its_components() {
        for text in ["/kubepods/burstable", "kubepods/burstable"] {
            let path = CgroupPath::parse(text).unwrap();
            assert_eq!(path.as_str(), "/kubepods/burstable");
            assert_eq!(path.relative(), "kubepods/burstable");
            assert_eq!(path.name(), "burstable");
            assert_eq!(
                path.components().collect::<Vec<_>>(),
                ["kubepods", "burstable"]
            );
            assert_eq!(path.parent(), Some(CgroupPath::parse("/kubepods").unwrap()));
            assert_eq!(path.parent().and_then(|parent| parent.parent()), None);
        }
    }

    #[test]
    fn joining_takes_one_component_only() {
        let path = CgroupPath::parse("/kubepods").unwrap();
        assert_eq!(path.join("pod1").unwrap().as_str(), "/kubepods/pod1");
        for name in ["", ".", "..", "a/b", "/", "../..", "a\0b"] {
            assert!(path.join(name).is_err(), "{name:?} was taken");
        }
    }
}
