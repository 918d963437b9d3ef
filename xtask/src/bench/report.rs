//! Prints results: a table for users, JSON for programs.

use anyhow::Result;
use serde_json::{Map, Value};

use super::benchmark::{Benchmark, Better};
use super::registry::BENCHMARKS;

/// Numbers by the names of their benchmarks.
#[derive(Debug, Default)]
pub(super) struct Results(Vec<(&'static str, f64)>);

impl Results {
    /// Adds the number of benchmark `name`.
    pub(super) fn add(&mut self, name: &'static str, value: f64) {
        self.0.push((name, value));
    }

    /// Drops numbers that were measured but not selected.
    pub(super) fn keep(&mut self, wanted: &[&'static Benchmark]) {
        self.0
            .retain(|(name, _)| wanted.iter().any(|benchmark| benchmark.name == *name));
    }

    pub(super) fn print_json(&self) -> Result<()> {
        println!("{}", serde_json::to_string_pretty(&self.json())?);
        Ok(())
    }

    pub(super) fn print_table(&self) -> Result<()> {
        for line in self.table() {
            println!("{line}");
        }
        Ok(())
    }

    /// Selected benchmarks without a number. NaN (such as the median of no values) was not measured
    /// either.
    pub(super) fn missing(&self, wanted: &[&'static Benchmark]) -> Vec<&'static str> {
        let names = wanted.iter().map(|benchmark| benchmark.name);
        names.filter(|name| self.number(name).is_none()).collect()
    }

    /// The formatted number of benchmark `name`.
    pub(super) fn shown(&self, name: &str) -> Option<String> {
        let number = self.number(name)?;
        Some(if number >= 100.0 {
            format!("{number:.0}")
        } else {
            format!("{number:.2}")
        })
    }

    fn number(&self, name: &str) -> Option<f64> {
        let (_, value) = self.0.iter().find(|(one, _)| *one == name)?;
        value.is_finite().then_some(*value)
    }

    /// The measured numbers; a NaN must not affect the others.
    fn json(&self) -> Map<String, Value> {
        let numbers = self.0.iter().filter_map(|(name, value)| {
            // More than two digits are not reproducible.
            let rounded = (value * 100.0).round() / 100.0;
            let number = serde_json::Number::from_f64(rounded)?;
            Some(((*name).to_owned(), Value::Number(number)))
        });
        numbers.collect()
    }

    fn table(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "{:<32}{:>10}  {:<12}{:>8}",
            "NAME", "VALUE", "UNIT", "GOAL"
        )];
        for benchmark in BENCHMARKS {
            let Some((_, value)) = self.0.iter().find(|(name, _)| *name == benchmark.name) else {
                continue;
            };
            let Benchmark { name, unit, .. } = benchmark;
            let (sign, reached) = match benchmark.better {
                Better::Smaller => ("<=", *value <= benchmark.goal),
                Better::Larger => (">=", *value >= benchmark.goal),
                Better::Neither => {
                    lines.push(format!("{name:<32}{value:>10.2}  {unit}"));
                    continue;
                }
            };
            let goal = format!("{sign} {}", benchmark.goal);
            let verdict = if reached { "reached" } else { "MISSED" };
            lines.push(format!(
                "{name:<32}{value:>10.2}  {unit:<12}{goal:>8}  {verdict}"
            ));
        }
        lines
    }
}

/// Prints the names of all benchmarks and their descriptions.
pub(super) fn print_list() {
    for Benchmark {
        name, unit, about, ..
    } in BENCHMARKS
    {
        println!("{name:<32}{unit:<13}{about}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results() -> Results {
        let mut results = Results::default();
        results.add("rss_mib_0", 9.126);
        results.add("adopt_100_ms", 612.0);
        results.add("stop_100_s", 6.5);
        results.add("churn_pods_per_s", 199.0);
        results.add("runtime_cpu_idle_alone_pct_100", 0.25);
        results
    }

    #[test]
    fn json_is_one_flat_object_of_numbers() {
        let mut results = results();
        results.add("rss_mib_100", f64::NAN);
        let json = Value::Object(results.json());
        assert_eq!(
            json.to_string(),
            r#"{"adopt_100_ms":612.0,"churn_pods_per_s":199.0,"rss_mib_0":9.13,"runtime_cpu_idle_alone_pct_100":0.25,"stop_100_s":6.5}"#
        );
    }

    #[test]
    fn missing_results_are_named_and_the_others_printed() {
        let mut results = results();
        results.add("rss_mib_100", f64::NAN);
        let wanted: Vec<&Benchmark> = BENCHMARKS
            .iter()
            .filter(|one| ["rss_mib_0", "rss_mib_100", "binary_mib"].contains(&one.name))
            .collect();
        assert_eq!(results.missing(&wanted), ["binary_mib", "rss_mib_100"]);
        assert_eq!(results.shown("rss_mib_0").as_deref(), Some("9.13"));
        assert_eq!(results.shown("adopt_100_ms").as_deref(), Some("612"));
        assert_eq!(results.shown("rss_mib_100"), None);
    }

    #[test]
    fn the_table_shows_which_goals_are_missed() {
        let table = results().table();
        assert!(table[1].ends_with("<= 10  reached"), "{}", table[1]);
        assert!(table[2].ends_with("0.25  % of a core"), "{}", table[2]);
        assert!(table[3].ends_with("<= 500  MISSED"), "{}", table[3]);
        assert!(table[4].ends_with("<= 5  MISSED"), "{}", table[4]);
        assert!(table[5].ends_with(">= 200  MISSED"), "{}", table[5]);
    }
}
