//! The query of a request: percent-decoded pairs.

use crate::status::ApiError;

/// The decoded pairs of a query, in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Splits and decodes a query.
    ///
    /// # Errors
    /// A pair can't be decoded.
    pub fn parse(query: Option<&str>) -> Result<Self, ApiError> {
        let pairs = query
            .unwrap_or_default()
            .split('&')
            .filter(|pair| !pair.is_empty());
        let decoded = pairs.map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decode(key, true)?, decode(value, true)?))
        });
        decoded.collect::<Result<_, ApiError>>().map(Self)
    }

    /// Splits and decodes a query as Go does: pairs that can't be decoded are left out.
    #[must_use]
    pub fn lenient(query: Option<&str>) -> Self {
        let pairs = query.unwrap_or_default().split('&');
        let decoded = pairs.filter(|pair| !pair.is_empty()).filter_map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((decode(key, true).ok()?, decode(value, true).ok()?))
        });
        Self(decoded.collect())
    }

    /// The last value of that key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0
            .iter()
            .rev()
            .find(|(found, _)| found == key)
            .map(|(_, value)| value.as_str())
    }

    /// The first value of that key.
    #[must_use]
    pub fn first(&self, key: &str) -> Option<&str> {
        let mut pairs = self.0.iter();
        let found = pairs.find(|(found, _)| found == key);
        found.map(|(_, value)| value.as_str())
    }

    /// All values of that key.
    pub fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        let pairs = self.0.iter().filter(move |(found, _)| found == key);
        pairs.map(|(_, value)| value.as_str())
    }

    /// A boolean as the API server reads it: absent, empty, `0` and `false` are false.
    ///
    /// # Errors
    /// The value is no boolean.
    pub fn flag(&self, key: &str) -> Result<bool, ApiError> {
        match self.get(key) {
            None | Some("0" | "f" | "F" | "false" | "FALSE" | "False") => Ok(false),
            Some("" | "1" | "t" | "T" | "true" | "TRUE" | "True") => Ok(true),
            Some(other) => Err(invalid(key, other, "must be true or false")),
        }
    }

    /// A whole number of at least `min`.
    ///
    /// # Errors
    /// The value is no number, or less than `min`.
    pub fn number(&self, key: &str, min: u64) -> Result<Option<u64>, ApiError> {
        let Some(text) = self.get(key).filter(|text| !text.is_empty()) else {
            return Ok(None);
        };
        match text.parse::<u64>() {
            Ok(number) if number >= min => Ok(Some(number)),
            _ => Err(invalid(
                key,
                text,
                &format!("must be a whole number, {min} or more"),
            )),
        }
    }
}

/// The answer to a bad value of a query parameter.
#[must_use]
pub fn invalid(key: &str, value: &str, rule: &str) -> ApiError {
    ApiError::bad_request(format!("{key}: Invalid value: {value:?}: {rule}"))
}

/// Undoes percent encoding; `plus` also turns `+` into a space, as queries have it.
///
/// # Errors
/// An escape is incomplete, or the text is not UTF-8.
pub fn decode(text: &str, plus: bool) -> Result<String, ApiError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let mut digit = || rest.next().and_then(|byte| char::from(byte).to_digit(16));
                let pair = digit().zip(digit()).map(|(high, low)| high * 16 + low);
                let decoded = pair.and_then(|value| u8::try_from(value).ok());
                bytes.push(decoded.ok_or_else(|| bad_encoding(text))?);
            }
            b'+' if plus => bytes.push(b' '),
            other => bytes.push(other),
        }
    }
    String::from_utf8(bytes).map_err(|_| bad_encoding(text))
}

fn bad_encoding(text: &str) -> ApiError {
    ApiError::bad_request(format!("invalid percent encoding in {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_decoded_and_the_last_one_wins() {
        let query = Query::parse(Some("labelSelector=a%3Db%2Cc+in+%28d%29&watch=1&watch=0&x"))
            .expect("valid");
        assert_eq!(query.get("labelSelector"), Some("a=b,c in (d)"));
        assert_eq!(query.flag("watch").ok(), Some(false));
        assert_eq!(query.flag("x").ok(), Some(true));
        assert_eq!(query.flag("absent").ok(), Some(false));
    }

    #[test]
    fn broken_values_are_refused() {
        for text in ["a=%", "a=%2", "a=%zz", "a=%ff"] {
            assert!(Query::parse(Some(text)).is_err(), "{text}");
        }
        let query = Query::parse(Some("n=-1&m=x&b=perhaps&zero=0")).expect("valid");
        assert!(query.number("n", 0).is_err());
        assert!(query.number("m", 0).is_err());
        assert!(query.flag("b").is_err());
        assert!(query.number("zero", 1).is_err());
        assert_eq!(query.number("zero", 0).ok(), Some(Some(0)));
    }
}
