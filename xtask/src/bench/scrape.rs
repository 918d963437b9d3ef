//! Reading the agent's metrics, in Prometheus' text format.

use anyhow::{Context, Result, ensure};
use rubelet_testbed::Agent;

/// The agent's metrics now.
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
        // A label's value may hold braces and spaces, but the last one ends the labels.
        Some(labels) => labels.rsplit_once('}')?.1,
        None => rest.strip_prefix(' ')?,
    };
    value.split_whitespace().next()?.parse().ok()
}

/// By how much a sum has grown from one text to a later one.
pub(super) fn growth(before: &str, after: &str, name: &str) -> Result<f64> {
    let both = || Ok::<_, anyhow::Error>(sum(after, name)? - sum(before, name)?);
    both().with_context(|| format!("cannot tell how {name} has grown"))
}

/// The value below which that share of what a histogram counted between two texts lies, in the
/// histogram's unit. Between the bounds of a bucket it is interpolated, as PromQL does.
pub(super) fn quantile(before: &str, after: &str, name: &str, share: f64) -> Result<f64> {
    let buckets = buckets(after, name)
        .into_iter()
        .zip(buckets(before, name))
        .map(|((bound, after), (_, before))| (bound, after - before))
        .collect::<Vec<(f64, f64)>>();
    let total = buckets.last().map_or(0.0, |(_, count)| *count);
    ensure!(total > 0.0, "{name} counted nothing");
    let wanted = total * share;
    let mut below = (0.0, 0.0);
    for (bound, count) in buckets {
        if count >= wanted {
            ensure!(bound.is_finite(), "{name} has values beyond its buckets");
            let part = (wanted - below.1) / (count - below.1);
            return Ok(below.0 + (bound - below.0) * part);
        }
        below = (bound, count);
    }
    anyhow::bail!("{name} has no bucket of all values")
}

/// Bounds and counts of a histogram without labels.
fn buckets(metrics: &str, name: &str) -> Vec<(f64, f64)> {
    let prefix = format!("{name}_bucket{{le=\"");
    let lines = metrics
        .lines()
        .filter_map(|line| line.strip_prefix(&prefix));
    let pairs = lines.filter_map(|rest| {
        let (bound, count) = rest.split_once("\"} ")?;
        let bound = match bound {
            "+Inf" => f64::INFINITY,
            bound => bound.parse().ok()?,
        };
        Some((bound, count.parse().ok()?))
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_lies_within_its_bucket() {
        let text = |counts: [u32; 4]| {
            let [a, b, c, all] = counts;
            format!(
                "lag_bucket{{le=\"1\"}} {a}\nlag_bucket{{le=\"2\"}} {b}\n\
                 lag_bucket{{le=\"4\"}} {c}\nlag_bucket{{le=\"+Inf\"}} {all}\n"
            )
        };
        let (before, after) = (text([5, 5, 5, 5]), text([5, 15, 25, 25]));
        assert_eq!(quantile(&before, &after, "lag", 0.5).unwrap(), 2.0);
        assert_eq!(quantile(&before, &after, "lag", 0.75).unwrap(), 3.0);
        assert!(quantile(&after, &after, "lag", 0.5).is_err());
        assert!(quantile(&before, &text([5, 5, 5, 15]), "lag", 0.5).is_err());
    }

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
