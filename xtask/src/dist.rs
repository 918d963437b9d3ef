//! `cargo xtask dist`: the files of a release. The binary is built twice and both builds must be
//! equal; everything else is derived from the commit alone, so that anyone can reproduce the files.

mod archive;
mod checksums;
mod elf;
mod licences;
mod lockfile;
mod packages;
mod private_key;
mod release;
mod reproducible;
mod sbom;
mod signature;
mod source;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rubelet_testbed::{absent, clock, target_dir};

use crate::test::deny::{self, Advisories};
use private_key::PrivateKey;
use release::Release;
use source::Source;

/// Output of `cargo xtask dist --help`.
pub(crate) const HELP: &str = "\
cargo xtask dist [--out DIRECTORY] [--key FILE] [--unchecked-advisories]

Checks the dependencies, builds the release binary of the current commit twice in different
directories, fails unless both are equal, and writes the archive, its bill of materials (CycloneDX)
and SHA256SUMS.

  --out DIRECTORY  where to write them [default: dist/release in the target directory]
  --key FILE       sign SHA256SUMS with this Ed25519 private key (OpenSSH or PKCS #8 PEM, without
                   passphrase, not readable for others); without it nothing is signed
  --unchecked-advisories
                   sign also when the database of known vulnerabilities cannot be fetched; otherwise
                   that is an error with --key, and a warning at the end without it
";

/// The parsed command line.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    out: Option<PathBuf>,
    key: Option<PathBuf>,
    unchecked_advisories: bool,
}

impl Options {
    /// Parses the arguments after `dist`.
    ///
    /// # Errors
    ///
    /// An option is unknown, repeated or has no value.
    pub(crate) fn parse(words: &[&str]) -> Result<Self> {
        let mut options = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let slot = match *word {
                "--out" => &mut options.out,
                "--key" => &mut options.key,
                "--unchecked-advisories" => {
                    options.unchecked_advisories = true;
                    continue;
                }
                other => bail!("unknown option `{other}`; see `cargo xtask dist --help`"),
            };
            let path = words
                .next()
                .with_context(|| format!("{word} needs a path"))?;
            if slot.replace(PathBuf::from(path)).is_some() {
                bail!("{word} is given twice");
            }
        }
        Ok(options)
    }

    /// The final note about known vulnerabilities, if any. A signed release counts as checked.
    ///
    /// # Errors
    ///
    /// It must be signed, is not checked, and no option accepts that.
    fn accept(&self, advisories: &Advisories) -> Result<Option<String>> {
        let Advisories::Skipped(reason) = advisories else {
            return Ok(None);
        };
        if self.key.is_some() && !self.unchecked_advisories {
            bail!(
                "known vulnerabilities of dependencies are not checked ({reason}), so nothing is \
                 signed; try again where the database can be fetched, or give \
                 --unchecked-advisories"
            );
        }
        Ok(Some(format!(
            "NOT checked for known vulnerabilities of dependencies: {reason}"
        )))
    }
}

/// Builds the release.
///
/// # Errors
///
/// A dependency is not allowed, a release to be signed cannot be checked for known vulnerabilities,
/// the checkout has changes, the builds differ, a licence text is missing, the key cannot be used,
/// or a file cannot be written.
pub(crate) fn run(root: &Path, options: &Options) -> Result<()> {
    let start = clock::now();
    // Before the builds, which take long.
    let key = options.key.as_deref().map(PrivateKey::read).transpose()?;
    let source = Source::of(root)?;
    let warning = options.accept(&deny::check(root)?)?;

    let target = target_dir::target()?;
    let built = reproducible::build_twice(&reproducible::Job {
        source: &source.tar,
        package: "rubelet",
        seconds: source.seconds,
        directory: &target.join("dist"),
    })?;
    println!(
        "two builds, {} bytes each: equal ({:.0} s so far)",
        built.binary.len(),
        start.elapsed().as_secs_f64()
    );

    let release = Release::new(&source, &built)?;
    let out = options
        .out
        .clone()
        .unwrap_or_else(|| target.join("dist/release"));
    let mut files = release.files()?;
    let sums = checksums::file(&files);
    let signature = key
        .as_ref()
        .map(|key| signature::sign(key, sums.as_bytes()));
    files.push(("SHA256SUMS".to_owned(), sums.into_bytes()));
    if let Some(signature) = &signature {
        files.push(("SHA256SUMS.sig".to_owned(), signature.clone().into_bytes()));
    }
    write(&out, &files)?;
    for (name, bytes) in &files {
        println!("{:>10}  {}", bytes.len(), out.join(name).display());
    }
    match &key {
        Some(key) => println!("signed; to verify:\n{}", signature::how_to_verify(key)),
        None => println!("NOT signed: give a private key with --key FILE"),
    }
    if let Some(warning) = warning {
        println!("{warning}");
    }
    Ok(())
}

/// Writes each file beside its destination and renames it. A signature of an earlier run is removed
/// first: it does not match the new files.
fn write(out: &Path, files: &[(String, Vec<u8>)]) -> Result<()> {
    std::fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    absent::is_fine(std::fs::remove_file(out.join("SHA256SUMS.sig")))
        .context("cannot remove the signature of an earlier run")?;
    for (name, bytes) in files {
        let file = tempfile::NamedTempFile::new_in(out)
            .with_context(|| format!("cannot write in {}", out.display()))?;
        std::fs::write(file.path(), bytes)
            .and_then(|()| set_readable(file.path()))
            .with_context(|| format!("cannot write {name}"))?;
        file.persist(out.join(name))
            .with_context(|| format!("cannot write {}", out.join(name).display()))?;
    }
    Ok(())
}

fn set_readable(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644))
}

#[cfg(test)]
mod tests;
