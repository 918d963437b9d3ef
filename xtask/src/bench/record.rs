//! `--record`: writes what one run has measured into the tables of SPECIFICATION.md.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use rubelet_testbed::clock;

use super::registry::BENCHMARKS;
use super::report::Results;
use crate::git;

/// The file whose tables are written, relative to the root of the workspace.
const FILE: &str = "SPECIFICATION.md";
/// How the line begins that tells of the run.
const RUN: &str = "*Measured* is one run";

/// The commit that is measured.
///
/// # Errors
/// When files differ from it: figures belong to a commit.
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
/// When one of them was not measured or has no row, or the file can't be written.
pub(super) fn write(root: &Path, commit: &str, results: &Results) -> Result<()> {
    let path = root.join(FILE);
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read {}", path.display()))?;
    let run = format!("{RUN} of commit {commit} on {}.", machine()?);
    let text = rewritten(&text, &run, |name| results.shown(name))?;
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// The text with the last cell of each figure's row, and the line of the run, written anew.
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

/// The name of the figure that a row is about, and the row without its last cell.
fn figure(line: &str) -> Option<(&str, &str)> {
    let (name, _) = line.strip_prefix("| `")?.split_once("` |")?;
    BENCHMARKS.iter().find(|one| one.name == name)?;
    let rest = line.strip_suffix('|')?;
    Some((name, &rest[..rest.rfind('|')?]))
}

/// The machine, its kernel, its cgroups and the date, in words.
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
        .context("/proc/meminfo does not tell the size of the memory")?;
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
mod tests {
    use super::*;

    fn table() -> String {
        let mut text = format!("# Numbers\n\n{RUN} of long ago.\n\n| name | goal | measured |\n");
        for one in BENCHMARKS {
            text.push_str(&format!("| `{}` | a \\| b | 1 |\n", one.name));
        }
        text.push_str("| `no_figure` | 2 |\nend\n");
        text
    }

    #[test]
    fn the_last_cell_of_each_row_and_the_line_of_the_run_are_written() {
        let text = rewritten(&table(), "*Measured* now.", |name| {
            Some(format!("<{name}>"))
        });
        let text = text.unwrap();
        assert!(text.contains("\n*Measured* now.\n"), "{text}");
        assert!(
            text.contains("| `rss_mib_0` | a \\| b | <rss_mib_0> |\n"),
            "{text}"
        );
        assert!(text.ends_with("| `no_figure` | 2 |\nend\n"), "{text}");
    }

    #[test]
    fn what_was_not_measured_or_has_no_row_is_an_error_by_name() {
        let measured = |name: &str| (name != "rss_mib_0").then(|| "1".to_owned());
        let error = rewritten(&table(), "", measured).unwrap_err().to_string();
        assert!(error.contains("rss_mib_0 was not measured"), "{error}");
        let text = table().replace("`rss_mib_0`", "`other`");
        let error = rewritten(&text, "", |_| Some("1".to_owned())).unwrap_err();
        assert!(
            error.to_string().contains("no row for rss_mib_0"),
            "{error}"
        );
    }

    #[test]
    fn the_specification_has_a_row_for_each_figure() {
        let root = crate::workspace::root().unwrap();
        let text = std::fs::read_to_string(root.join(FILE)).unwrap();
        rewritten(&text, RUN, |_| Some("1".to_owned())).unwrap();
    }

    #[test]
    fn the_machine_is_told_in_words() {
        let text = machine().unwrap();
        assert!(
            text.contains("Linux ") && text.contains("cgroup version "),
            "{text}"
        );
    }
}
