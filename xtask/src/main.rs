//! `cargo xtask`: everything a contributor or CI runs, in one program.
#![allow(clippy::print_stdout, clippy::print_stderr)] // It talks to a person at a terminal.

mod bench;
mod cargo;
#[allow(unreachable_pub, reason = "its functions read like those of a library")]
mod codegen;
mod demo;
mod fuzz;
mod interrupt;
mod soak;
mod test;
mod tidy;
mod workspace;

use std::process::ExitCode;

use anyhow::{Result, bail};

const HELP: &str = "\
cargo xtask COMMAND

  demo                      run three example pods on the runtime inside and show what happens
  test [--ring N] [--runtime NAME] [FILTER]
                            check everything, then run all tests (needs root); with a ring number,
                            a runtime (embedded, containerd) or a filter: only those tests
  bench [--json] [NAME...]  measure the release binary (needs root); `bench --list` names all
  soak [--seeds N] [--minutes M]
                            the agent on a real runtime behind injected faults, and whether all is
                            as wanted after them (needs root); see `soak --help`
  fuzz [--seconds N] [--keep] [NAME...]
                            nonsense for what reads bytes from outside (needs root)
  codegen [--check]         generate the CRI messages, or tell whether they are up to date
  tidy                      check the rules of ARCHITECTURE.md that the compiler doesn't know
  help                      print this

Rings: 1 = unit tests, 2 = tests of crates without a runtime, 3 = the agent on a real runtime,
4 = the same under stress (crates/testbed/tests/ring4*).
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[&str]) -> Result<()> {
    let root = workspace::root()?;
    match words {
        ["demo"] => interrupt::cleaning_up(demo::run),
        ["test", options @ ..] => test::run(&root, &test::Options::parse(options)?),
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
        ["codegen"] => codegen::write(&root),
        ["codegen", "--check"] => codegen::check(&root),
        ["tidy"] => tidy::run(&root),
        [] | ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            Ok(())
        }
        other => bail!(
            "`{}` is no command of xtask; see `cargo xtask help`",
            other.join(" ")
        ),
    }
}
