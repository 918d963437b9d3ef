//! Query parameters of a request, percent-decoded.

use crate::StatusError;

/// The decoded pairs of a query, in order.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(query: Option<&str>) -> Result<Self, StatusError> {
        let pairs = query
            .unwrap_or_default()
            .split('&')
            .filter(|pair| !pair.is_empty());
        let decoded = pairs.map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decode(key, true)?, decode(value, true)?))
        });
        decoded.collect::<Result<_, StatusError>>().map(Self)
    }

    /// The first value of this key.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        let mut pairs = self.0.iter();
        pairs
            .find(|(found, _)| found == key)
            .map(|(_, value)| value.as_str())
    }

    /// All values of this key, in order.
    pub(crate) fn all(&self, key: &str) -> impl Iterator<Item = &str> {
        let pairs = self.0.iter().filter(move |(found, _)| found == key);
        pairs.map(|(_, value)| value.as_str())
    }

    /// The value of this key; empty if it is missing.
    pub(crate) fn text(&self, key: &str) -> &str {
        self.get(key).unwrap_or_default()
    }

    /// The pairs as a query again; empty for none.
    pub(crate) fn encoded(&self) -> String {
        let pairs = self.0.iter();
        let pairs = pairs.map(|(key, value)| format!("{}={}", encode(key), encode(value)));
        pairs.collect::<Vec<_>>().join("&")
    }

    /// A boolean: absent, `0` and `false` are false.
    pub(crate) fn flag(&self, key: &str) -> Result<bool, StatusError> {
        match self.get(key) {
            None | Some("0" | "f" | "F" | "false" | "FALSE" | "False") => Ok(false),
            Some("" | "1" | "t" | "T" | "true" | "TRUE" | "True") => Ok(true),
            Some(other) => Err(StatusError::bad_request(format!(
                "{key}: Invalid value: {other:?}: must be true or false"
            ))),
        }
    }

    /// A whole number.
    pub(crate) fn number(&self, key: &str) -> Result<Option<u64>, StatusError> {
        let Some(text) = self.get(key).filter(|text| !text.is_empty()) else {
            return Ok(None);
        };
        text.parse().map(Some).map_err(|_| {
            StatusError::bad_request(format!(
                "{key}: Invalid value: {text:?}: must be a whole number, 0 or more"
            ))
        })
    }
}

/// Encodes text for a query: everything except the unreserved characters of RFC 3986 is
/// percent-encoded.
#[must_use]
pub fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                encoded.push(char::from(byte));
            }
            other => encoded.push_str(&format!("%{other:02X}")),
        }
    }
    encoded
}

/// Decodes percent encoding; with `plus`, `+` is a space, as in queries.
pub(crate) fn decode(text: &str, plus: bool) -> Result<String, StatusError> {
    let bad = || StatusError::bad_request(format!("invalid percent encoding in {text:?}"));
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let mut digit = || rest.next().and_then(|byte| char::from(byte).to_digit(16));
                let pair = digit().zip(digit()).map(|(high, low)| high * 16 + low);
                let decoded = pair.and_then(|value| u8::try_from(value).ok());
                bytes.push(decoded.ok_or_else(bad)?);
            }
            b'+' if plus => bytes.push(b' '),
            other => bytes.push(other),
        }
    }
    String::from_utf8(bytes).map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_decoded() {
        let query = Query::parse(Some("fieldSelector=spec.nodeName%3Dn&watch=1&x=a+b")).unwrap();
        assert_eq!(query.text("fieldSelector"), "spec.nodeName=n");
        assert_eq!(query.flag("watch"), Ok(true));
        assert_eq!(query.text("x"), "a b");
        assert_eq!(
            query.encoded(),
            "fieldSelector=spec.nodeName%3Dn&watch=1&x=a%20b"
        );
        assert!(query.number("x").is_err());
        assert!(Query::parse(Some("a=%zz")).is_err());
    }
}
