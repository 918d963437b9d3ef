//! Scripted pulls of images.

use std::time::Duration;

use rubelet_cri::{Code, CriErrorKind};

/// The result of pulling an image. An image without one is in no registry.
#[derive(Debug, Clone)]
pub struct Pull {
    pub(crate) takes: Option<Duration>,
    pub(crate) result: Result<(), (CriErrorKind, String)>,
}

impl Pull {
    /// Succeeds immediately.
    #[must_use]
    pub fn succeeds() -> Self {
        Self {
            takes: Some(Duration::ZERO),
            result: Ok(()),
        }
    }

    /// Fails immediately, with the code that containerd uses for nearly all errors.
    #[must_use]
    pub fn fails(message: &str) -> Self {
        Self::fails_as(CriErrorKind::Other(Code::Unknown), message)
    }

    /// Fails immediately with this kind.
    #[must_use]
    pub fn fails_as(kind: CriErrorKind, message: &str) -> Self {
        Self {
            takes: Some(Duration::ZERO),
            result: Err((kind, message.to_owned())),
        }
    }

    /// Never completes.
    #[must_use]
    pub fn hangs() -> Self {
        Self {
            takes: None,
            result: Ok(()),
        }
    }

    /// The same after `time`.
    #[must_use]
    pub fn taking(self, time: Duration) -> Self {
        Self {
            takes: Some(time),
            ..self
        }
    }
}
