//! Names of objects.

use serde_json::Value;

use crate::{Kind, StatusError, meta, status_error::FieldError};

/// Refuses a name that the API server does not accept.
pub(crate) fn check(kind: &Kind, object: &Value) -> Result<(), StatusError> {
    let name = meta::name(object);
    let refused = |message: &str| {
        let cause = FieldError::invalid("metadata.name", &name.into(), message);
        Err(StatusError::invalid(kind, name, vec![cause]))
    };
    if name.is_empty() {
        let cause = FieldError::required("metadata.name", "name or generateName is required");
        return Err(StatusError::invalid(kind, "", vec![cause]));
    }
    // Names of certificate requests and leases can be any valid path segment.
    if name.contains(['/', '%']) || name == "." || name == ".." {
        return refused("may not contain '/' or '%', and may not be '.' or '..'");
    }
    let is_free = ["certificatesigningrequests", "leases"].contains(&kind.storage);
    if !is_free && !is_subdomain(name) {
        return refused(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' \
             or '.', and must start and end with an alphanumeric character (e.g. 'example.com', \
             regex used for validation is \
             '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
        );
    }
    Ok(())
}

/// Whether a name is a lower-case RFC 1123 subdomain.
fn is_subdomain(name: &str) -> bool {
    let is_end = |byte: Option<u8>| {
        byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    name.len() <= 253
        && name.split('.').all(|label| {
            let mut bytes = label.bytes();
            is_end(label.bytes().next())
                && is_end(label.bytes().last())
                && bytes.all(|byte| is_end(Some(byte)) || byte == b'-')
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_rfc_1123_subdomains() {
        for name in ["a", "web-1", "a.b-c.d", "1"] {
            assert!(is_subdomain(name), "{name}");
        }
        for name in ["", "A", "-a", "a-", "a..b", "a_b", "web:1"] {
            assert!(!is_subdomain(name), "{name}");
        }
    }
}
