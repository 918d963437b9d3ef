//! `docs/configuration.md`.

use super::{cell, meaning, shown};
use crate::field::{Field, Kind, Zero, each_leaf};
use crate::fields::{API_VERSION, KIND, KubeletConfiguration};
use crate::flags::{Role, all_flags};
use crate::gaps::{GAPS, needs, open_gaps};
use crate::gates::{Gate, GateEffect, GateOwner, Stage};
use crate::rubelet_options::RubeletOptions;
use rubelet_base::parity::count_verdicts;
use serde_json::Value;
use std::fmt::Write as _;

/// The key of Rubelet's own options.
const OWN: &str = "rubelet";

/// The text of `docs/configuration.md`.
#[must_use]
pub fn configuration_markdown() -> String {
    let mut page = format!(
        "# Configuration\n\
         \n\
         <!-- Generated from the tables in crates/config. Change those, and run its tests. -->\n\
         \n\
         `rubelet run --config FILE` reads a `{KIND}` of `{API_VERSION}`, as YAML or JSON:\n\
         \n\
         ```yaml\n\
         apiVersion: {API_VERSION}\n\
         kind: {KIND}\n\
         staticPodPath: /etc/kubernetes/manifests\n\
         rubelet:\n\
         \x20 socketGroup: adm\n\
         ```\n\
         \n\
         `--config-dir DIRECTORY` adds drop-ins: every file below that directory whose name ends in `.conf`, \
         in the order of the names. Each is a `{KIND}` too, and is merged into the previous ones: \
         mappings are merged by key, everything else is replaced, and `null` restores the default. Flags \
         are applied last. `rubelet config show --origin` shows the origin of each value.\n\
         \n\
         Without `--config` the kubelet has legacy defaults: `authentication.anonymous.enabled: \
         true`, `authentication.webhook.enabled: false`, `authorization.mode: AlwaysAllow` and \
         `readOnlyPort: 10255`. On a node of a cluster (`--kubeconfig`) Rubelet has them too, and warns. Without \
         a cluster it has the defaults below, and its HTTPS server runs only if `enableServer: true` or \
         `port` is given.\n\
         \n\
         An unknown field, a field given twice or an invalid value is an error that names file, line and \
         field, and the agent does not start.\n\
         \n\
         The column *Verdict* compares Rubelet with the kubelet of Kubernetes 1.36:\n\
         \n\
         - **same**: has the same effect as in the kubelet. **same (cluster)**: on a node of a cluster; without \
         a cluster it is parsed and validated only.\n\
         - **better**: has that effect and more, as described in *Meaning*.\n\
         - **differs**: has a different effect on purpose, as described in *Meaning*. Setting it causes a \
         warning at the start.\n\
         - **not yet**: is parsed and validated, and has no effect yet, or, **in part**, the one described in \
         *Meaning*. Setting it to a value other than its default causes a warning at the start that names \
         the file and the line. What the kubelet does with the default is in the next list.\n\
         \n\
         In the column *Default*, † marks a field whose zero value (`0`, `0s` or the empty string) counts \
         as not given.\n\
         \n"
    );
    counts(&mut page);
    missing(&mut page);
    page.push_str("## Rubelet's own options\n\nThese are under the key `rubelet`.\n\n");
    let rubelet = to_value(&RubeletOptions::default());
    table(&mut page, RubeletOptions::FIELDS, OWN, &rubelet);
    page.push_str("## The kubelet's options\n\n");
    let config = to_value(&KubeletConfiguration::default());
    table(&mut page, KubeletConfiguration::FIELDS, "", &config);
    lists(&mut page);
    gates(&mut page);
    page
}

fn to_value<T: serde::Serialize>(value: &T) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

fn counts(page: &mut String) {
    let mut verdicts = Vec::new();
    each_leaf(KubeletConfiguration::FIELDS, "", &mut |_, field| {
        verdicts.push(field.effect.verdict());
    });
    let total = verdicts.len();
    let counts = count_verdicts(verdicts);
    writeln!(page, "{total} fields: {counts}.\n").expect("a String takes any text");
}

/// What the kubelet does with the defaults and Rubelet does not.
fn missing(page: &mut String) {
    page.push_str(
        "## Not supported yet, though the kubelet does it by default\n\n\
         The agent warns of these in one line when it starts, except for those that its configuration disables; \
         so do `rubelet config validate` and `rubelet status`.\n\n\
         | Not supported yet | Fields | Feature gates |\n|---|---|---|\n",
    );
    let open = open_gaps();
    let names = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        names.join(", ")
    };
    for gap in GAPS.iter().filter(|gap| open.contains(&gap.what)) {
        let (fields, gates) = (names(gap.fields), names(gap.gates));
        writeln!(page, "| {} | {fields} | {gates} |", gap.what).expect("a String takes any text");
    }
    page.push('\n');
}

