//! Tests of `private_key`.

use super::*;

fn refusal(text: &str, mode: u32) -> String {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("key");
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    format!("{:#}", PrivateKey::read(&path).err().unwrap())
}

#[test]
fn a_key_that_others_can_read_is_refused_unread() {
    for mode in [0o640, 0o604, 0o660, 0o644, 0o601] {
        let error = refusal("", mode);
        assert!(
            error.contains("users other than its owner may access it"),
            "{error}"
        );
        assert!(error.contains("chmod 600"), "{error}");
    }
}

#[test]
fn an_unusable_key_is_refused_with_the_reason() {
    let block = |kind: &str, body: &[u8]| {
        let body = STANDARD.encode(body);
        format!("-----BEGIN {kind}-----\n{body}\n-----END {kind}-----\n")
    };
    let openssh = "OPENSSH PRIVATE KEY";
    let locked = b"openssh-key-v1\0\0\0\0\x03aes\0\0\0\x06bcrypt\0\0\0\0\0\0\0\x01";
    for (text, reason) in [
        (String::new(), "it contains no private key"),
        (block("ENCRYPTED PRIVATE KEY", b"x"), "it has a passphrase"),
        (block("PRIVATE KEY", b"x"), "it is not an Ed25519 key"),
        (block(openssh, b"x"), "it is damaged"),
        (block(openssh, locked), "it has a passphrase"),
        (block(openssh, &locked[..20]), "it is damaged"),
        (format!("-----BEGIN {openssh}-----\n"), "is missing"),
    ] {
        let error = refusal(&text, 0o600);
        assert!(error.contains(reason), "{error}");
    }
    let error = PrivateKey::read(Path::new("/")).err().unwrap();
    assert!(
        format!("{error:#}").contains("it is not a file"),
        "{error:#}"
    );
}
