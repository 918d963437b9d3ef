//! Prometheus' text format 0.0.4.

use std::fmt::Write as _;

use jiff::Timestamp;

/// The type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MetricKind {
    /// A number that only grows.
    Counter,
    /// Any number.
    Gauge,
}

/// A document of metrics.
#[derive(Debug, Default)]
pub(crate) struct Exposition {
    text: String,
}

impl Exposition {
    /// A document of about so many bytes: one that grows is copied again and again.
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self {
            text: String::with_capacity(bytes),
        }
    }

    /// Adds a metric with all its values; nothing if there are none.
    pub(crate) fn metric(
        &mut self,
        name: &str,
        kind: MetricKind,
        help: &str,
        values: impl FnOnce(&mut MetricValues<'_>),
    ) {
        let start = self.text.len();
        let kind = match kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
        };
        // Writing to a String never fails.
        let _ = write!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        let head = self.text.len();
        values(&mut MetricValues {
            name,
            text: &mut self.text,
        });
        if self.text.len() == head {
            self.text.truncate(start);
        }
    }

    /// The document.
    pub(crate) fn into_text(self) -> String {
        self.text
    }
}

/// The values of one metric.
pub(crate) struct MetricValues<'a> {
    name: &'a str,
    text: &'a mut String,
}

impl MetricValues<'_> {
    /// Adds a value. `at` is the time at which it was read, if that is not the time of the request.
    pub(crate) fn add(&mut self, labels: &[(&str, &str)], value: f64, at: Option<Timestamp>) {
        self.add_to(&SharedLabels::NONE, labels, value, at);
    }

    /// Adds a value whose first labels are those of other values, too.
    pub(crate) fn add_to(
        &mut self,
        first: &SharedLabels,
        labels: &[(&str, &str)],
        value: f64,
        at: Option<Timestamp>,
    ) {
        self.text.push_str(self.name);
        if !first.0.is_empty() || !labels.is_empty() {
            self.text.push('{');
            self.text.push_str(&first.0);
            write_labels(labels, first.0.is_empty(), self.text);
            self.text.push('}');
        }
        self.text.push(' ');
        write_number(value, self.text);
        if let Some(at) = at {
            self.text.push(' ');
            write_whole(at.as_millisecond(), self.text);
        }
        self.text.push('\n');
    }
}

/// Writes a value. Most of them are whole, and those are soon written.
fn write_number(value: f64, text: &mut String) {
    /// Greater ones may not be exact.
    const EXACT: u64 = 1 << 53;
    let whole = value as i64;
    if whole as f64 == value && whole.unsigned_abs() < EXACT {
        write_whole(whole, text);
    } else {
        // Writing to a String never fails.
        let _ = write!(text, "{value}");
    }
}

fn write_whole(number: i64, text: &mut String) {
    text.push_str(itoa::Buffer::new().format(number));
}

/// The labels of many values, written once.
#[derive(Debug)]
pub(crate) struct SharedLabels(String);

impl SharedLabels {
    pub(crate) const NONE: Self = Self(String::new());

    pub(crate) fn new(labels: &[(&str, &str)]) -> Self {
        let mut text = String::new();
        write_labels(labels, true, &mut text);
        Self(text)
    }
}

fn write_labels(labels: &[(&str, &str)], mut is_first: bool, text: &mut String) {
    for (name, value) in labels {
        if !is_first {
            text.push(',');
        }
        is_first = false;
        text.push_str(name);
        text.push_str("=\"");
        escape(value, text);
        text.push('"');
    }
}

/// Values of labels come from manifests, images and interfaces of pods: none of them may end its
/// line and begin another metric.
fn escape(value: &str, text: &mut String) {
    for c in value.chars() {
        match c {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            c => text.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_cannot_leave_its_quotes() {
        let mut metrics = Exposition::default();
        metrics.metric("m", MetricKind::Gauge, "Help", |values| {
            values.add(&[("a", "x\"} 1\nforged 2\\")], 0.5, None);
            let at = Timestamp::from_millisecond(7).ok();
            values.add(&[("a", ""), ("b", "y")], 12_345_678_901.0, at);
            values.add(&[], 1e-9, None);
            values.add(&[], -3.0, None);
            values.add(&[], 1e16, None);
            let shared = SharedLabels::new(&[("a", "\"")]);
            values.add_to(&shared, &[], 1.0, None);
            values.add_to(&shared, &[("b", "y")], 2.0, None);
        });
        metrics.metric("none", MetricKind::Counter, "Help", |_| {});
        let lines = [
            "# HELP m Help",
            "# TYPE m gauge",
            r#"m{a="x\"} 1\nforged 2\\"} 0.5"#,
            r#"m{a="",b="y"} 12345678901 7"#,
            "m 0.000000001",
            "m -3",
            "m 10000000000000000",
            r#"m{a="\""} 1"#,
            r#"m{a="\"",b="y"} 2"#,
            "",
        ];
        assert_eq!(metrics.into_text(), lines.join("\n"));
    }
}
