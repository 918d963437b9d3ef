//! A detached signature in OpenSSH's format (PROTOCOL.sshsig of openssh-portable), which
//! `ssh-keygen -Y verify` checks on any machine with an SSH client.

use aws_lc_rs::digest::{SHA512, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::private_key::{KEY_TYPE, PrivateKey};

/// The namespace of the signature: one for another purpose with the same key is rejected.
const NAMESPACE: &str = "rubelet-release";
/// The name of the signer in the verifier's list.
const SIGNER: &str = "rubelet";
const MAGIC: &[u8] = b"SSHSIG";
const HASH: &[u8] = b"sha512";
/// Line length of a signature.
const LINE: usize = 70;

/// The signature of `message`, as text.
pub(super) fn sign(key: &PrivateKey, message: &[u8]) -> String {
    let hash = digest(&SHA512, message);
    let mut signed = MAGIC.to_vec();
    for part in [NAMESPACE.as_bytes(), b"", HASH, hash.as_ref()] {
        put(&mut signed, part);
    }
    let mut signature = Vec::new();
    put(&mut signature, KEY_TYPE);
    put(&mut signature, &key.sign(&signed));

    let mut whole = MAGIC.to_vec();
    // The version of the format.
    whole.extend(1_u32.to_be_bytes());
    for part in [
        &public(key)[..],
        NAMESPACE.as_bytes(),
        b"",
        HASH,
        &signature,
    ] {
        put(&mut whole, part);
    }
    let text = STANDARD.encode(whole);
    let mut lines = vec!["-----BEGIN SSH SIGNATURE-----"];
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, more) = rest.split_at(rest.len().min(LINE));
        lines.push(line);
        rest = more;
    }
    lines.push("-----END SSH SIGNATURE-----\n");
    lines.join("\n")
}

/// The line of the public key in a verifier's allowed signers file.
pub(super) fn allowed_signer(key: &PrivateKey) -> String {
    let kind = String::from_utf8_lossy(KEY_TYPE);
    format!("{SIGNER} {kind} {}", STANDARD.encode(public(key)))
}

/// The commands with which a user verifies a release.
pub(super) fn how_to_verify(key: &PrivateKey) -> String {
    format!(
        "  echo '{}' > allowed_signers\n  {} && sha256sum --check SHA256SUMS",
        allowed_signer(key),
        verify_command()
    )
}

/// Verifies the signature of SHA256SUMS in the working directory.
fn verify_command() -> String {
    format!(
        "ssh-keygen -Y verify -f allowed_signers -I {SIGNER} -n {NAMESPACE} -s SHA256SUMS.sig \
         < SHA256SUMS"
    )
}

fn public(key: &PrivateKey) -> Vec<u8> {
    let mut blob = Vec::new();
    put(&mut blob, KEY_TYPE);
    put(&mut blob, key.public());
    blob
}

/// An SSH string: its length as four bytes, then the bytes.
fn put(into: &mut Vec<u8>, part: &[u8]) {
    let length = u32::try_from(part.len()).expect("parts are names, keys, hashes and signatures");
    into.extend(length.to_be_bytes());
    into.extend(part);
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use super::*;

    /// Whether the programs that the test compares with are installed.
    fn has_programs(names: &[&str]) -> bool {
        let is_there = |name: &&str| Command::new(name).arg("-?").output().is_ok();
        let missing = names.iter().find(|name| !is_there(name));
        rubelet_needs::have(missing.is_none(), missing.unwrap_or(&""))
    }

    fn run(directory: &Path, command: &str) -> bool {
        let output = Command::new("sh")
            .args(["-c", command])
            .current_dir(directory)
            .output();
        output.unwrap().status.success()
    }

    #[test]
    fn ssh_keygen_accepts_the_signature_until_a_byte_changes() {
        if !has_programs(&["ssh-keygen", "openssl"]) {
            return;
        }
        // A key of each form.
        for make in [
            "ssh-keygen -q -t ed25519 -N '' -C comment -f key",
            "openssl genpkey -algorithm ed25519 -out key",
        ] {
            let directory = tempfile::tempdir().unwrap();
            let directory = directory.path();
            assert!(
                run(directory, &format!("{make} && chmod 600 key")),
                "{make}"
            );
            let key = PrivateKey::read(&directory.join("key")).unwrap();
            let message = b"00  rubelet.tar.gz\n";
            let write = |name: &str, bytes: &[u8]| {
                std::fs::write(directory.join(name), bytes).unwrap();
            };
            write("SHA256SUMS", message);
            write("SHA256SUMS.sig", sign(&key, message).as_bytes());
            write("allowed_signers", allowed_signer(&key).as_bytes());
            assert!(run(directory, &verify_command()), "{make}");
            write("SHA256SUMS", b"01  rubelet.tar.gz\n");
            assert!(!run(directory, &verify_command()));
            write("SHA256SUMS", message);
            let elsewhere = verify_command().replace(NAMESPACE, "file");
            assert!(!run(directory, &elsewhere));
        }
    }

    #[test]
    fn a_key_of_another_type_is_refused_by_its_name() {
        if !has_programs(&["ssh-keygen"]) {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let make = "ssh-keygen -q -t ecdsa -N '' -f key";
        assert!(run(directory.path(), make));
        let error = PrivateKey::read(&directory.path().join("key"))
            .err()
            .unwrap();
        let error = format!("{error:#}");
        assert!(error.contains("of type ecdsa-sha2-nistp256"), "{error}");
    }
}
