//! Builds the same source twice in different directories, and compares the results.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use rubelet_testbed::absent;

use super::elf;
use crate::cargo;

/// The input of the builds.
pub(super) struct Job<'a> {
    /// The source, as a tar archive.
    pub(super) source: &'a [u8],
    /// The package; its binary has the same name.
    pub(super) package: &'a str,
    /// `SOURCE_DATE_EPOCH`.
    pub(super) seconds: u64,
    /// The directory of sources and builds. Results of an earlier run are reused; remove the
    /// directory to build from scratch.
    pub(super) directory: &'a Path,
}

/// The result.
pub(super) struct Built {
    /// The program.
    pub(super) binary: Vec<u8>,
    /// A file with the program.
    pub(super) program: PathBuf,
    /// Its unpacked source.
    pub(super) source: PathBuf,
}

/// The directories of one build. Their paths must not leave traces.
struct BuildDirectories {
    source: PathBuf,
    target: PathBuf,
    cargo_home: PathBuf,
}

impl BuildDirectories {
    /// The directories, and their replacements in the binary.
    fn remapped(&self) -> Result<Vec<(PathBuf, &'static str)>> {
        let mut remapped = vec![
            (self.source.clone(), "/usr/src/rubelet"),
            (self.target.clone(), "/usr/src/target"),
            (self.cargo_home.clone(), "/usr/src/cargo"),
        ];
        // The compiler's working directory is a path without symbolic links, and crates record it.
        let registry = self.cargo_home.join("registry");
        if registry.exists() {
            let real = registry
                .canonicalize()
                .with_context(|| format!("cannot resolve {}", registry.display()))?;
            if !real.starts_with(&self.cargo_home) {
                remapped.push((real, "/usr/src/cargo/registry"));
            }
        }
        Ok(remapped)
    }
}

/// Environment variables that the builds inherit: the paths of tools, and registry access. All
/// others could change the result.
const KEPT: [&str; 7] = [
    "PATH",
    "HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];
/// The same, by prefix.
const KEPT_PREFIXES: [&str; 2] = ["CARGO_NET_", "CARGO_HTTP_"];

/// Builds the package twice.
///
/// # Errors
///
/// A build fails, the results differ, or one contains a path of its build.
pub(super) fn build_twice(job: &Job<'_>) -> Result<Built> {
    std::fs::create_dir_all(job.directory)
        .with_context(|| format!("cannot make {}", job.directory.display()))?;
    let base = job.directory.canonicalize()?;
    let home = cargo_home()?;
    // Different length and depth, so that neither order nor alignment hides a path.
    let second = BuildDirectories {
        source: base.join("second/elsewhere/source"),
        target: base.join("second/target"),
        cargo_home: base.join("second/cargo-home"),
    };
    link_all(&home, &second.cargo_home)?;
    let places = [
        BuildDirectories {
            source: base.join("first/source"),
            target: base.join("first/target"),
            cargo_home: home,
        },
        second,
    ];
    let mut results = Vec::new();
    for place in &places {
        let program = build(job, place)?;
        let bytes = std::fs::read(&program)
            .with_context(|| format!("cannot read {}", program.display()))?;
        results.push((program, bytes));
    }
    let [(program, binary), (_, other)] = <[_; 2]>::try_from(results).ok().context("two builds")?;
    if let Some(difference) = elf::difference(&binary, &other) {
        bail!("the two builds differ: {difference}");
    }
    for place in &places {
        for (path, _) in place.remapped()? {
            let text = path.as_os_str().as_encoded_bytes();
            if binary.windows(text.len()).any(|window| window == text) {
                bail!(
                    "the binary contains a path of its build, {}",
                    path.display()
                );
            }
        }
    }
    let [first, _] = places;
    Ok(Built {
        binary,
        program,
        source: first.source,
    })
}

fn build(job: &Job<'_>, place: &BuildDirectories) -> Result<PathBuf> {
    unpack(job.source, &place.source)?;
    // The umask is the one property of the process that `Command` cannot set.
    let mut command = Command::new("sh");
    command
        .args(["-c", "umask 022 && exec \"$@\"", "sh"])
        .arg(cargo::program())
        .args(["build", "--locked", "--release", "--package", job.package])
        .current_dir(&place.source)
        .stdin(Stdio::null())
        .env_clear()
        .envs(std::env::vars_os().filter(|(name, _)| is_kept(name)));
    let remapped = place.remapped()?;
    let flags = |option: &str, separator: &str| {
        let one = |(from, to): &(PathBuf, &str)| format!("{option}{}={to}", from.display());
        remapped.iter().map(one).collect::<Vec<_>>().join(separator)
    };
    let c_flags = flags("-ffile-prefix-map=", " ");
    command
        .env("CARGO_HOME", &place.cargo_home)
        .env("CARGO_TARGET_DIR", &place.target)
        .env("CARGO_INCREMENTAL", "0")
        .env(
            "CARGO_ENCODED_RUSTFLAGS",
            flags("--remap-path-prefix=", "\x1f"),
        )
        .env("CFLAGS", &c_flags)
        .env("CXXFLAGS", &c_flags)
        .env("SOURCE_DATE_EPOCH", job.seconds.to_string())
        .env("ZERO_AR_DATE", "1")
        .env("LC_ALL", "C")
        .env("TZ", "UTC");
    cargo::run(&mut command)?;
    Ok(place.target.join("release").join(job.package))
}

/// Unpacks the source with the current time: cargo compares times with those of an earlier build,
/// which may be of a newer commit.
fn unpack(tar: &[u8], directory: &Path) -> Result<()> {
    absent::is_fine(std::fs::remove_dir_all(directory))
        .with_context(|| format!("cannot remove {}", directory.display()))?;
    std::fs::create_dir_all(directory)?;
    let mut archive = tar::Archive::new(tar);
    archive.set_preserve_mtime(false);
    archive
        .unpack(directory)
        .with_context(|| format!("cannot unpack the source in {}", directory.display()))
}

/// Creates the directory `to` with links to the entries of `from`.
fn link_all(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    let entries =
        std::fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))?;
    for entry in entries {
        let entry = entry?;
        let link = to.join(entry.file_name());
        if link.symlink_metadata().is_err() {
            std::os::unix::fs::symlink(entry.path(), &link)
                .with_context(|| format!("cannot make the link {}", link.display()))?;
        }
    }
    Ok(())
}

