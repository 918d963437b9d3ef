//! The page `docs/parity.md`.

use rubelet_base::parity::{ParityVerdict, count_verdicts};

use super::{
    ANNOTATIONS, CONTAINER_REASONS, ENDPOINTS, EXITS, MISSING_EVENTS, MISSING_METRICS,
    NODE_CONDITIONS, POD_CONDITIONS, POD_REASONS, ParityRow, SAME_METRICS, SOCKETS,
};
use crate::event_text::{EVENTS, Whose};

const INTRODUCTION: &str = "\
# Compared with the kubelet

<!-- Made from the tables in crates/parity/src. Change those, and run the tests of rubelet-parity. -->

What the kubelet of Kubernetes 1.36 says, serves and does, and what becomes of it in Rubelet: **same**; **better**;
**differs** on purpose; **not yet**. A start says in one line what the kubelet does by default and this version does not yet.
The same verdicts stand beside [fields of the configuration and feature gates](configuration.md), [flags](flags.md) and
[fields of a pod](fields.md).
";

/// The text of the page.
#[must_use]
pub fn parity_markdown() -> String {
    let mut page = INTRODUCTION.to_owned();
    events(&mut page);
    for (title, rows) in [
        ("Conditions of pods", POD_CONDITIONS),
        ("Conditions of nodes", NODE_CONDITIONS),
        ("Reasons of pods", POD_REASONS),
        ("Reasons of containers", CONTAINER_REASONS),
    ] {
        table(&mut page, title, rows);
    }
    metrics(&mut page);
    for (title, rows) in [
        ("HTTPS", ENDPOINTS),
        ("Ports and sockets", SOCKETS),
        ("Annotations and labels", ANNOTATIONS),
        ("How the program ends", EXITS),
    ] {
        table(&mut page, title, rows);
    }
    page
}

fn heading(page: &mut String, title: &str, verdicts: impl IntoIterator<Item = ParityVerdict>) {
    let counts = count_verdicts(verdicts);
    page.push_str(&format!(
        "\n## {title}\n\n{counts}.\n\n| name | verdict | why |\n|---|---|---|\n"
    ));
}

fn line(page: &mut String, name: &str, verdict: ParityVerdict, why: &str) {
    let name = name.replace('|', "\\|");
    page.push_str(&format!("| {name} | {} | {why} |\n", verdict.name()));
}

fn table(page: &mut String, title: &str, rows: &[ParityRow]) {
    heading(page, title, rows.iter().map(|row| row.verdict));
    for row in rows {
        line(page, row.name, row.verdict, row.why);
    }
}

fn events(page: &mut String) {
    let verdict = |whose| match whose {
        Whose::Kubelets => (ParityVerdict::Same, ""),
        Whose::Own => (
            ParityVerdict::Better,
            "the kubelet says nothing, or only in its log",
        ),
    };
    let raised = EVENTS.iter().map(|event| verdict(event.whose).0);
    let missing = MISSING_EVENTS.iter().map(|row| row.verdict);
    heading(page, "Events", raised.chain(missing));
    for event in EVENTS {
        let (verdict, why) = verdict(event.whose);
        line(
            page,
            &format!("{}: {}", event.reason, event.message),
            verdict,
            why,
        );
    }
    for row in MISSING_EVENTS {
        line(page, row.name, row.verdict, row.why);
    }
}

fn metrics(page: &mut String) {
    let missing = MISSING_METRICS.iter().flat_map(|(_, names)| names.iter());
    let verdicts = SAME_METRICS.iter().map(|_| ParityVerdict::Same);
    heading(
        page,
        "Metrics",
        verdicts.chain(missing.map(|_| ParityVerdict::NotYet)),
    );
    for name in SAME_METRICS {
        line(page, &format!("`{name}`"), ParityVerdict::Same, "");
    }
    for (why, names) in MISSING_METRICS {
        for name in *names {
            line(page, &format!("`{name}`"), ParityVerdict::NotYet, why);
        }
    }
}
