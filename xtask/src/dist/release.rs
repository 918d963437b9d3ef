//! The files of a release, from the binary and its source.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use rubelet_testbed::command::stdout_of;
use serde_json::Value;

use super::archive::{Entry, tar_gz};
use super::packages::{self, Package};
use super::reproducible::Built;
use super::source::Source;
use super::{checksums, licences, sbom};

/// The released package.
const PACKAGE: &str = "rubelet";
/// Files from the source: their path, and their name in the archive.
const FROM_SOURCE: [(&str, &str); 7] = [
    ("CHANGELOG.md", "CHANGELOG.md"),
    ("LICENSE", "LICENSE"),
    ("packaging/README.md", "README.md"),
    ("packaging/config.yaml", "config.yaml"),
    ("packaging/rubelet.service", "rubelet.service"),
    ("packaging/secrets-key.conf", "secrets-key.conf"),
    (
        "packaging/rubelet-runtime.service",
        "rubelet-runtime.service",
    ),
];

/// A release.
pub(super) struct Release<'a> {
    source: &'a Source,
    built: &'a Built,
    /// Name, version and architecture.
    name: String,
    target: String,
    rustc: String,
    packages: Vec<Package>,
    /// Licences of Rust's standard library, which is linked too.
    std_licences: Vec<u8>,
}

impl<'a> Release<'a> {
    /// Inspects the build.
    ///
    /// # Errors
    ///
    /// The binary reports something else about itself.
    pub(super) fn new(source: &'a Source, built: &'a Built) -> Result<Self> {
        let said = stdout_of(Command::new(&built.program).args([
            "version",
            "--output=json",
            "--socket=/nonexistent",
        ]))?;
        let said: Value = serde_json::from_str(&said).context("the binary's version")?;
        let said = &said["clientVersion"];
        let text = |key: &str| {
            let value = said[key].as_str().map(str::to_owned);
            value.with_context(|| format!("the binary does not report its {key}"))
        };
        ensure!(
            text("gitCommit")? == source.commit,
            "the binary reports commit {}, not {}",
            text("gitCommit")?,
            source.commit
        );
        let target = text("target")?;
        let packages = packages::linked(&built.source, PACKAGE, &target)?;
        check_libraries(&said["libraries"], &packages)?;
        let architecture = target.split('-').next().unwrap_or(&target);
        Ok(Self {
            name: format!("{PACKAGE}-{}-{architecture}", text("rubelet")?),
            rustc: text("rustcVersion")?,
            std_licences: std_licences(&built.source)?,
            source,
            built,
            target,
            packages,
        })
    }

    /// Names and contents of the archive and of the bill of materials.
    ///
    /// # Errors
    ///
    /// A file of the source cannot be read, or a licence has no text.
    pub(super) fn files(&self) -> Result<Vec<(String, Vec<u8>)>> {
        let bill = sbom::document(
            &sbom::Subject {
                root: PACKAGE,
                target: &self.target,
                rustc: &self.rustc,
                commit: &self.source.commit,
                date: &self.source.date,
                binary: &checksums::sha256(&self.built.binary),
            },
            &self.packages,
        );
        let mut bill = serde_json::to_vec_pretty(&bill)?;
        bill.push(b'\n');
        let third_party = licences::text(&self.packages)?.into_bytes();
        let entry = |name: &str, mode, bytes| Entry {
            path: format!("{}/{name}", self.name),
            mode,
            bytes,
        };
        let mut entries = vec![
            entry(PACKAGE, 0o755, self.built.binary.clone()),
            entry("THIRD-PARTY.txt", 0o644, third_party),
            entry("THIRD-PARTY-std.html", 0o644, self.std_licences.clone()),
            entry("sbom.cdx.json", 0o644, bill.clone()),
        ];
        for (from, to) in FROM_SOURCE {
            let path = self.built.source.join(from);
            let bytes =
                std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            entries.push(entry(to, 0o644, bytes));
        }
        Ok(vec![
            (
                format!("{}.tar.gz", self.name),
                tar_gz(&entries, self.source.seconds)?,
            ),
            (format!("{}.cdx.json", self.name), bill),
        ])
    }
}

/// The binary and the bill of materials must list the same packages.
fn check_libraries(said: &Value, packages: &[Package]) -> Result<()> {
    let said: Vec<_> = said
        .as_array()
        .context("the binary does not report its libraries")?
        .iter()
        .map(|one| (one["name"].as_str(), one["version"].as_str()))
        .collect();
    let linked: Vec<_> = packages
        .iter()
        .map(|package| &package.id)
        .filter(|(name, _)| name != PACKAGE)
        .map(|(name, version)| (Some(name.as_str()), Some(version.as_str())))
        .collect();
    ensure!(
        said == linked,
        "the binary lists {} libraries and cargo {}, or they differ",
        said.len(),
        linked.len()
    );
    Ok(())
}

/// The toolchain's file with these licences.
fn std_licences(source: &Path) -> Result<Vec<u8>> {
    let mut rustc = Command::new("rustc");
    let sysroot = stdout_of(rustc.args(["--print", "sysroot"]).current_dir(source))?;
    let path = Path::new(sysroot.trim()).join("share/doc/rust/COPYRIGHT-library.html");
    std::fs::read(&path).with_context(|| {
        format!(
            "cannot read the licences of Rust's standard library, {}",
            path.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::packages::tests::package;

    #[test]
    fn a_binary_that_names_other_libraries_is_refused() {
        let packages = [package("a", &[]), package("rubelet", &["a"])];
        let said = |name: &str| serde_json::json!([{ "name": name, "version": "1.0.0" }]);
        check_libraries(&said("a"), &packages).unwrap();
        assert!(check_libraries(&said("b"), &packages).is_err());
        assert!(check_libraries(&serde_json::json!([]), &packages).is_err());
        assert!(check_libraries(&Value::Null, &packages).is_err());
    }

    #[test]
    fn files_that_a_release_takes_from_the_source_exist() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        for (from, _) in FROM_SOURCE {
            assert!(root.join(from).is_file(), "{from}");
        }
        assert!(!std_licences(root).unwrap().is_empty());
    }
}
