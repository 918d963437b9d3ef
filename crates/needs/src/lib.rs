//! What a test needs of the machine it runs on, and what becomes of the test without it.
//!
//! A test that lacks something must not count as passed. Where everything has to be there (`CI` is
//! set), what is [`missing`] fails the test. Elsewhere the test ends and is counted as skipped, with
//! its reason, by `cargo xtask test`. What does not apply to a machine or a runtime at all is told
//! with [`applies`], and is a skipped test everywhere.
//!
//! ```
//! fn a_test() {
//!     if !rubelet_needs::root() {
//!         return;
//!     }
//! }
//! # a_test();
//! ```

use std::{env, fmt::Display, fs::OpenOptions, io::Write, panic::Location, path::PathBuf, thread};

/// The environment variable with the path of the file to which a line is added for each test that is
/// skipped: its program and its name, a tab, the reason.
pub const SKIPPED: &str = "RUBELET_TESTS_SKIPPED";

/// The environment variable with the path of a directory on a file system with project quotas. The test bed sets it in
/// its virtual machine: the kernels of few test machines have such quotas.
pub const PROJECT_QUOTAS: &str = "RUBELET_TEST_QUOTAS";

/// The environment variables in which cargo-nextest tells a test its program and its name.
const BINARY_ID: &str = "NEXTEST_BINARY_ID";
const TEST_NAME: &str = "NEXTEST_TEST_NAME";

/// The environment variable that systems of continuous integration set.
const CI: &str = "CI";

/// Whether the test runs as root, without which it can't.
///
/// # Panics
/// In continuous integration, where it has to.
#[must_use]
#[track_caller]
pub fn root() -> bool {
    have(rustix::process::geteuid().is_root(), "root")
}

/// Whether something is `there` that the test can't do without; `what` names it.
///
/// # Panics
/// When it is not, in continuous integration, where all that tests need is installed.
#[must_use]
#[track_caller]
pub fn have(there: bool, what: impl Display) -> bool {
    if !there {
        missing(what);
    }
    there
}

/// Reports that the test can't continue without `what`.
///
/// # Panics
/// In continuous integration, where all that tests need is installed.
#[track_caller]
pub fn missing(what: impl Display) {
    let required = is_required(env::var(CI).ok().as_deref());
    assert!(!required, "this test needs {what}, and CI is set");
    skip(&format!("needs {what}"));
}

/// Whether the test says something about this machine or this runtime; `why` tells why it would not.
#[must_use]
#[track_caller]
pub fn applies(yes: bool, why: impl Display) -> bool {
    if !yes {
        skip(&why.to_string());
    }
    yes
}

/// A directory on a file system with project quotas; `None` if the test does not apply here.
#[must_use]
#[track_caller]
pub fn project_quotas() -> Option<PathBuf> {
    let place = env::var_os(PROJECT_QUOTAS);
    let applies = applies(place.is_some(), "there are no project quotas here");
    place.filter(|_| applies).map(PathBuf::from)
}

fn is_required(ci: Option<&str>) -> bool {
    ci.is_some_and(|value| !["", "0", "false"].contains(&value))
}

#[track_caller]
#[expect(
    clippy::print_stderr,
    reason = "who runs one test by hand reads it there"
)]
fn skip(reason: &str) {
    let line = line(&name(Location::caller()), reason);
    eprint!("skipped: {line}");
    if let Some(path) = env::var_os(SKIPPED) {
        let file = OpenOptions::new().append(true).create(true).open(path);
        let told = file.and_then(|mut file| file.write_all(line.as_bytes()));
        // A skipped test that nobody learns of would count as passed.
        assert!(
            told.is_ok(),
            "cannot tell that the test is skipped: {told:?}"
        );
    }
}

/// The program and the name of the running test, as cargo-nextest tells them; `None` with cargo.
#[must_use]
pub fn running_test() -> Option<(String, String)> {
    Some((env::var(BINARY_ID).ok()?, env::var(TEST_NAME).ok()?))
}

/// The test's name: cargo-nextest tells it; with cargo it is that of the thread, except where tests
/// run one after the other.
fn name(place: &Location<'_>) -> String {
    if let Some((binary, test)) = running_test() {
        return format!("{binary} {test}");
    }
    match thread::current().name() {
        Some(name) if name != "main" => name.to_owned(),
        _ => format!("{}:{}", place.file(), place.line()),
    }
}

fn line(name: &str, reason: &str) -> String {
    format!("{name}\t{}\n", reason.replace(['\n', '\t'], " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_has_to_be_there_where_ci_is_set() {
        for (value, required) in [
            (None, false),
            (Some(""), false),
            (Some("0"), false),
            (Some("false"), false),
            (Some("true"), true),
            (Some("1"), true),
        ] {
            assert_eq!(is_required(value), required, "{value:?}");
        }
    }

    #[test]
    fn a_line_names_the_test_and_the_reason() {
        assert_eq!(line("a b::c", "needs\na\tthing"), "a b::c\tneeds a thing\n");
        let name = name(Location::caller());
        assert!(
            name.ends_with("tests::a_line_names_the_test_and_the_reason"),
            "{name}"
        );
    }
}
