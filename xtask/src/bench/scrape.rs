//! Parses the agent's metrics, in Prometheus' text format.

use anyhow::{Context, Result, ensure};
use rubelet_testbed::Agent;

/// The agent's current metrics.
pub(super) fn metrics(agent: &Agent) -> Result<String> {
    let answer = agent.health("/metrics")?;
    ensure!(
        answer.status == 200,
        "/metrics gave status {}",
        answer.status
    );
    Ok(answer.text())
}

/// The sum of a metric over all its labels.
///
/// # Errors
/// The text has no such metric.
pub(super) fn sum(metrics: &str, name: &str) -> Result<f64> {
    let samples = metrics
        .lines()
        .filter_map(|line| value_of(line, name))
        .collect::<Vec<f64>>();
    ensure!(!samples.is_empty(), "the agent has no metric {name}");
    Ok(samples.into_iter().sum())
}

/// The value in a line, if it is one of that metric.
fn value_of(line: &str, name: &str) -> Option<f64> {
    let rest = line.strip_prefix(name)?;
    let value = match rest.strip_prefix('{') {
        // A label's value may contain braces and spaces, but the last brace ends the labels.
        Some(labels) => labels.rsplit_once('}')?.1,
        None => rest.strip_prefix(' ')?,
    };
    value.split_whitespace().next()?.parse().ok()
}

/// The increase of a sum between two texts.
pub(super) fn growth(before: &str, after: &str, name: &str) -> Result<f64> {
    let both = || Ok::<_, anyhow::Error>(sum(after, name)? - sum(before, name)?);
    both().with_context(|| format!("cannot compute the growth of {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# TYPE calls_total counter
calls_total{kind=\"a {b} c\"} 3
calls_total{kind=\"d\"} 4.5
calls_total_more 100
alone 7 1700000000000
";

    #[test]
    fn a_sum_is_over_all_labels_and_of_one_metric_only() {
        assert_eq!(sum(TEXT, "calls_total").unwrap(), 7.5);
        assert_eq!(sum(TEXT, "alone").unwrap(), 7.0);
        assert!(sum(TEXT, "calls").is_err());
        assert_eq!(growth(TEXT, TEXT, "calls_total").unwrap(), 0.0);
    }
}
