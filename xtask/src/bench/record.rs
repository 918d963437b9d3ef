//! `--record`: writes the results of a run into the tables of SPECIFICATION.md.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use rubelet_testbed::clock;

use super::registry::BENCHMARKS;
use super::report::Results;
use crate::git;

/// The file with the tables, relative to the root of the workspace.
const FILE: &str = "SPECIFICATION.md";
/// Prefix of the line about the run.
const RUN: &str = "*Measured* is one run";

/// The commit that is measured.
///
/// # Errors
/// The checkout has changes: figures must belong to a commit.
pub(super) fn commit(root: &Path) -> Result<String> {
    let changes = ["status", "--porcelain", "--", ".", ":!SPECIFICATION.md"];
    let changed = git::output(root, &changes)?;
    ensure!(
        changed.is_empty(),
        "--record measures a commit, and there are changes:\n{changed}"
    );
    git::output(root, &["rev-parse", "--short=12", "HEAD"])
}

/// Writes all figures.
///
/// # Errors
/// A figure was not measured or has no row, or the file can't be written.
pub(super) fn write(root: &Path, commit: &str, results: &Results) -> Result<()> {
    let path = root.join(FILE);
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read {}", path.display()))?;
    let run = format!("{RUN} of commit {commit} on {}.", machine()?);
    let text = rewritten(&text, &run, |name| results.shown(name))?;
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// The text with the last cell of each figure's row, and the line about the run, replaced.
fn rewritten(text: &str, run: &str, value: impl Fn(&str) -> Option<String>) -> Result<String> {
    let mut written = String::with_capacity(text.len());
    let mut seen = BTreeSet::new();
    let mut runs = 0;
    for (number, line) in (1..).zip(text.lines()) {
        if line.starts_with(RUN) {
            runs += 1;
            written.push_str(run);
        } else if let Some((name, rest)) = figure(line) {
            let value =
                value(name).with_context(|| format!("{FILE}:{number}: {name} was not measured"))?;
            seen.insert(name.to_owned());
            written.push_str(&format!("{rest}| {value} |"));
        } else {
            written.push_str(line);
        }
        written.push('\n');
    }
    ensure!(runs == 1, "{FILE} has {runs} lines that begin with `{RUN}`");
    let missing: Vec<_> = BENCHMARKS
        .iter()
        .map(|one| one.name)
        .filter(|name| !seen.contains(*name))
        .collect();
    if !missing.is_empty() {
        bail!("{FILE} has no row for {}", missing.join(", "));
    }
    Ok(written)
}

/// The figure of a row, and the row without its last cell.
fn figure(line: &str) -> Option<(&str, &str)> {
    let (name, _) = line.strip_prefix("| `")?.split_once("` |")?;
    BENCHMARKS.iter().find(|one| one.name == name)?;
    let rest = line.strip_suffix('|')?;
    Some((name, &rest[..rest.rfind('|')?]))
}

/// The machine, its kernel, its cgroups and the date as text.
fn machine() -> Result<String> {
    let read =
        |path: &str| std::fs::read_to_string(path).with_context(|| format!("cannot read {path}"));
    let cpuinfo = read("/proc/cpuinfo")?;
    let values = |name: &str| -> Vec<String> {
        let lines = cpuinfo.lines().filter_map(|line| line.strip_prefix(name));
        let values = lines.filter_map(|line| line.split_once(':'));
        values.map(|(_, value)| value.trim().to_owned()).collect()
    };
    let cores = values("processor").len();
    let model = values("model name").pop();
    let model = model.map_or_else(String::new, |model| format!(" ({model})"));
    let memory = read("/proc/meminfo")?;
    let kib = memory
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB"))
        .and_then(|kib| kib.parse::<u64>().ok())
        .context("/proc/meminfo does not contain the size of the memory")?;
    let kernel = read("/proc/sys/kernel/osrelease")?;
    let second = Path::new("/sys/fs/cgroup/cgroup.controllers").exists();
    let date = jiff::Timestamp::try_from(clock::wall()).context("the clock is out of range")?;
    Ok(format!(
        "{}: {cores} cores{model}, {} GiB of memory, Linux {}, cgroup version {}",
        date.strftime("%Y-%m-%d"),
        kib.div_ceil(1 << 20),
        kernel.trim(),
        if second { 2 } else { 1 },
    ))
}

#[cfg(test)]
mod tests;
