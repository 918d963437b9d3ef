//! Test programs, which cargo builds on this machine and the guest runs.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use rubelet_testbed::Vm;
use rubelet_testbed::command::stdout_of;
use rubelet_testbed::vm::Image;
use serde_json::Value;

/// Modules of the kernel that containers on a bridge use.
pub(crate) const MODULES: [&str; 13] = [
    "loop",
    "overlay",
    "bridge",
    "veth",
    "nf_tables",
    "nf_nat",
    "nft_nat",
    "nft_masq",
    "nft_chain_nat",
    "nft_fib_ipv4",
    "nft_fib_ipv6",
    "nft_fib_inet",
    "nft_meta_bridge",
];

/// The test program of a guest with a root directory of its own.
const PROGRAM: &str = "/tests";

/// Timeout of all tests of one program. The guest is several times slower than its host, which may be
/// busy.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(400);

/// The memory of a guest, in MiB.
pub(crate) const MEMORY_MIB: u32 = 1536;

/// The environment variable with the path of a JSON file that names the compiled test programs, by
/// their IDs. So a program that was compiled with the workspace is not compiled again with other
/// features.
const PROGRAMS: &str = "RUBELET_TEST_PROGRAMS";

/// A test program of a package, with the target in cargo's flags. Without a file that names it, it
/// is built if necessary.
pub(crate) fn program(package: &str, target: &[&str]) -> Result<PathBuf> {
    let Some(file) = std::env::var_os(PROGRAMS) else {
        return build(package, target);
    };
    let id = match target {
        [_, name] => format!("{package}::{name}"),
        _ => package.to_owned(),
    };
    let file = std::fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let programs: Value = serde_json::from_slice(&file)?;
    let path = programs[&id].as_str();
    Ok(path.with_context(|| format!("no program {id}"))?.into())
}

fn build(package: &str, target: &[&str]) -> Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(["test", "--package", package, "--no-run"])
        .args(["--message-format", "json-render-diagnostics"])
        .args(target)
        .current_dir(root);
    let text = stdout_of(&mut cargo)?;
    let messages = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    messages
        .filter(|message: &Value| message["profile"]["test"] == true)
        .find_map(|message| Some(PathBuf::from(message["executable"].as_str()?)))
        .with_context(|| format!("cargo built no test program of {package}"))
}

/// Runs the tests of a program whose names match the filter in a guest; returns the output.
pub(crate) fn run(image: Image, package: &str, target: &[&str], filter: &str) -> Result<String> {
    run_after(image, MEMORY_MIB, ":", package, target, filter, TIMEOUT)
}

/// As [`run`], after this shell command, which may set variables, and within this time.
pub(crate) fn run_after(
    image: Image,
    memory_mib: u32,
    prepare: &str,
    package: &str,
    target: &[&str],
    filter: &str,
    timeout: Duration,
) -> Result<String> {
    let tests = program(package, target)?;
    let (program, image) = match image.is_on_host_root() {
        true => (tests.display().to_string(), image),
        false => (PROGRAM.to_owned(), image.program(PROGRAM, tests)),
    };
    let mut vm = Vm::boot(&image, memory_mib)?;
    let controllers = vm.run("cat /sys/fs/cgroup/cgroup.controllers", TIMEOUT)?;
    assert!(controllers.contains("memory"), "{controllers}");
    // The output so far is more helpful than the timeout.
    let seconds = timeout.as_secs() - 10;
    // The output also goes to the file `stream` in the guest's directory: who waits sees how far the tests are. A
    // process that they leave behind keeps no pipe open.
    let follow = "tail -n +1 -f /proc/$$/fd/1 > /dev/ttyS2 & follower=$!";
    let tests = format!("timeout {seconds} {program} {filter}; code=$?");
    let command = format!("{follow}; {prepare}; {tests}; kill $follower; exit $code");
    let ran = vm.try_run(&command, timeout)?;
    assert_eq!(ran.code, 0, "{}", ran.output);
    Ok(ran.output)
}
