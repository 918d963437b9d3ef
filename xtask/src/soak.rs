//! `cargo xtask soak`: runs the agent with pods of all kinds on a real runtime, behind a proxy that
//! injects faults, while pods are edited, killed and restarted. After each seed the faults stop,
//! and the runtime's state is compared with the desired pods and with the agent's API.

mod action;
mod compare;
mod kept;
mod node;
mod pods;
mod pressure;
mod runtime;

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use chaos_cri::{Dice, PROFILES};
use rubelet_testbed::runtime::Kind;
use rubelet_testbed::{clock, wait};

use crate::{cargo, workspace};
use action::Action;
use node::Node;
use pods::DesiredPods;

/// Output of `cargo xtask soak --help`.
pub(crate) const HELP: &str = "\
cargo xtask soak [OPTION...]

Runs the agent with a directory of pods on a private runtime behind chaos-cri (needs root). Each seed
selects the faults and the actions: manifests are added, edited and removed, processes of containers,
the runtime and the agent are killed, pods are restarted. Then the faults stop. The state of the
runtime, read directly, must converge to the desired pods and to what the agent shows: one ready
sandbox for each pod, one instance of each container that should run, no duplicates, nothing of
removed pods. No container may ever run twice. With the profile pressure there are no such faults: pods
take all memory, disk, inodes and process IDs in turn; each of them must be evicted, and no other pod. One line is printed for each seed; the exit code is 1
if one failed.

  --seeds N       how many seeds (10)
  --minutes M     start no further seed after so many minutes
  --first N       the first seed (1)
  --profile NAME  the faults of all seeds: light, events, rough or lies [default: in turn], or pressure
  --actions N     number of actions or shortages during a seed (15)
  --runtime NAME  containerd [default], or embedded: `rubelet runtime serve`
";

/// Timeout of convergence after the last fault: the next slow relist makes up for a lost event, and
/// a container that was killed often waits in its back-off.
const CONVERGE: Duration = Duration::from_secs(240);
/// Time for which it must then stay converged.
const STAY: Duration = Duration::from_secs(2);
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// The profile without faults of a runtime.
const PRESSURE: &str = "pressure";
/// The longest pause between two actions, in milliseconds.
const PAUSE: u64 = 2000;

/// The parsed command line.
#[derive(Debug)]
pub(crate) struct Options {
    seeds: u64,
    first: u64,
    minutes: Option<u64>,
    profile: Option<&'static str>,
    actions: u64,
    runtime: Kind,
}

impl Options {
    /// Parses the arguments after `soak`.
    pub(crate) fn parse(words: &[&str]) -> Result<Self> {
        let mut options = Self {
            seeds: 10,
            first: 1,
            minutes: None,
            profile: None,
            actions: 15,
            runtime: Kind::Containerd,
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let Some(value) = words.next() else {
                bail!("`{word}` is not an option or has no value; see `cargo xtask soak --help`");
            };
            match *word {
                "--seeds" => options.seeds = number(word, value)?,
                "--first" => options.first = number(word, value)?,
                "--minutes" => options.minutes = Some(number(word, value)?),
                "--actions" => options.actions = number(word, value)?,
                "--profile" => options.profile = Some(profile(value)?),
                "--runtime" => options.runtime = runtime(value)?,
                _ => bail!("soak has no option `{word}`; see `cargo xtask soak --help`"),
            }
        }
        Ok(options)
    }

    /// The faults of a seed.
    fn profile_of(&self, seed: u64) -> &'static str {
        let turn = usize::try_from(seed % PROFILES.len() as u64).unwrap_or_default();
        self.profile.unwrap_or(PROFILES[turn].0)
    }
}

fn number(option: &str, text: &str) -> Result<u64> {
    match text.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => bail!("{option} takes a whole number above 0, not `{text}`"),
    }
}

fn profile(text: &str) -> Result<&'static str> {
    let names = PROFILES.map(|(name, _)| name);
    let mut all = names.into_iter().chain([PRESSURE]);
    match all.find(|name| *name == text) {
        Some(name) => Ok(name),
        None => bail!(
            "unknown profile `{text}`; the profiles are {} and {PRESSURE}",
            names.join(", ")
        ),
    }
}

fn runtime(text: &str) -> Result<Kind> {
    match [Kind::Containerd, Kind::Embedded]
        .into_iter()
        .find(|kind| kind.name() == text)
    {
        Some(kind) => Ok(kind),
        None => bail!("unknown runtime `{text}`; the runtimes are containerd and embedded"),
    }
}

