//! Tells one configuration of credential provider plugins from another.

use aws_lc_rs::digest::{Context, SHA256};

/// The hash of the files of a configuration, in their order, as the kubelet shows it: `sha256:` and the digits of
/// SHA-256, over the length of each file and its content.
#[must_use]
pub fn config_hash(files: &[String]) -> String {
    let mut context = Context::new(&SHA256);
    for file in files {
        context.update(&(file.len() as u64).to_be_bytes());
        context.update(file.as_bytes());
    }
    format!("sha256:{}", hex::encode(context.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_kept_apart_by_their_lengths() {
        let hash = |files: &[&str]| {
            config_hash(
                &files
                    .iter()
                    .map(|&file| file.to_owned())
                    .collect::<Vec<_>>(),
            )
        };
        // printf '\0\0\0\0\0\0\0\2ab' | sha256sum
        assert_eq!(
            hash(&["ab"]),
            "sha256:9caccc24b5d7e06c21c0277b6530d66664273e11f326515c58eaa3691afccfff"
        );
        assert_ne!(hash(&["a", "b"]), hash(&["ab"]));
        assert_ne!(hash(&["a", "b"]), hash(&["b", "a"]));
    }
}
