//! Names: `vendor/class=device`.

/// What is invalid in a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// A qualified name does not separate the kind from the device.
    #[error("it has no =")]
    NotQualified,
    /// A kind does not separate the vendor from the class.
    #[error("the kind {0:?} is not vendor/class")]
    Kind(String),
    /// A vendor or a class has invalid characters.
    #[error(
        "the {part} {name:?} must begin with a letter, end with a letter or digit, and have only letters, digits, _ - . between"
    )]
    KindPart {
        /// `vendor` or `class`.
        part: &'static str,
        /// The name.
        name: String,
    },
    /// A device has invalid characters.
    #[error(
        "the device {0:?} must begin and end with a letter or digit, and have only letters, digits, _ - . : between"
    )]
    Device(String),
}

/// Checks the qualified name of a device; returns its kind and its own name.
pub(super) fn qualified(text: &str) -> Result<(&str, &str), NameError> {
    let Some((kind, device)) = text.split_once('=') else {
        return Err(NameError::NotQualified);
    };
    check_kind(kind)?;
    check_device(device)?;
    Ok((kind, device))
}

/// Checks `vendor/class`.
pub(super) fn check_kind(kind: &str) -> Result<(), NameError> {
    let Some((vendor, class)) = kind.split_once('/') else {
        return Err(NameError::Kind(kind.to_owned()));
    };
    for (part, name) in [("vendor", vendor), ("class", class)] {
        let begins = name.starts_with(|c: char| c.is_ascii_alphabetic());
        if !begins || !is_plain(name, "_-.") {
            return Err(NameError::KindPart {
                part,
                name: name.to_owned(),
            });
        }
    }
    Ok(())
}

/// Checks the name of a device within its kind.
pub(super) fn check_device(name: &str) -> Result<(), NameError> {
    let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    match begins && is_plain(name, "_-.:") {
        true => Ok(()),
        false => Err(NameError::Device(name.to_owned())),
    }
}

fn is_plain(text: &str, others: &str) -> bool {
    text.ends_with(|c: char| c.is_ascii_alphanumeric())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || others.contains(c))
}
