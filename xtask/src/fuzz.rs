//! `cargo xtask fuzz`: fuzzes the parsers of external input with LLVM's libFuzzer.
//!
//! The programs are in the workspace `fuzz/`, which the pinned stable compiler builds with LLVM's
//! coverage pass. libFuzzer needs nothing else; sanitizers, which need a nightly compiler, would
//! find little in code without `unsafe`.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail, ensure};
use rubelet_testbed::command::output_of;
use rubelet_testbed::target_dir;

use crate::cargo;

/// The fuzz targets, by the names of the programs.
pub(crate) const TARGETS: [&str; 19] = [
    "api_objects",
    "cdi_spec",
    "certificate_subject",
    "cni_json",
    "cri_log",
    "cri_status",
    "file_receiver",
    "image_documents",
    "kubeconfig",
    "manifests",
    "net_replies",
    "netlink",
    "node_port",
    "registry_headers",
    "seccomp_profile",
    "sessions",
    "shim_protocol",
    "spdy",
    "tar_applier",
];
/// Default seconds for each of them.
const SECONDS: u64 = 15;
/// Seconds for each of them in the background of a normal test run and of one with `--all`: one at
/// a time, with the CPU time that tests leave.
const RUN_SECONDS: u64 = 25;
const ALL_SECONDS: u64 = 60;
/// What a program's niceness is above that of the build, in the background. So it gets a fiftieth of a core beside two
/// tests that compute; with less, fuzzing lengthened the run by a seventh.
const BACKGROUND_NICENESS: &str = "9";
/// How many times fewer seconds are enough for as many inputs once no test runs beside it.
const ALONE: u64 = 3;
/// The longest input, in bytes.
const MAX_LEN: &str = "-max_len=16384";
/// The longest time for one input, in seconds of wall time. It is longer in the background, where a
/// program gets a fiftieth of a core.
const INPUT_SECONDS: u64 = 20;
const BACKGROUND_INPUT_SECONDS: u64 = 120;

/// Edge coverage, with counters that libFuzzer finds by itself, and the operands of comparisons.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1";

/// Runs `$@` without a network and with a read-only file system except for `$0`, in which `$TMPDIR`
/// is in memory: fuzz targets run as root. The checkout, and `$0` with it, may be below `/tmp`.
const SANDBOX: &str = "mount --bind /tmp /tmp && mount --bind \"$0\" \"$0\" && \
    mount -t tmpfs -o size=256m none \"$TMPDIR\" && mount -o remount,bind,ro /tmp && \
    mount -o remount,bind,ro / && exec \"$@\"";

/// The parsed command line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    seconds: u64,
    /// Seconds for one input.
    input_seconds: u64,
    /// Number of programs that run concurrently.
    jobs: usize,
    /// Run a single program at a time until standard input ends, and the remaining ones for less time:
    /// from then on the machine is idle.
    until_input_ends: bool,
    /// Add new inputs to the kept corpus.
    keep: bool,
    targets: Vec<&'static str>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seconds: SECONDS,
            input_seconds: INPUT_SECONDS,
            jobs: std::thread::available_parallelism().map_or(1, usize::from),
            until_input_ends: false,
            keep: false,
            targets: TARGETS.to_vec(),
        }
    }
}

impl Options {
    /// Parses the arguments after `fuzz`.
    pub(crate) fn parse(words: &[&str]) -> Result<Self> {
        let mut options = Self::default();
        let mut targets = Vec::new();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--seconds" => options.seconds = number("--seconds", words.next())?,
                "--input-seconds" => {
                    options.input_seconds = number("--input-seconds", words.next())?;
                }
                "--jobs" => {
                    options.jobs = number("--jobs", words.next())?.try_into()?;
                    ensure!(options.jobs > 0, "--jobs needs a number from 1 on");
                }
                "--until-input-ends" => options.until_input_ends = true,
                "--keep" => options.keep = true,
                name => match TARGETS.iter().find(|target| **target == name) {
                    Some(target) => targets.push(*target),
                    None => bail!(
                        "`{name}` is neither an option nor one of {}",
                        TARGETS.join(", ")
                    ),
                },
            }
        }
        if !targets.is_empty() {
            options.targets = targets;
        }
        Ok(options)
    }

    /// The number of programs to run concurrently now, and the seconds for each, while other tests run or
    /// not.
    fn pace(&self, beside_tests: bool) -> (usize, u64) {
        match (self.until_input_ends, beside_tests) {
            (false, _) => (self.jobs, self.seconds),
            (true, true) => (1, self.seconds),
            (true, false) => (self.jobs, self.seconds.div_ceil(ALONE)),
        }
    }
}

