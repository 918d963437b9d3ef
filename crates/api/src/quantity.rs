//! Quantities as Kubernetes writes them: `250m`, `0.5`, `64Mi`, `1e3`.
//!
//! Source of the rule: the documentation of `resource.Quantity` in the Kubernetes API. The value is
//! kept in thousand-millionths, the finest step that the format knows; anything finer is rounded up.

use crate::resources::{Bytes, MilliCpu};

const NANO: u128 = 1_000_000_000;
/// The largest number of whole units a quantity may stand for: 2^63 - 1.
const MAX_UNITS: u128 = i64::MAX as u128;

/// A parsed quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Quantity {
    nano: i128,
}

/// Why a text is not a quantity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// There is no number at the start.
    #[error("must be a number with an optional suffix, such as 250m, 0.5, 64Mi or 2Gi")]
    Number,
    /// An unknown suffix.
    #[error("{0:?} is not a suffix; use n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi or Ei")]
    Suffix(String),
    /// More than 2^63 - 1.
    #[error("is larger than 9223372036854775807")]
    TooLarge,
}

impl Quantity {
    /// Parses a quantity.
    ///
    /// # Errors
    /// The text has no number, an unknown suffix, or stands for more than 2^63 - 1 units.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        let (negative, unsigned) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        let end = unsigned
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return Err(QuantityError::Number);
        }
        let scale = Scale::of(suffix)?;
        let magnitude = scale.nano(whole, fraction)?;
        if magnitude > MAX_UNITS * NANO {
            return Err(QuantityError::TooLarge);
        }
        let nano = i128::try_from(magnitude).map_err(|_| QuantityError::TooLarge)?;
        Ok(Self {
            nano: if negative { -nano } else { nano },
        })
    }

    /// True for less than nothing.
    #[must_use]
    pub(crate) fn is_negative(self) -> bool {
        self.nano < 0
    }

    /// Thousandths, rounded up; 0 for negative quantities.
    #[must_use]
    pub fn milli(self) -> u128 {
        self.nano.max(0).unsigned_abs().div_ceil(1_000_000)
    }

    /// Whole units, rounded up; 0 for negative quantities.
    #[must_use]
    pub fn units(self) -> Bytes {
        let units = self.nano.max(0).unsigned_abs().div_ceil(NANO);
        Bytes::try_from(units).unwrap_or(Bytes::MAX)
    }

    /// Thousandths of a core, rounded up; amounts that no machine has are cut to the largest one.
    #[must_use]
    pub fn milli_cpu(self) -> MilliCpu {
        MilliCpu::try_from(self.milli()).unwrap_or(MilliCpu::MAX)
    }
}

/// A suffix: a factor, or a decimal exponent.
enum Scale {
    Factor(u128),
    Exponent(i32),
}

impl Scale {
    fn of(suffix: &str) -> Result<Self, QuantityError> {
        let binary = |power: u32| Self::Factor(1 << (10 * power));
        Ok(match suffix {
            "n" => Self::Exponent(-9),
            "u" => Self::Exponent(-6),
            "m" => Self::Exponent(-3),
            "" => Self::Exponent(0),
            "k" => Self::Exponent(3),
            "M" => Self::Exponent(6),
            "G" => Self::Exponent(9),
            "T" => Self::Exponent(12),
            "P" => Self::Exponent(15),
            "E" => Self::Exponent(18),
            "Ki" => binary(1),
            "Mi" => binary(2),
            "Gi" => binary(3),
            "Ti" => binary(4),
            "Pi" => binary(5),
            "Ei" => binary(6),
            _ => {
                let exponent = suffix
                    .strip_prefix(['e', 'E'])
                    .and_then(|rest| rest.parse().ok());
                Self::Exponent(exponent.ok_or_else(|| QuantityError::Suffix(suffix.to_owned()))?)
            }
        })
    }

    /// The number in thousand-millionths, rounded up.
    fn nano(&self, whole: &str, fraction: &str) -> Result<u128, QuantityError> {
        let whole = whole.trim_start_matches('0');
        let fraction = fraction.trim_end_matches('0');
        if whole.is_empty() && fraction.is_empty() {
            return Ok(0);
        }
        let (factor, exponent) = match *self {
            Self::Factor(factor) => (factor, 0),
            Self::Exponent(exponent) => (1, exponent),
        };
        let digits = format!("{whole}{fraction}");
        let digits = digits.trim_start_matches('0');
        let places = i64::try_from(fraction.len()).map_err(|_| QuantityError::TooLarge)?;
        // The value is digits * factor * 10^shift thousand-millionths.
        let shift = i64::from(exponent) + 9 - places;
        let length = i64::try_from(digits.len()).map_err(|_| QuantityError::TooLarge)?;
        if length + shift > 30 {
            return Err(QuantityError::TooLarge);
        }
        if length + shift < -25 {
            return Ok(1);
        }
        // Digits beyond the 25th after the first can only round the last one up.
        let kept = digits.len().min(25);
        let cut = digits.len() - kept;
        let rest = digits[kept..].bytes().any(|digit| digit != b'0');
        let mantissa: u128 = digits[..kept].parse().map_err(|_| QuantityError::Number)?;
        let shift = shift + i64::try_from(cut).map_err(|_| QuantityError::TooLarge)?;
        let power = 10u128.checked_pow(u32::try_from(shift.unsigned_abs()).unwrap_or(u32::MAX));
        let product = mantissa.checked_mul(factor);
        let (value, exact) = match (shift >= 0, power, product) {
            (true, Some(power), Some(product)) => (
                product.checked_mul(power).ok_or(QuantityError::TooLarge)?,
                true,
            ),
            (false, Some(power), Some(product)) => (product / power, product % power == 0),
            (false, None, Some(_)) => (0, false),
            _ => return Err(QuantityError::TooLarge),
        };
        Ok(if exact && !rest { value } else { value + 1 })
    }
}

#[cfg(test)]
mod tests;
