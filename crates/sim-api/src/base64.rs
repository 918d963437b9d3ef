//! Base64, for secrets, certificates and tokens.

use ::base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD},
};

/// With padding, as in JSON objects of the API.
pub(crate) fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// For URLs, without padding, as in tokens.
pub(crate) fn encode_url(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Accepts both alphabets, with or without padding; line breaks are skipped.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let text = text.trim_end_matches(['=', '\n', '\r']);
    let plain = text.chars().filter(|letter| !"\r\n".contains(*letter));
    let plain = plain.map(|letter| match letter {
        '-' => '+',
        '_' => '/',
        letter => letter,
    });
    STANDARD_NO_PAD.decode(plain.collect::<String>()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_bytes_are_decoded() {
        for (plain, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encode(plain.as_bytes()), text);
            assert_eq!(decode(text).as_deref(), Some(plain.as_bytes()));
            let url = encode_url(plain.as_bytes());
            assert_eq!(decode(&url).as_deref(), Some(plain.as_bytes()));
        }
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&encode(&all)), Some(all.clone()));
        assert_eq!(decode(&encode_url(&all)), Some(all));
        assert_eq!(decode("a?"), None);
    }
}
