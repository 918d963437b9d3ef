//! The forms of names. For pods of the API server only those are held against the rules that become
//! names of directories; see [`Errors::relaxed`].
//!
//! Source of the rule: RFC 1123 for labels and subdomains, and the object-names and labels pages of
//! the Kubernetes documentation.

use super::{Errors, Path};

pub(super) const LABEL: &str =
    "use up to 63 lower-case letters, digits and '-', with a letter or digit at both ends";
pub(super) const SUBDOMAIN: &str = "use up to 253 lower-case letters, digits, '-' and '.', with a letter or digit at both ends of each part";
const QUALIFIED: &str = "use up to 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends, after an optional domain and '/'";
const LABEL_VALUE: &str = "use up to 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends, or nothing";
const PORT_NAME: &str = "use up to 15 lower-case letters, digits and single '-', at least one letter, with a letter or digit at both ends";

/// A DNS-1123 label, such as a container's name.
pub(super) fn label(path: &Path<'_>, value: &str, errors: &mut Errors) {
    if !is_label(value) {
        errors.invalid(path, value, LABEL);
    }
}

/// A DNS-1123 subdomain, such as a pod's name.
pub(super) fn subdomain(path: &Path<'_>, value: &str, errors: &mut Errors) {
    if !errors.are_relaxed() && !is_subdomain(value) {
        errors.invalid(path, value, SUBDOMAIN);
    }
}

/// The key of a label or, in any case, of an annotation.
pub(super) fn qualified(path: &Path<'_>, value: &str, errors: &mut Errors) {
    if !errors.are_relaxed() && !is_qualified(value) {
        errors.invalid(path, value, QUALIFIED);
    }
}

/// The value of a label.
pub(super) fn label_value(path: &Path<'_>, value: &str, errors: &mut Errors) {
    if !errors.are_relaxed() && !value.is_empty() && !is_short_name(value) {
        errors.invalid(path, value, LABEL_VALUE);
    }
}

/// The name of a port.
pub(super) fn port_name(path: &Path<'_>, value: &str, errors: &mut Errors) {
    if !errors.are_relaxed() && !is_port_name(value) {
        errors.invalid(path, value, PORT_NAME);
    }
}

/// The name of an HTTP header, as far as the API server takes it.
pub(super) fn header(path: &Path<'_>, value: &str, errors: &mut Errors) {
    let valid = value
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b == b'-');
    if !errors.are_relaxed() && !valid {
        errors.invalid(path, value, "use letters, digits and '-'");
    }
}

/// A domain to search, which may hold underscores and end in a dot.
pub(super) fn search_domain(path: &Path<'_>, value: &str, errors: &mut Errors) {
    let domain = value.strip_suffix('.').unwrap_or(value);
    let is_part = |part: &str| {
        let part = part.strip_prefix('_').unwrap_or(part);
        is_enclosed(part, |b| is_lower(b) || b == b'-' || b == b'_', is_lower)
    };
    let valid = value == "." || (domain.len() <= 253 && domain.split('.').all(is_part));
    if !errors.are_relaxed() && !valid {
        errors.invalid(
            path,
            value,
            "must be a domain of lower-case letters, digits, '-', '_' and '.'",
        );
    }
}

/// The name of an environment variable: upstream's relaxed rule.
pub(super) fn env_name(path: &Path<'_>, value: &str, errors: &mut Errors) {
    let valid = value
        .bytes()
        .all(|b| (b' '..=b'~').contains(&b) && b != b'=');
    if !errors.are_relaxed() && !valid {
        errors.invalid(path, value, "use printable ASCII characters other than '='");
    }
}

fn is_lower(b: u8) -> bool {
    b.is_ascii_lowercase() || b.is_ascii_digit()
}

/// Not empty, made of `inner` bytes, with an `end` byte at both ends.
fn is_enclosed(text: &str, inner: impl Fn(u8) -> bool, end: impl Fn(u8) -> bool) -> bool {
    match text.as_bytes() {
        [] => false,
        bytes @ [first, .., last] => end(*first) && end(*last) && bytes.iter().all(|b| inner(*b)),
        [only] => end(*only),
    }
}

pub(super) fn is_label(value: &str) -> bool {
    value.len() <= 63 && is_enclosed(value, |b| is_lower(b) || b == b'-', is_lower)
}

pub(super) fn is_port_name(value: &str) -> bool {
    value.len() <= 15
        && value.bytes().all(|b| is_lower(b) || b == b'-')
        && value.bytes().any(|b| b.is_ascii_lowercase())
        && !value.contains("--")
        && !value.starts_with('-')
        && !value.ends_with('-')
}

pub(super) fn is_subdomain(value: &str) -> bool {
    value.len() <= 253
        && value
            .split('.')
            .all(|part| is_enclosed(part, |b| is_lower(b) || b == b'-', is_lower))
}

fn is_short_name(value: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    value.len() <= 63 && is_enclosed(value, inner, |b| b.is_ascii_alphanumeric())
}

fn is_qualified(value: &str) -> bool {
    match value.split_once('/') {
        Some((domain, name)) => is_subdomain(domain) && is_short_name(name),
        None => is_short_name(value),
    }
}
