//! Pure crates name no effect: no clock, file, socket, process, thread or async runtime.

use super::Finding;
use super::edges::room;
use super::files::is_generated;
use super::lines::has_word;

/// Words that stand for an effect. Addresses and their parsing are no effect, so of `std::net`
/// only the sockets are here.
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

/// The effects that a source file of a pure crate names outside of its tests.
pub(super) fn check(path: &str, text: &str) -> Vec<Finding> {
    if !is_pure_source(path) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(without_tests(text)) {
        if line.trim_start().starts_with("//") {
            continue;
        }
        if let Some(effect) = EFFECTS.iter().find(|effect| has_word(line, effect)) {
            findings.push(Finding {
                file: path.to_owned(),
                line: number,
                rule: format!("`{effect}` is an effect, and this crate is pure"),
                remedy: TAKE_IT,
            });
        }
    }
    findings
}

fn is_pure_source(path: &str) -> bool {
    let mut parts = path.split('/');
    let is_source = path.ends_with(".rs") && !path.ends_with("/tests.rs") && !is_generated(path);
    is_source
        && parts.next() == Some("crates")
        && parts.next().and_then(room).is_some_and(|room| room.pure)
        && parts.next() == Some("src")
        && parts.all(|part| part != "tests")
}

/// The lines before the first test module that is written into the file.
fn without_tests(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .take_while(|line| line.trim() != "#[cfg(test)]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effects_are_found_in_the_code_of_pure_crates_only() {
        let effect = "//! x\nuse std::fs;\n";
        for (path, text, complaints) in [
            ("crates/api/src/lib.rs", effect, 1),
            ("crates/api/src/deep/er.rs", effect, 1),
            ("crates/api/tests/x.rs", effect, 0),
            ("crates/api/src/pod/tests.rs", effect, 0),
            ("crates/host/src/lib.rs", effect, 0),
            ("crates/api/src/lib.rs", "let now = Timestamp::now();", 1),
            ("crates/api/src/lib.rs", "use std::net::IpAddr;", 0),
            ("crates/api/src/lib.rs", "use std::net::TcpStream;", 1),
            ("crates/api/src/lib.rs", "match std::env::consts::ARCH {", 0),
            ("crates/api/src/lib.rs", "std::env::var(\"HOME\")", 1),
            ("crates/api/src/lib.rs", "/// Like std::fs, but pure.", 0),
            (
                "crates/api/src/lib.rs",
                "//! x\n#[cfg(test)]\nmod tests { use std::fs; }",
                0,
            ),
            ("crates/api/src/lib.rs", "tonic::codegen::tokio_stream", 0),
        ] {
            assert_eq!(check(path, text).len(), complaints, "{path}: {text}");
        }
    }
}