fn cargo_home() -> Result<PathBuf> {
    if let Some(home) = std::env::var_os("CARGO_HOME") {
        return Ok(PathBuf::from(home));
    }
    let home = std::env::var_os("HOME").context("neither CARGO_HOME nor HOME is set")?;
    Ok(Path::new(&home).join(".cargo"))
}

fn is_kept(name: &OsString) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    KEPT.contains(&name) || KEPT_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a package of one file and a build script.
    fn build_small(main: &str, script: &str) -> Result<Built> {
        let directory = tempfile::tempdir().unwrap();
        let files = [
            (
                "Cargo.toml",
                "[package]\nname = \"small\"\nversion = \"1.0.0\"\nedition = \"2024\"\n\n\
                 [workspace]\n\n[profile.release]\nstrip = true\n",
            ),
            (
                "Cargo.lock",
                "version = 4\n\n[[package]]\nname = \"small\"\nversion = \"1.0.0\"\n",
            ),
            ("src/main.rs", main),
            ("build.rs", script),
        ];
        let mut tar = tar::Builder::new(Vec::new());
        for (path, text) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(text.len() as u64);
            header.set_mode(0o644);
            tar.append_data(&mut header, path, text.as_bytes()).unwrap();
        }
        build_twice(&Job {
            source: &tar.into_inner().unwrap(),
            package: "small",
            seconds: 1_767_225_600,
            directory: directory.path(),
        })
    }

    #[test]
    fn a_registry_behind_a_symbolic_link_changes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        let home = base.join("home");
        std::fs::create_dir_all(home.join("registry/src")).unwrap();
        link_all(&home, &base.join("links")).unwrap();
        let remapped = |cargo_home: &str| {
            let place = BuildDirectories {
                source: base.join("source"),
                target: base.join("target"),
                cargo_home: base.join(cargo_home),
            };
            place.remapped().unwrap().split_off(2)
        };
        assert_eq!(remapped("home"), [(home.clone(), "/usr/src/cargo")]);
        assert_eq!(
            remapped("links"),
            [
                (base.join("links"), "/usr/src/cargo"),
                (home.join("registry"), "/usr/src/cargo/registry")
            ]
        );
    }

    #[test]
    fn a_program_that_names_its_own_files_is_reproducible() {
        // The names of generated files are absolute paths, unless the compiler is told otherwise.
        let main =
            "fn main() { print!(\"{}\", include!(concat!(env!(\"OUT_DIR\"), \"/name.rs\"))) }";
        let script = "fn main() { let out = std::env::var(\"OUT_DIR\").unwrap(); \
                      std::fs::write(format!(\"{out}/name.rs\"), \"file!()\").unwrap(); }";
        let built = build_small(main, script).unwrap();
        let name = b"/usr/src/target/release/build/small-";
        assert!(built.binary.windows(name.len()).any(|part| part == name));
    }

    #[test]
    fn a_program_that_contains_its_build_path_is_refused() {
        let main = "fn main() { print!(env!(\"PLACE\")) }";
        let script = "fn main() { println!(\"cargo::rustc-env=PLACE={}\", \
                      std::env::var(\"OUT_DIR\").unwrap()) }";
        let error = build_small(main, script).err().unwrap().to_string();
        assert!(error.starts_with("the two builds differ: "), "{error}");
        assert!(error.contains("`.rodata`"), "{error}");
    }
}
