//! A text that is never shown.

use std::fmt;

use serde::{Deserialize, Deserializer, de};

/// A token or password. Debug output hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Box<str>);

impl Secret {
    /// Wraps a text.
    #[must_use]
    pub fn new(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the one who sends it.
    #[must_use]
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The usual message would quote what it found.
        let text = String::deserialize(deserializer);
        text.map(Self::new)
            .map_err(|_| de::Error::custom("expected a text"))
    }
}
