//! Amounts in the configuration of eviction: quantities, or shares of a capacity.

use rubelet_api::quantity::{Quantity, QuantityError};

/// The value of an eviction threshold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ThresholdValue {
    /// A number of bytes, inodes or processes.
    Absolute(u64),
    /// A share of the capacity.
    Share(f32),
}

/// A threshold that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{signal}: {text:?} is neither a quantity nor a percentage")]
pub struct ThresholdError {
    /// The signal.
    pub signal: String,
    /// The configured text.
    pub text: String,
    /// The error of parsing it as a quantity.
    #[source]
    pub source: QuantityError,
}

impl ThresholdValue {
    /// Parses the amount configured for a signal.
    ///
    /// # Errors
    /// The text is neither a quantity nor a percentage.
    pub(crate) fn parse(signal: &str, text: &str) -> Result<Self, ThresholdError> {
        if let Some(Ok(percent)) = text.strip_suffix('%').map(str::parse::<f32>) {
            return Ok(Self::Share(percent / 100.0));
        }
        match Quantity::parse(text) {
            Ok(quantity) => Ok(Self::Absolute(quantity.units())),
            Err(source) => Err(ThresholdError {
                signal: signal.to_owned(),
                text: text.to_owned(),
                source,
            }),
        }
    }

    /// True for a threshold of `0%` or `100%`, which disables its signal.
    pub(crate) fn is_off(self) -> bool {
        matches!(self, Self::Share(share) if share <= 0.0 || share >= 1.0)
    }

    /// The absolute value for a capacity.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "upstream computes shares in floating point; another way would round differently"
    )]
    pub fn of(self, capacity: u64) -> u64 {
        match self {
            Self::Absolute(amount) => amount,
            Self::Share(share) => (capacity as f64 * f64::from(share)) as u64,
        }
    }
}
