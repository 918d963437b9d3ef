//! `cargo xtask bench`: measures the promises of SPECIFICATION.md on the release binary, with a
//! private containerd and with the embedded runtime.

mod bare;
mod benchmark;
mod binary;
mod churn;
mod disk_busy;
mod embedded;
mod empty_node;
mod evict;
mod example;
mod hundred_pods;
mod joined;
mod kubelet;
mod logs;
mod network;
mod plan;
mod probes;
mod reconcile;
mod record;
mod registry;
mod report;
mod restarts;
mod runtime_alone;
mod scrape;
mod sessions;
mod stubborn;

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::{cargo, workspace};
use benchmark::{Benchmark, Group};
use registry::BENCHMARKS;
use report::Results;

/// The parsed command line.
#[derive(Debug, Default)]
pub(crate) struct Options {
    json: bool,
    list: bool,
    record: bool,
    wanted: Vec<&'static Benchmark>,
}

impl Options {
    /// Parses the arguments after `bench`; without names, all benchmarks are selected.
    pub(crate) fn parse(words: &[&str]) -> Result<Self> {
        let mut options = Self::default();
        for word in words {
            match *word {
                "--json" => options.json = true,
                "--list" => options.list = true,
                "--record" => options.record = true,
                name => match BENCHMARKS.iter().find(|benchmark| benchmark.name == name) {
                    Some(benchmark) => options.wanted.push(benchmark),
                    None => bail!(
                        "`{name}` is neither a benchmark nor an option; `cargo xtask bench \
                         --list` names all benchmarks"
                    ),
                },
            }
        }
        if options.record && !options.wanted.is_empty() {
            bail!("--record writes all figures of one run, so it takes no names");
        }
        if options.wanted.is_empty() {
            options.wanted = BENCHMARKS.iter().collect();
        }
        Ok(options)
    }
}

/// The context of a benchmark.
struct Request<'a> {
    /// The program that is measured.
    program: PathBuf,
    wanted: &'a [&'static Benchmark],
}

impl Request<'_> {
    fn includes(&self, name: &str) -> bool {
        self.wanted.iter().any(|benchmark| benchmark.name == name)
    }

    fn includes_group(&self, group: Group) -> bool {
        self.wanted.iter().any(|benchmark| benchmark.group == group)
    }
}

/// A function that measures a group.
type Part = fn(&Request<'_>, &mut Results) -> Result<()>;

/// The functions of the groups, in execution order.
const PARTS: &[(Group, Part)] = &[
    (Group::Binary, binary::measure),
    (Group::EmptyNode, empty_node::measure),
    (Group::HundredPods, hundred_pods::measure),
    (Group::RuntimeAlone, runtime_alone::measure),
    (Group::Restarts, restarts::measure),
    (Group::RestartsDiskBusy, disk_busy::containerd),
    (Group::Plan, |_, results| plan::measure(results)),
    (Group::Reconcile, |_, results| reconcile::measure(results)),
    (Group::Probes, probes::measure),
    (Group::Stubborn, stubborn::measure),
    (Group::Joined, joined::measure),
    (Group::Eviction, evict::measure),
    (Group::Churn, |_, results| churn::measure(results)),
    (Group::EmbeddedPods, embedded::pods::measure),
    (Group::EmbeddedHundred, embedded::hundred::measure),
    (Group::EmbeddedRestarts, embedded::restarts::measure),
    (Group::EmbeddedRestartsDiskBusy, disk_busy::embedded),
    (Group::EmbeddedTakeover, embedded::takeover::measure),
    (Group::EmbeddedCopies, embedded::copies::measure),
    (Group::EmbeddedThousand, embedded::thousand::measure),
    (Group::Sessions, sessions::measure),
    (Group::Logs, logs::measure),
    (Group::Network, network::measure),
];

/// Measures the selected benchmarks and prints only the results: a table, or one flat JSON object.
pub(crate) fn run(options: &Options) -> Result<()> {
    if options.list {
        report::print_list();
        return Ok(());
    }
    let root = workspace::root()?;
    let commit = options.record.then(|| record::commit(&root)).transpose()?;
    let request = Request {
        program: cargo::agent(&root, true)?,
        wanted: &options.wanted,
    };
    let mut results = Results::default();
    let mut failed = Vec::new();
    for (group, measure) in PARTS {
        if !request.includes_group(*group) {
            continue;
        }
        // A failure of one part must not hide the results of the others.
        if let Err(error) = measure(&request, &mut results) {
            let report = format!("{group:?}: {error:#}");
            progress(&report);
            failed.push(report);
        }
    }
    results.keep(&options.wanted);
    if options.json {
        results.print_json()?;
    } else {
        results.print_table()?;
    }
    let missing = results.missing(&options.wanted);
    if !missing.is_empty() {
        failed.push(format!("not measured: {}", missing.join(", ")));
    }
    if !failed.is_empty() {
        bail!("not all benchmarks were measured:\n{}", failed.join("\n"));
    }
    commit.map_or(Ok(()), |commit| record::write(&root, &commit, &results))
}

/// Reports the progress of a long measurement on standard error.
fn progress(what: &str) {
    eprintln!("bench: {what}");
}

/// Bytes as mebibytes.
fn mib(bytes: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "sizes are far below 2^52 bytes")]
    let bytes = bytes as f64;
    bytes / (1024.0 * 1024.0)
}

/// The quantile `part` of these sorted numbers: the smallest that this share does not exceed.
fn quantile(sorted: &[f64], part: f64) -> f64 {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is an index into some hundred numbers"
    )]
    let rank = (sorted.len() as f64 * part).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_one_of_the_numbers() {
        let numbers: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(quantile(&numbers, 0.5), 50.0);
        assert_eq!(quantile(&numbers, 0.99), 99.0);
        assert_eq!(quantile(&[7.0], 0.99), 7.0);
        assert!(quantile(&[], 0.5).is_nan());
    }

    #[test]
    fn names_choose_benchmarks_and_no_name_means_all() {
        let names = |words: &[&str]| -> Vec<&str> {
            Options::parse(words)
                .unwrap()
                .wanted
                .iter()
                .map(|benchmark| benchmark.name)
                .collect()
        };
        assert_eq!(names(&["--json", "rss_mib_0"]), ["rss_mib_0"]);
        assert_eq!(names(&[]).len(), BENCHMARKS.len());
        assert!(Options::parse(&["rss"]).is_err());
        assert!(Options::parse(&["--record"]).unwrap().record);
        assert!(Options::parse(&["--record", "rss_mib_0"]).is_err());
    }
}
