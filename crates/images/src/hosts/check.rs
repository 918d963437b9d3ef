//! Validates the directories of registries, before a pull fails because of them.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use rubelet_base::ErrorChain;

use super::{of_directory, unreadable};
use crate::registry::try_certificates;

/// The errors in the directories of registries below these, each in a sentence that names the file. A
/// missing directory is not an error. Blocks.
#[must_use]
pub fn check(directories: &[PathBuf]) -> Vec<String> {
    directories
        .iter()
        .flat_map(|root| faults_below(root))
        .collect()
}

fn faults_below(root: &Path) -> Vec<String> {
    let entries = fs::read_dir(root).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let entries = match entries {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => return vec![unreadable(root, &error)],
    };
    let mut registries: Vec<PathBuf> = entries.iter().map(fs::DirEntry::path).collect();
    registries.retain(|path| path.is_dir());
    registries.sort();
    let found = registries
        .iter()
        .flat_map(|directory| match of_directory(directory) {
            Err(fault) => vec![fault],
            Ok(hosts) => {
                let check = hosts.iter().filter_map(|host| try_certificates(host).err());
                check.map(|fault| ErrorChain(&fault).to_string()).collect()
            }
        });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_names_its_file_and_valid_files_have_none() {
        let root = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            let file = root.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        put(
            "right.test/hosts.toml",
            "server = \"https://mirror.test\"\n",
        );
        put("empty.test/hosts.toml", "");
        put(
            "wrong.test/hosts.toml",
            "\n[host.\"https://m.test\"]\nca = 5\n",
        );
        put(
            "_default/hosts.toml",
            "[host.\"https://m.test\"]\nca = \"/nowhere.pem\"\n",
        );
        put("docker.test_5000_/own.crt", "no certificate");
        put("a-file", "is no registry");
        let missing = root.path().join("missing");
        let found = check(&[missing, root.path().to_owned()]);
        assert_eq!(found.len(), 3, "{found:#?}");
        for (fault, parts) in found.iter().zip([
            ["_default/hosts.toml:2", "/nowhere.pem"],
            ["docker.test_5000_/own.crt", "no certificate"],
            ["wrong.test/hosts.toml:3", "ca"],
        ]) {
            for part in parts {
                assert!(fault.contains(part), "{part} in {fault}");
            }
        }
    }
}