/// A flag that becomes false when standard input ends.
fn input_lasts() -> Arc<AtomicBool> {
    let lasts = Arc::new(AtomicBool::new(true));
    let flag = Arc::clone(&lasts);
    std::thread::spawn(move || {
        // An unreadable input has ended.
        drop(std::io::copy(&mut std::io::stdin(), &mut std::io::sink()));
        flag.store(false, Ordering::Relaxed);
    });
    lasts
}

/// The number after an option.
fn number(option: &str, word: Option<&&str>) -> Result<u64> {
    let number = word.and_then(|text| text.parse().ok());
    number.with_context(|| format!("{option} needs a number"))
}

/// Builds the programs and runs them, one per core unless `--jobs` says otherwise.
pub(crate) fn run(root: &Path, options: &Options) -> Result<()> {
    let place = target_dir::target()?.join("fuzz");
    let beside_tests = options.until_input_ends.then(input_lasts);
    let programs = build(root, &place)?;
    let mut failed = Vec::new();
    let mut left = &options.targets[..];
    while !left.is_empty() {
        let beside = beside_tests.as_ref();
        let (jobs, seconds) = options.pace(beside.is_some_and(|flag| flag.load(Ordering::Relaxed)));
        let (group, later) = left.split_at(jobs.min(left.len()));
        left = later;
        let done: Vec<Result<String>> = std::thread::scope(|scope| {
            let runs: Vec<_> = group
                .iter()
                .map(|target| {
                    let (programs, place) = (&programs, &place);
                    scope.spawn(move || one(root, programs, place, target, seconds, options))
                })
                .collect();
            runs.into_iter()
                .map(|run| run.join().unwrap_or_else(|_| bail!("a thread panicked")))
                .collect()
        });
        for (target, result) in group.iter().zip(done) {
            match result {
                Ok(line) => println!("{target}: {line}"),
                Err(error) => {
                    println!("{target}: FAILED\n{error:#}");
                    failed.push(*target);
                }
            }
        }
    }
    if !failed.is_empty() {
        bail!("the fuzzer has found failures in {}", failed.join(", "));
    }
    Ok(())
}

/// Builds the programs; returns their directory.
fn build(root: &Path, place: &Path) -> Result<PathBuf> {
    let host = host_triple(root)?;
    let mut build = Command::new("setpriv");
    build
        .args(["--pdeathsig", "KILL"])
        .arg(cargo::program())
        .args(["build", "--release", "--bins"])
        // With an explicit target, build scripts and macros are compiled as usual.
        .args(["--target", &host])
        .arg("--manifest-path")
        .arg(root.join("fuzz/Cargo.toml"))
        .arg("--target-dir")
        .arg(place)
        .current_dir(root)
        .stdin(Stdio::null())
        .env("RUSTFLAGS", FLAGS);
    cargo::run(&mut build)?;
    Ok(place.join(host).join("release"))
}

/// Fuzzing in the background. It ends when this value is dropped or this process exits.
pub(crate) struct BackgroundFuzzing {
    child: Child,
    output: PathBuf,
}

/// Starts to build and run all programs at a low priority, in the background of tests, which wait
/// more than they compute.
pub(crate) fn beside(root: &Path, all: bool) -> Result<BackgroundFuzzing> {
    let output = target_dir::target()?.join("fuzz.log");
    let file =
        File::create(&output).with_context(|| format!("cannot make {}", output.display()))?;
    let seconds = if all { ALL_SECONDS } else { RUN_SECONDS };
    let child = Command::new("setpriv")
        .args(["--pdeathsig", "KILL", "nice", "-n", "10"])
        // This program, also if a build has replaced its file.
        .arg(format!("/proc/{}/exe", std::process::id()))
        .args([
            "fuzz",
            "--until-input-ends",
            "--seconds",
            &seconds.to_string(),
        ])
        .args(["--input-seconds", &BACKGROUND_INPUT_SECONDS.to_string()])
        .current_dir(root)
        .stdin(Stdio::piped())
        .stdout(file.try_clone()?)
        .stderr(file)
        .spawn()
        .context("cannot start setpriv")?;
    Ok(BackgroundFuzzing { child, output })
}

