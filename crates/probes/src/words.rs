//! Messages of Go's libraries: operators know them from events.

use std::io;

use rubelet_base::error_text;

/// The message of a system error: `connection refused`.
pub(crate) fn of(error: &io::Error) -> String {
    if error.raw_os_error().is_none() {
        return error.to_string();
    }
    let text = error_text(error);
    let mut chars = text.chars();
    chars
        .next()
        .map(|first| first.to_ascii_lowercase())
        .into_iter()
        .chain(chars)
        .collect()
}

/// A text in double quotes, with unprintable characters escaped: Go's `%q`.
pub fn quoted(bytes: &[u8]) -> String {
    let mut out = String::from('"');
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\x07' => out.push_str("\\a"),
                '\x08' => out.push_str("\\b"),
                '\x0b' => out.push_str("\\v"),
                '\x0c' => out.push_str("\\f"),
                c if c.is_ascii_control() => out.push_str(&format!("\\x{:02x}", u32::from(c))),
                c if c.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(c))),
                c => out.push(c),
            }
        }
        for byte in chunk.invalid() {
            out.push_str(&format!("\\x{byte:02x}"));
        }
    }
    out.push('"');
    out
}

/// Host and port: `10.0.0.1:80`, `[::1]:80`.
pub(crate) fn joined(host: &str, port: u16) -> String {
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_speaks_as_in_go() {
        for (number, text) in [
            (libc::ECONNREFUSED, "connection refused"),
            (libc::ECONNRESET, "connection reset by peer"),
            (libc::EHOSTUNREACH, "no route to host"),
            (libc::ENETUNREACH, "network is unreachable"),
            (libc::EMFILE, "too many open files"),
            (libc::EADDRNOTAVAIL, "cannot assign requested address"),
        ] {
            assert_eq!(of(&io::Error::from_raw_os_error(number)), text);
        }
        assert_eq!(of(&io::Error::other("Some text")), "Some text");
    }

    #[test]
    fn quotes_show_what_a_terminal_would_hide() {
        for (bytes, text) in [
            (&b"plain"[..], r#""plain""#),
            (b"a\"b\\c\r\n\t", r#""a\"b\\c\r\n\t""#),
            (
                b"\x15\x03\x01\x00\x02\x02\x16",
                r#""\x15\x03\x01\x00\x02\x02\x16""#,
            ),
            (b"\xff\xfe", r#""\xff\xfe""#),
            ("ü\u{85}".as_bytes(), "\"ü\\u0085\""),
        ] {
            assert_eq!(quoted(bytes), text);
        }
    }
}
