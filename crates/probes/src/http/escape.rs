//! Percent-encoding of URLs, by the rules of Go's `net/url`, so that requests are the same as the
//! kubelet's.

use std::fmt::Write;

/// Escapes a path for the request line. Unchanged where all characters are allowed in a path.
///
/// `None`: a percent sign is not followed by two hexadecimal digits.
pub(super) fn path(text: &str) -> Option<String> {
    let decoded = decode(text)?;
    if text
        .bytes()
        .all(|byte| stays(byte) || b"!'()*[]%".contains(&byte))
    {
        return Some(text.to_owned());
    }
    Some(encode(&decoded, stays))
}

/// Any text as a path: percent signs and question marks in it are escaped.
pub(super) fn literal(text: &str) -> String {
    encode(text.as_bytes(), stays)
}

/// Escapes a query for the request line: only characters that are not allowed there.
pub(super) fn query(text: &str) -> String {
    encode(text.as_bytes(), |byte| {
        byte.is_ascii_graphic() && !b"\"<>#".contains(&byte)
    })
}

fn stays(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&byte)
}

fn encode(bytes: &[u8], stays: impl Fn(u8) -> bool) -> String {
    let mut out = String::with_capacity(bytes.len());
    for byte in bytes {
        if stays(*byte) {
            out.push(char::from(*byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

fn decode(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'%' {
            out.push(*byte);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        let digits = std::str::from_utf8(digits).ok()?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        out.push(u8::from_str_radix(digits, 16).ok()?);
        rest = after;
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_go_out_as_go_would_send_them() {
        for (text, sent) in [
            ("/healthz", Some("/healthz")),
            ("/a%20b", Some("/a%20b")),
            ("/a b", Some("/a%20b")),
            ("/a%2fb c", Some("/a/b%20c")),
            ("/ü", Some("/%C3%BC")),
            ("/(x)!*'[]", Some("/(x)!*'[]")),
            ("/{x}|", Some("/%7Bx%7D%7C")),
            ("/50%", None),
            ("/%zz", None),
            ("/%+1", None),
        ] {
            assert_eq!(path(text).as_deref(), sent, "{text}");
        }
        assert_eq!(literal("/50%?a\n"), "/50%25%3Fa%0A");
        assert_eq!(query("a=b c&d=\"ü\"|{}"), "a=b%20c&d=%22%C3%BC%22|{}");
    }
}