impl BackgroundFuzzing {
    /// The tests are over: waits until it has exited; prints its output.
    pub(crate) fn wait(mut self) -> Result<()> {
        // It closes the input of the child.
        let status = self.child.wait()?;
        let said = std::fs::read_to_string(&self.output)?;
        print!("{said}");
        if !status.success() {
            bail!("{} ({status})", said.lines().last().unwrap_or_default());
        }
        Ok(())
    }
}

impl Drop for BackgroundFuzzing {
    fn drop(&mut self) {
        // It has exited already, or is not needed.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn host_triple(root: &Path) -> Result<String> {
    let output = output_of(Command::new("rustc").arg("-vV").current_dir(root))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc does not report its host")?.to_owned())
}

/// Runs one program; returns its report.
fn one(
    root: &Path,
    programs: &Path,
    place: &Path,
    target: &str,
    seconds: u64,
    options: &Options,
) -> Result<String> {
    let kept = root.join("fuzz/corpus").join(target);
    let found = match options.until_input_ends {
        true => place.join("found-beside-tests").join(target),
        false => place.join("found").join(target),
    };
    if options.until_input_ends {
        // Else each run would first try all inputs of those before, and soon do nothing else.
        clear(&found)?;
    }
    let artifacts = place.join("artifacts").join(target);
    let temporary = place.join("tmp");
    for dir in [&found, &artifacts, &temporary] {
        std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    }
    let niceness = match options.until_input_ends {
        true => BACKGROUND_NICENESS,
        false => "0",
    };
    let mut command = Command::new("setpriv");
    command
        .env("TMPDIR", &temporary)
        .args(["--pdeathsig", "KILL", "nice", "-n", niceness])
        .args([
            "unshare",
            "--mount",
            "--propagation",
            "private",
            "--net",
            "sh",
            "-c",
            SANDBOX,
        ])
        .arg(place)
        .arg(programs.join(target))
        .args([&found, &kept])
        .args([MAX_LEN, "-rss_limit_mb=1024", "-print_final_stats=1"])
        .arg(format!("-timeout={}", options.input_seconds))
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-artifact_prefix={}/", artifacts.display()));
    let output = output_of(&mut command)?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        let lines: Vec<&str> = said.lines().collect();
        let tail = &lines[lines.len().saturating_sub(40)..];
        bail!("{}\n({})", tail.join("\n"), output.status);
    }
    if options.keep {
        keep(programs, target, &found, &kept)?;
    }
    let stat = |name: &str| {
        let line = said.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or("?").trim().to_owned()
    };
    Ok(format!(
        "{} inputs tried, {} a second",
        stat("stat::number_of_executed_units:"),
        stat("stat::average_exec_per_sec:"),
    ))
}

/// Removes a directory, if there is one.
fn clear(dir: &Path) -> Result<()> {
    match std::fs::remove_dir_all(dir) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", dir.display()))
        }
        _ => Ok(()),
    }
}

/// Adds inputs with new coverage to the kept corpus.
fn keep(programs: &Path, target: &str, found: &Path, kept: &Path) -> Result<()> {
    let mut merge = Command::new(programs.join(target));
    merge.arg("-set_cover_merge=1").args([kept, found]);
    let output = output_of(&mut merge)?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_names_all_targets_run_and_unknown_names_are_errors() {
        let all = Options::parse(&[]).unwrap();
        assert_eq!(all, Options::default());
        let one = Options::parse(&["--seconds", "5", "tar_applier"]).unwrap();
        assert_eq!((one.seconds, one.targets), (5, vec!["tar_applier"]));
        assert_eq!(Options::parse(&["--jobs", "1"]).unwrap().jobs, 1);
        assert!(Options::parse(&["--jobs", "0"]).is_err());
        assert!(Options::parse(&["nosuch"]).is_err());
        assert!(Options::parse(&["--seconds", "x"]).is_err());
    }

    #[test]
    fn programs_beside_tests_run_one_at_a_time_and_for_longer() {
        let words = ["--jobs", "2", "--seconds", "25", "--until-input-ends"];
        let background = Options::parse(&words).unwrap();
        assert_eq!(background.pace(true), (1, 25));
        assert_eq!(background.pace(false), (2, 9));
        let alone = Options::parse(&words[..4]).unwrap();
        assert_eq!(alone.pace(false), (2, 25));
    }
}
