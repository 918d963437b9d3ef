//! `cargo xtask`: all tasks of contributors and CI in one program.
#![allow(clippy::print_stdout, clippy::print_stderr)] // It talks to a person at a terminal.

mod bench;
mod cargo;
#[allow(unreachable_pub, reason = "its functions read like those of a library")]
mod codegen;
mod demo;
mod dist;
mod fuzz;
mod git;
mod interrupt;
mod soak;
mod test;
mod tidy;
mod workspace;

use std::process::ExitCode;

use anyhow::{Result, bail};

const HELP: &str = "\
cargo xtask COMMAND

  demo                      run three example pods on the embedded runtime and show what happens
  test [--ring N] [--runtime NAME] [--api-server DIR] [--changed] [--all] [--beside-load]
       [--strict] [FILTER]
                            check everything, then run all tests (needs root); with a ring number,
                            a runtime (embedded, containerd, containerd-1.7) or a filter: only
                            those tests; with a directory that holds etcd, kube-apiserver,
                            kube-controller-manager and kube-scheduler: the cluster tests of ring 3,
                            against these; --changed:
                            tests of packages that differ from main, and of their dependents;
                            --all: also tests that take too long for each run; --beside-load:
                            with a load on the cores and the disk; --strict also
                            fails if a test passed only when it was retried
  bench [--json] [--record] [NAME...]
                            measure the release binary (needs root); `bench --list` names all;
                            --record writes all numbers into SPECIFICATION.md
  soak [--seeds N] [--minutes M]
                            run the agent on a real runtime with injected faults, and check that
                            pods converge afterwards (needs root); see `soak --help`
  fuzz [--seconds N] [--input-seconds N] [--jobs N] [--until-input-ends] [--keep] [NAME...]
                            fuzz the code that reads untrusted bytes (needs root)
  dist [--out DIRECTORY] [--key FILE]
                            build the files of a release: a reproducible binary, its bill of
                            materials, checksums, a signature; see `dist --help`
  codegen [--check]         generate the CRI messages, or check that they are up to date
  tidy                      check the rules of ARCHITECTURE.md that the compiler does not check
  help                      print this

Rings: 1 = unit tests, 2 = tests of crates with real parts, 3 = the agent on a real runtime.
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the command; returns false if it failed and has reported that itself.
fn run(words: &[&str]) -> Result<bool> {
    let root = workspace::root()?;
    let done = match words {
        ["demo"] => interrupt::cleaning_up(demo::run),
        ["test", options @ ..] => return test::run(&root, &test::Options::parse(options)?),
        ["bench", options @ ..] => {
            let options = bench::Options::parse(options)?;
            interrupt::cleaning_up(move || bench::run(&options))
        }
        ["soak", "--help" | "-h"] => {
            print!("{}", soak::HELP);
            Ok(())
        }
        ["soak", options @ ..] => {
            let options = soak::Options::parse(options)?;
            interrupt::cleaning_up(move || soak::run(&options))
        }
        ["fuzz", options @ ..] => fuzz::run(&root, &fuzz::Options::parse(options)?),
        ["dist", "--help" | "-h"] => {
            print!("{}", dist::HELP);
            Ok(())
        }
        ["dist", options @ ..] => dist::run(&root, &dist::Options::parse(options)?),
        ["codegen"] => codegen::write(&root),
        ["codegen", "--check"] => codegen::check(&root),
        ["tidy"] => tidy::run(&root),
        [] | ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            Ok(())
        }
        other => bail!(
            "`{}` is not a command of xtask; see `cargo xtask help`",
            other.join(" ")
        ),
    };
    done.map(|()| true)
}
