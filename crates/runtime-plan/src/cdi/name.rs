//! Names: `vendor/class=device`.

/// Checks the qualified name of a device; returns its kind and its own name.
pub(super) fn qualified(text: &str) -> Result<(&str, &str), String> {
    let Some((kind, device)) = text.split_once('=') else {
        return Err("it has no =".to_owned());
    };
    check_kind(kind)?;
    check_device(device)?;
    Ok((kind, device))
}

/// Checks `vendor/class`.
pub(super) fn check_kind(kind: &str) -> Result<(), String> {
    let Some((vendor, class)) = kind.split_once('/') else {
        return Err(format!("the kind {kind:?} is not vendor/class"));
    };
    for (what, part) in [("vendor", vendor), ("class", class)] {
        let begins = part.starts_with(|c: char| c.is_ascii_alphabetic());
        if !begins || !is_plain(part, "_-.") {
            return Err(format!(
                "the {what} {part:?} must begin with a letter, end with a letter or digit, and have only letters, digits, _ - . between"
            ));
        }
    }
    Ok(())
}

/// Checks the name of a device within its kind.
pub(super) fn check_device(name: &str) -> Result<(), String> {
    let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    match begins && is_plain(name, "_-.:") {
        true => Ok(()),
        false => Err(format!(
            "the device {name:?} must begin and end with a letter or digit, and have only letters, digits, _ - . : between"
        )),
    }
}

fn is_plain(text: &str, others: &str) -> bool {
    text.ends_with(|c: char| c.is_ascii_alphanumeric())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || others.contains(c))
}
