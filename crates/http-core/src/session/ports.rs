//! The ports in a request.

use crate::query::Query;

/// Parses the ports of `key`: repeated, or separated by commas. The errors are the kubelet's.
///
/// # Errors
/// A value is no port.
pub fn ports(query: &Query, key: &str) -> Result<Vec<u16>, PortError> {
    let mut ports = Vec::new();
    for text in query.all(key) {
        if text.is_empty() {
            return Err(PortError::Empty(key.to_owned()));
        }
        for one in text.split(',') {
            match parse(one) {
                Ok(0) => return Err(PortError::Zero(text.to_owned())),
                Ok(port) => ports.push(port),
                Err(why) => {
                    return Err(PortError::Unreadable {
                        text: text.to_owned(),
                        part: one.to_owned(),
                        why,
                    });
                }
            }
        }
    }
    Ok(ports)
}

/// Why ports can't be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PortError {
    /// None is named.
    #[error("query parameter {0:?} is required")]
    Missing(String),
    /// A value is empty.
    #[error("query parameter {0:?} cannot be empty")]
    Empty(String),
    /// A port is zero.
    #[error("port {0:?} must be > 0")]
    Zero(String),
    /// A port is no number of 16 bits.
    #[error("unable to parse {text:?} as a port: strconv.ParseUint: parsing {part:?}: {why}")]
    Unreadable {
        /// The whole value.
        text: String,
        /// The part of it that is wrong.
        part: String,
        /// The error of Go's parser.
        why: &'static str,
    },
}

/// Digits only: no sign, like Go's `ParseUint`.
fn parse(text: &str) -> Result<u16, &'static str> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("invalid syntax");
    }
    text.parse().map_err(|_| "value out of range")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_read_as_the_kubelet_reads_them() {
        for (query, expected) in [
            ("", Ok(vec![])),
            ("port=80", Ok(vec![80])),
            ("port=80&port=0081,82", Ok(vec![80, 81, 82])),
            ("port=", Err("query parameter \"port\" cannot be empty")),
            ("port=8&port=0", Err("port \"0\" must be > 0")),
            ("port=8,0", Err("port \"8,0\" must be > 0")),
            (
                "port=+80",
                Err(
                    "unable to parse \" 80\" as a port: strconv.ParseUint: parsing \" 80\": invalid syntax",
                ),
            ),
            (
                "port=8,",
                Err(
                    "unable to parse \"8,\" as a port: strconv.ParseUint: parsing \"\": invalid syntax",
                ),
            ),
            (
                "port=65536",
                Err(
                    "unable to parse \"65536\" as a port: strconv.ParseUint: parsing \"65536\": value out of range",
                ),
            ),
        ] {
            let query = Query::parse(Some(query)).unwrap();
            let found = ports(&query, "port").map_err(|error| error.to_string());
            assert_eq!(found, expected.map_err(str::to_owned));
        }
    }
}
