//! What a pull of one image comes to.

use std::time::Duration;

use rubelet_cri::{Code, CriErrorKind};

/// The scripted outcome of pulling an image. An image without one is in no registry.
#[derive(Debug, Clone)]
pub struct Pull {
    pub(crate) takes: Option<Duration>,
    pub(crate) result: Result<(), (CriErrorKind, String)>,
}

impl Pull {
    /// Succeeds at once.
    #[must_use]
    pub fn succeeds() -> Self {
        Self {
            takes: Some(Duration::ZERO),
            result: Ok(()),
        }
    }

    /// Fails at once, with the code containerd uses for nearly everything.
    #[must_use]
    pub fn fails(message: &str) -> Self {
        Self::fails_as(CriErrorKind::Other(Code::Unknown), message)
    }

    /// Fails at once with a given kind.
    #[must_use]
    pub fn fails_as(kind: CriErrorKind, message: &str) -> Self {
        Self {
            takes: Some(Duration::ZERO),
            result: Err((kind, message.to_owned())),
        }
    }

    /// Never ends.
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
