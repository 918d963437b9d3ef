//! Subjects of calls, and patterns of them.

use std::fmt;

/// The pod, container or image of a call. In a pattern, `None` matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subject {
    /// The UID in the sandbox's metadata.
    pub pod_uid: Option<String>,
    /// The name in the container's metadata.
    pub container: Option<String>,
    /// The runtime's identifier of the container, or of the sandbox if the call is not about a
    /// container.
    pub id: Option<String>,
    /// The image, as spelled in the request.
    pub image: Option<String>,
}

impl Subject {
    /// Matches every call.
    #[must_use]
    pub fn any() -> Self {
        Self::default()
    }

    /// Calls about this pod's sandboxes and containers.
    #[must_use]
    pub fn pod(uid: &str) -> Self {
        Self {
            pod_uid: Some(uid.to_owned()),
            ..Self::any()
        }
    }

    /// Calls about the containers of this name in this pod, whatever their attempt.
    #[must_use]
    pub fn container(uid: &str, name: &str) -> Self {
        Self {
            container: Some(name.to_owned()),
            ..Self::pod(uid)
        }
    }

    /// Calls about the one sandbox or container with this identifier.
    #[must_use]
    pub fn id(id: &str) -> Self {
        Self {
            id: Some(id.to_owned()),
            ..Self::any()
        }
    }

    /// Calls about this image, spelled as in the request.
    #[must_use]
    pub fn image(image: &str) -> Self {
        Self {
            image: Some(image.to_owned()),
            ..Self::any()
        }
    }

    fn parts(&self) -> [(&'static str, &Option<String>); 4] {
        [
            ("pod", &self.pod_uid),
            ("container", &self.container),
            ("id", &self.id),
            ("image", &self.image),
        ]
    }

    pub(crate) fn matches(&self, call: &Self) -> bool {
        let pairs = self.parts().into_iter().zip(call.parts());
        pairs
            .into_iter()
            .all(|((_, want), (_, have))| want.is_none() || want == have)
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in self.parts() {
            if let Some(value) = value {
                write!(f, " {name}={value}")?;
            }
        }
        Ok(())
    }
}