/// Runs the seeds; the error names those that failed.
pub(crate) fn run(options: &Options) -> Result<()> {
    let program = cargo::agent(&workspace::root()?, false)?;
    let begin = clock::now();
    let mut good = 0;
    let mut failed = Vec::new();
    for seed in (options.first..).take(usize::try_from(options.seeds)?) {
        let minutes = begin.elapsed().as_secs() / 60;
        if options.minutes.is_some_and(|limit| minutes >= limit) {
            break;
        }
        let name = options.profile_of(seed);
        let result = match name {
            PRESSURE => pressure::run_seed(options.runtime, &program, seed, options.actions),
            _ => run_seed(&program, seed, name, options),
        };
        match result {
            Ok(line) => {
                good += 1;
                println!("seed {seed} {name}: {line}");
            }
            Err(error) => {
                println!("seed {seed} {name}: FAILED: {error:#}");
                failed.push(seed.to_string());
            }
        }
    }
    let minutes = begin.elapsed().as_secs_f64() / 60.0;
    println!(
        "soak: {good} seeds good, {} failed, {minutes:.1} minutes",
        failed.len()
    );
    if !failed.is_empty() {
        bail!(
            "failed with seed {}; repeat one with `cargo xtask soak --runtime {} --first SEED \
             --seeds 1`{}",
            failed.join(", "),
            options.runtime.name(),
            options
                .profile
                .map_or(String::new(), |name| format!(" and `--profile {name}`")),
        );
    }
    Ok(())
}

/// Runs one seed, from a new runtime to its removal; returns a line about it.
fn run_seed(program: &Path, seed: u64, profile: &str, options: &Options) -> Result<String> {
    let actions = options.actions;
    // A separate random sequence: the actions must not depend on the faults.
    let mut dice = Dice::new(seed ^ 0x5eed);
    let mut wanted = DesiredPods::first(&mut dice);
    let mut node = Node::start(options.runtime, program, seed, profile, &wanted)?;
    let mut done = Vec::new();
    let mut soak = Soak {
        node: &mut node,
        wanted: &mut wanted,
    };
    let result = soak.run(&mut dice, actions, &mut done);
    let result = result.map_err(|error| {
        let report = format!(
            "{error:#}\n--- done\n{}\n{}",
            done.join("\n"),
            node.agent.circumstances(),
        );
        let kept = node.keep_logs(seed, &report);
        anyhow!("{error:#}\n  after: {}\n  {kept}", done.join("; "))
    });
    let injected = node.injected();
    let removed = node.remove();
    let took = result?;
    removed?;
    Ok(format!(
        "{actions} actions, {injected} faults, converged {:.1} s after the last",
        took.as_secs_f64()
    ))
}

/// A running seed.
struct Soak<'a> {
    node: &'a mut Node,
    wanted: &'a mut DesiredPods,
}

impl Soak<'_> {
    /// Performs the actions, stops the faults, and waits for convergence; returns how long that
    /// took.
    fn run(&mut self, dice: &mut Dice, actions: u64, done: &mut Vec<String>) -> Result<Duration> {
        for _ in 0..actions {
            wait::pass(Duration::from_millis(dice.below(PAUSE)));
            let action = Action::draw(dice, self.wanted);
            done.push(action.perform(self.node, dice, self.wanted)?);
            self.node.check_running()?;
            compare::check_no_duplicates(self.node)?;
        }
        self.node.stop_faults();
        self.converge()
    }

    fn converge(&mut self) -> Result<Duration> {
        let begin = clock::now();
        let mut good_since = None;
        let mut differences = Vec::new();
        let waited = wait::until_every(POLL_INTERVAL, "the pods converge", CONVERGE, || {
            self.node.check_running()?;
            compare::check_no_duplicates(self.node)?;
            differences = compare::differences(self.node, self.wanted)
                .unwrap_or_else(|error| vec![format!("cannot compare: {error:#}")]);
            if !differences.is_empty() {
                good_since = None;
                return Ok(None);
            }
            let since = *good_since.get_or_insert_with(clock::now);
            Ok((since.elapsed() >= STAY).then(|| since.duration_since(begin)))
        });
        waited.map_err(|error| {
            if differences.is_empty() {
                return error;
            }
            error.context(differences.join("\n"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_parsed_and_invalid_ones_rejected() {
        let options = Options::parse(&["--seeds", "3", "--profile", "rough"]).unwrap();
        assert_eq!((options.seeds, options.first), (3, 1));
        assert_eq!(options.runtime, Kind::Containerd);
        let options = Options::parse(&["--profile", "rough", "--runtime", "embedded"]).unwrap();
        assert_eq!(options.runtime, Kind::Embedded);
        assert_eq!(options.profile_of(7), "rough");
        let options = Options::parse(&["--profile", "pressure"]).unwrap();
        assert_eq!(options.profile_of(7), "pressure");
        let turns: std::collections::BTreeSet<_> = {
            let options = Options::parse(&[]).unwrap();
            (1..=4).map(|seed| options.profile_of(seed)).collect()
        };
        assert_eq!(turns.len(), PROFILES.len());
        for (words, part) in [
            (&["--seeds"][..], "has no value"),
            (&["--seeds", "0"], "above 0"),
            (&["--seed", "1"], "no option"),
            (&["--profile", "x"], "the profiles are light"),
            (&["--runtime", "x"], "the runtimes are containerd"),
        ] {
            let error = Options::parse(words).unwrap_err().to_string();
            assert!(error.contains(part), "{words:?}: {error}");
        }
    }
}
