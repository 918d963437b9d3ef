//! Keys and values of labels and taints.
//!
//! Source of the rule: `IsQualifiedName` and `IsValidLabelValue` in `k8s.io/apimachinery`.

/// The problem with a label's key, if any.
pub(crate) fn label_key_problem(key: &str) -> Option<&'static str> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    if prefix.is_some_and(|prefix| !is_dns_subdomain(prefix)) {
        return Some("the part before / must be a DNS name in lower case");
    }
    match is_name(name) {
        true => None,
        false => Some(
            "the name must be 1 to 63 letters, digits, '-', '_' or '.', with a letter or digit \
             at both ends",
        ),
    }
}

/// The problem with a label's value, if any.
pub(crate) fn label_value_problem(value: &str) -> Option<&'static str> {
    match value.is_empty() || is_name(value) {
        true => None,
        false => Some(
            "the value must be up to 63 letters, digits, '-', '_' or '.', with a letter or digit \
             at both ends",
        ),
    }
}

fn is_name(text: &str) -> bool {
    let edge = |c: char| c.is_ascii_alphanumeric();
    (1..=63).contains(&text.len())
        && text.starts_with(edge)
        && text.ends_with(edge)
        && text.chars().all(|c| edge(c) || "-_.".contains(c))
}

fn is_dns_subdomain(text: &str) -> bool {
    let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.len() <= 253
        && text.split('.').all(|part| {
            part.starts_with(edge)
                && part.ends_with(edge)
                && part.chars().all(|c| edge(c) || c == '-')
        })
}
