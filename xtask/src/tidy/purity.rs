//! Pure crates use no side effects: no clock, file, socket, process, thread or async runtime.

use super::Finding;
use super::edges::rule_of;
use super::files::is_generated;
use super::used_paths::UsedPaths;

/// Paths with side effects. Addresses and their parsing have none, so of `std::net` only the
/// sockets are listed.
const EFFECTS: [&str; 24] = [
    "env::args",
    "env::args_os",
    "env::current_dir",
    "env::temp_dir",
    "env::var",
    "env::var_os",
    "std::fs",
    "std::os",
    "std::process",
    "std::thread",
    "std::time::Instant",
    "std::time::SystemTime",
    "Instant::now",
    "SystemTime::now",
    "Timestamp::now",
    "Zoned::now",
    "TcpListener",
    "TcpStream",
    "ToSocketAddrs",
    "UdpSocket",
    "UnixListener",
    "UnixStream",
    "rustix",
    "tokio",
];
const TAKE_IT: &str = "take the value as an argument; the effect belongs to an E crate";
const NAME_IT: &str = "import by name what is used";

/// The side effects that a source file of a pure crate uses outside its tests.
pub(super) fn check(path: &str, paths: &UsedPaths) -> Vec<Finding> {
    if !is_pure_source(path) {
        return Vec::new();
    }
    let finding = |line, rule, remedy| Finding {
        file: path.to_owned(),
        line,
        rule,
        remedy,
    };
    let found = paths.found.iter();
    found
        .filter_map(|used| {
            let path = paths.whole(&used.names);
            if path == ["std", "*"] {
                let rule = "`std::*` hides which effects are used".to_owned();
                return Some(finding(used.line, rule, NAME_IT));
            }
            let effect = EFFECTS.iter().find(|effect| contains(&path, effect))?;
            let rule = format!("`{effect}` is an effect, and this crate is pure");
            Some(finding(used.line, rule, TAKE_IT))
        })
        .collect()
}

fn is_pure_source(path: &str) -> bool {
    let mut parts = path.split('/');
    let is_source = path.ends_with(".rs") && !path.ends_with("/tests.rs") && !is_generated(path);
    is_source
        && parts.next() == Some("crates")
        && parts.next().and_then(rule_of).is_some_and(|rule| rule.pure)
        && parts.next() == Some("src")
        && parts.all(|part| part != "tests")
}

fn contains(path: &[String], effect: &str) -> bool {
    let effect: Vec<&str> = effect.split("::").collect();
    path.windows(effect.len()).any(|part| part == effect)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_text(path: &str, text: &str) -> Vec<Finding> {
        check(path, &UsedPaths::of(&syn::parse_file(text).unwrap()))
    }

    #[test]
    fn effects_are_found_in_the_code_of_pure_crates_only() {
        let effect = "//! x\nuse std::fs;\n";
        let lib = "crates/api/src/lib.rs";
        for (path, text, expected) in [
            (lib, effect, 1),
            ("crates/api/src/deep/er.rs", effect, 1),
            ("crates/api/tests/x.rs", effect, 0),
            ("crates/api/src/pod/tests.rs", effect, 0),
            ("crates/host/src/lib.rs", effect, 0),
            (lib, "fn f() { let now = Timestamp::now(); }", 1),
            (lib, "use std::net::IpAddr;", 0),
            (lib, "use std::net::TcpStream;", 1),
            (
                lib,
                "fn f() { match std::env::consts::ARCH { _ => {} } }",
                0,
            ),
            (lib, "fn f() { std::env::var(\"HOME\"); }", 1),
            (lib, "/// Like std::fs, but pure.\nfn f() {}", 0),
            (lib, "//! x\n#[cfg(test)]\nmod tests { use std::fs; }", 0),
            (lib, "fn f() { tonic::codegen::tokio_stream(); }", 0),
        ] {
            assert_eq!(check_text(path, text).len(), expected, "{path}: {text}");
        }
    }

    #[test]
    fn groups_renames_macros_and_test_modules_hide_no_effect() {
        for (text, line) in [
            ("use std::{\n    collections::BTreeMap,\n    fs,\n};", 3),
            ("use std::{time::{Duration, Instant}};", 1),
            ("use std::env as e;\nfn f() { e::var(\"HOME\"); }", 2),
            ("use std::{env::{self as e}};\nfn f() { e::args(); }", 2),
            (
                "#[cfg(test)]\nmod tests {}\nfn f() { std::thread::yield_now(); }",
                3,
            ),
            ("#[cfg(test)]\nuse std::fs;\nuse std::process::Command;", 3),
            (
                "fn f() {\n    assert!(\n        std::fs::exists(\"x\"));\n}",
                3,
            ),
            ("use std::*;", 1),
            ("extern crate rustix;", 1),
            ("struct S(std::sync::Mutex<std::net::UdpSocket>);", 1),
        ] {
            let found = check_text("crates/api/src/lib.rs", text);
            let lines: Vec<_> = found.iter().map(|one| one.line).collect();
            assert_eq!(lines, [line], "{text}");
        }
    }
}