fn table(page: &mut String, fields: &'static [Field], prefix: &str, defaults: &Value) {
    // The kubelet has nothing to compare Rubelet's own options with.
    let is_own = prefix == OWN;
    page.push_str(if is_own {
        "| Field | Type | Default | Flag | Meaning |\n|---|---|---|---|---|\n"
    } else {
        "| Field | Type | Default | Verdict | Flag | Meaning |\n|---|---|---|---|---|---|\n"
    });
    each_leaf(fields, prefix, &mut |path, field| {
        let inside = path.strip_prefix("rubelet.").unwrap_or(path);
        let pointer = format!("/{}", inside.replace('.', "/"));
        let default = shown(defaults.pointer(&pointer).unwrap_or(&Value::Null));
        let is_zero = matches!(default.as_str(), "" | "`0`" | "`0s`");
        let marked = field.zero == Zero::Unset && has_zero(field.kind) && !is_zero;
        let mark = if marked { " †" } else { "" };
        let flag = all_flags()
            .find(|flag| matches!(flag.role, Role::Field(known) if known == path))
            .map_or(String::new(), |flag| format!("`--{}`", flag.name));
        let verdict = if is_own {
            String::new()
        } else {
            format!(" {} |", field.effect.name())
        };
        writeln!(
            page,
            "| `{path}` | {} | {default}{mark} |{verdict} {flag} | {} |",
            type_name(field.kind),
            cell(&format!("{}{}", meaning(field), needed(path))),
        )
        .expect("a String takes any text");
    });
    page.push('\n');
}

/// What a field or gate needs that has no effect by default, as a sentence to append to its
/// meaning.
fn needed(name: &str) -> String {
    needs(name).map_or(String::new(), |needs| {
        format!(" No effect without {needs}.")
    })
}

fn has_zero(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Integer | Kind::Float | Kind::Text | Kind::Duration | Kind::Quantity
    )
}

fn type_name(kind: Kind) -> String {
    let name = match kind {
        Kind::Bool => "boolean",
        Kind::Integer => "integer",
        Kind::Float => "number",
        Kind::Text => "string",
        Kind::Duration => "duration",
        Kind::Quantity => "quantity",
        Kind::TextList => "list of strings",
        Kind::IntegerList => "list of integers",
        Kind::TextMap => "mapping of strings",
        Kind::BoolMap => "mapping of booleans",
        Kind::ListMap => "mapping of lists of strings",
        Kind::ObjectList(keys) => return format!("list of `{{{}}}`", keys.join(", ")),
        Kind::Section(_) => "mapping",
    };
    name.to_owned()
}

fn lists(page: &mut String) {
    page.push_str(
        "Durations are strings in Go's notation: `300ms`, `10s`, `1h30m`. Quantities are numbers with \
         or without a unit: `500m`, `10Mi`, `1G`.\n\n",
    );
}

fn gates(page: &mut String) {
    page.push_str(
        "## Feature gates\n\n\
         `featureGates` accepts all names of Kubernetes 1.36, so that one list serves all components of a \
         cluster; an unknown name is an error, and so is another value for a gate that is locked. `AllAlpha` \
         and `AllBeta` set a whole stage. These are the kubelet's own gates. *Setting it*: *works* means that \
         the gate enables or disables a behaviour, *checks* that it decides which configurations are valid; \
         all others have no effect yet, and setting one to a value other than its default causes a warning. \
         *Verdict* compares the feature of each gate that is enabled by default with the kubelet's.\n\n",
    );
    let on = Gate::all().iter().filter_map(Gate::verdict);
    let counts = count_verdicts(on.map(|(verdict, _)| verdict));
    writeln!(page, "Enabled by default: {counts}.\n").expect("a String takes any text");
    page.push_str(
        "| Gate | Stage | Default | Setting it | Verdict | Why |\n|---|---|---|---|---|---|\n",
    );
    for gate in Gate::all()
        .iter()
        .filter(|gate| gate.owner == GateOwner::Kubelet)
    {
        let stage = match gate.stage {
            Stage::Alpha => "alpha",
            Stage::Beta => "beta",
            Stage::Stable => "stable",
            Stage::Deprecated => "deprecated",
        };
        let locked = if gate.locked { ", locked" } else { "" };
        let effect = match (gate.locked, gate.effect()) {
            (true, _) => "",
            (false, GateEffect::Switches) => "works",
            (false, GateEffect::Checks) => "checks",
            (false, GateEffect::Nothing) => "not yet",
        };
        let (verdict, why) = gate
            .verdict()
            .map_or(("", ""), |(verdict, why)| (verdict.name(), why));
        let why = match why {
            "" => needed(gate.name).trim().to_owned(),
            why => format!("{why}{}", needed(gate.name)),
        };
        writeln!(
            page,
            "| `{}` | {stage} | {}{locked} | {effect} | {verdict} | {} |",
            gate.name,
            gate.default,
            cell(&why)
        )
        .expect("a String takes any text");
    }
}
