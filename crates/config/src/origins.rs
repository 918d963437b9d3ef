//! The origin of each value of the configuration.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The origin of one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It was not given.
    Default,
    /// The configuration file.
    File {
        /// Path as it was given.
        path: Arc<str>,
        /// Line of the field's name, from 1.
        line: usize,
    },
    /// A drop-in file.
    DropIn {
        /// Path as it was given.
        path: Arc<str>,
        /// Line of the field's name, from 1.
        line: usize,
    },
    /// A command-line flag.
    Flag {
        /// Name without dashes.
        name: &'static str,
    },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "file {path}:{line}"),
            Self::DropIn { path, line } => write!(f, "drop-in {path}:{line}"),
            Self::Flag { name } => write!(f, "flag --{name}"),
        }
    }
}

/// The origin of each value other than a default, by the path of its field. Each entry of a mapping
/// has its own, a list has one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origins(BTreeMap<String, Origin>);

impl Origins {
    /// The origin of the value at `path`: its own, or that of the nearest field around it.
    #[must_use]
    pub fn of(&self, path: &str) -> &Origin {
        let mut path = path;
        loop {
            if let Some(origin) = self.0.get(path) {
                return origin;
            }
            match path.rfind(['.', '[']) {
                Some(end) => path = &path[..end],
                None => return &Origin::Default,
            }
        }
    }

    /// The first origin at or below `path`; `None` if all of it is default.
    #[must_use]
    pub fn within(&self, path: &str) -> Option<(&str, &Origin)> {
        self.0
            .range(path.to_owned()..)
            .take_while(|(known, _)| known.starts_with(path))
            .find(|(known, _)| is_within(known, path))
            .map(|(known, origin)| (known.as_str(), origin))
    }

    /// Every value other than a default, in the order of the paths.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Origin)> {
        self.0.iter().map(|(path, origin)| (path.as_str(), origin))
    }

    pub(crate) fn set(&mut self, path: &str, origin: Origin) {
        self.clear(path);
        self.0.insert(path.to_owned(), origin);
    }

    /// Marks everything at and below `path` as default.
    pub(crate) fn clear(&mut self, path: &str) {
        self.0.retain(|known, _| !is_within(known, path));
    }
}

fn is_within(path: &str, outer: &str) -> bool {
    path.strip_prefix(outer)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

#[cfg(test)]
mod tests {
    use super::{Origin, Origins};

    #[test]
    fn a_value_without_own_origin_has_that_of_its_parent() {
        let mut origins = Origins::default();
        origins.set("evictionHard[memory.available]", Origin::Flag { name: "a" });
        origins.set("registerWithTaints", Origin::Flag { name: "b" });
        assert_eq!(
            origins.of("registerWithTaints[0].key").to_string(),
            "flag --b"
        );
        assert_eq!(
            origins.of("evictionHard[memory.available]").to_string(),
            "flag --a"
        );
        assert_eq!(*origins.of("evictionHard"), Origin::Default);
        assert_eq!(*origins.of("register"), Origin::Default);
        let (path, _) = origins.within("evictionHard").unwrap();
        assert_eq!(path, "evictionHard[memory.available]");
        assert!(origins.within("eviction").is_none());
        origins.clear("evictionHard");
        assert!(origins.within("evictionHard").is_none());
    }
}
