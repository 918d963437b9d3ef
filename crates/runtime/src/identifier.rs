//! Identifiers of sandboxes and containers: 64 hexadecimal digits, as in other runtimes.

/// A new identifier of 256 random bits, so collisions are impossible in practice.
pub(crate) fn random() -> std::io::Result<String> {
    let mut bytes = [0u8; 32];
    let mut filled = 0;
    while filled < bytes.len() {
        filled +=
            rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty())?;
    }
    Ok(hex::encode(bytes))
}

/// Reports whether a file name has the form of an identifier. Only such names are joined to paths.
pub(crate) fn is_identifier(name: &str) -> bool {
    name.len() == 64
        && name
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_differ_and_are_recognised() {
        let (one, other) = (random().unwrap(), random().unwrap());
        assert_ne!(one, other);
        assert!(is_identifier(&one) && is_identifier(&other));
        for name in [
            "",
            "..",
            "abc",
            &"g".repeat(64),
            &"A".repeat(64),
            &"0".repeat(65),
        ] {
            assert!(!is_identifier(name), "{name}");
        }
    }
}
