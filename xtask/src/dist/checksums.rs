//! SHA-256 sums, in the format of `sha256sum --check`.

use aws_lc_rs::digest::{SHA256, digest};

/// The SHA-256 of `bytes` in hexadecimal digits.
pub(super) fn sha256(bytes: &[u8]) -> String {
    let digest = digest(&SHA256, bytes);
    let digits = digest.as_ref().iter().map(|byte| format!("{byte:02x}"));
    digits.collect()
}

/// One line for each file, ordered by name.
pub(super) fn file(files: &[(String, Vec<u8>)]) -> String {
    let mut lines: Vec<_> = files
        .iter()
        .map(|(name, bytes)| (name, format!("{}  {name}\n", sha256(bytes))))
        .collect();
    lines.sort();
    lines.into_iter().map(|(_, line)| line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sha256sum_accepts_the_file_until_a_byte_changes() {
        let directory = tempfile::tempdir().unwrap();
        let files = [
            ("b".to_owned(), b"2".to_vec()),
            ("a".to_owned(), b"1".to_vec()),
        ];
        for (name, bytes) in &files {
            std::fs::write(directory.path().join(name), bytes).unwrap();
        }
        std::fs::write(directory.path().join("SHA256SUMS"), file(&files)).unwrap();
        let check = || {
            std::process::Command::new("sha256sum")
                .args(["--check", "--strict", "--status", "SHA256SUMS"])
                .current_dir(directory.path())
                .status()
                .unwrap()
                .success()
        };
        assert!(check());
        std::fs::write(directory.path().join("a"), "3").unwrap();
        assert!(!check());
    }
}
