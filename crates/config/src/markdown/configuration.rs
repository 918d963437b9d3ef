//! `docs/configuration.md`.

use super::{cell, meaning, shown};
use crate::field::{Effect, Field, Kind, Zero, each_leaf};
use crate::fields::{API_VERSION, KIND, KubeletConfiguration};
use crate::flags::{Role, all_flags};
use crate::gates::{Gate, GateEffect, Stage, Whose};
use crate::rubelet_options::RubeletOptions;
use serde_json::Value;
use std::fmt::Write as _;

/// The text of `docs/configuration.md`.
#[must_use]
pub fn configuration_markdown() -> String {
    let mut page = format!(
        "# Configuration\n\
         \n\
         <!-- Made from the tables in crates/config. Change those, and run its tests. -->\n\
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
         `--config-dir FOLDER` adds drop-ins: every file below that folder whose name ends in `.conf`, \
         in the order of the names. Each is a `{KIND}` too, and is merged into what came before: \
         mappings by key, everything else replaces, and `null` takes a value back. Flags come last. \
         `rubelet config show --origin` says for each value where it came from.\n\
         \n\
         Without `--config` the kubelet has other defaults than with it: `authentication.anonymous.enabled: \
         true`, `authentication.webhook.enabled: false`, `authorization.mode: AlwaysAllow` and \
         `readOnlyPort: 10255`. On a node of a cluster (`--kubeconfig`) Rubelet has them too, and warns. Alone \
         on a machine it has the defaults below, and its HTTPS server runs only where `enableServer: true` or \
         `port` is given.\n\
         \n\
         An unknown field, a field given twice or a bad value is an error that names file, line and \
         field, and nothing starts.\n\
         \n\
         The column *Effect* says what a field does in Rubelet today:\n\
         \n\
         - **works**: what it does in the kubelet.\n\
         - **cluster**: does that on a node of a cluster; alone on a machine it is read and checked.\n\
         - **partly**: does a part of that, as a warning at the start says; see the column *Meaning*.\n\
         - **not yet**: is read and checked, and has no effect yet. Setting it to something other than \
         its default gives a warning at the start.\n\
         \n\
         In the column *Default*, † marks a field whose zero (`0`, `0s` or the empty string) counts as \
         not given.\n\
         \n"
    );
    counts(&mut page);
    page.push_str("## Rubelet's own options\n\nThese stand under the key `rubelet`.\n\n");
    let rubelet = to_value(&RubeletOptions::default());
    table(&mut page, RubeletOptions::FIELDS, "rubelet", &rubelet);
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
    let effects = [
        Effect::Works,
        Effect::Cluster,
        Effect::Partly(""),
        Effect::NotYet,
    ];
    let mut by_effect = effects.map(|effect| (effect.name(), 0));
    each_leaf(KubeletConfiguration::FIELDS, "", &mut |_, field| {
        for (effect, count) in &mut by_effect {
            *count += u32::from(*effect == field.effect.name());
        }
    });
    let total: u32 = by_effect.iter().map(|(_, count)| count).sum();
    let parts = by_effect.map(|(effect, count)| format!("{effect} {count}"));
    writeln!(page, "{total} fields: {}.\n", parts.join(", ")).expect("a String takes any text");
}

fn table(page: &mut String, fields: &'static [Field], prefix: &str, defaults: &Value) {
    page.push_str(
        "| Field | Type | Default | Effect | Flag | Meaning |\n|---|---|---|---|---|---|\n",
    );
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
        writeln!(
            page,
            "| `{path}` | {} | {default}{mark} | {} | {flag} | {} |",
            type_name(field.kind),
            field.effect.name(),
            cell(&meaning(field)),
        )
        .expect("a String takes any text");
    });
    page.push('\n');
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
         `featureGates` takes every name that Kubernetes 1.36 has, so that one list serves all \
         components of a cluster; an unknown name is an error, and so is another value for a gate that \
         is fixed. `AllAlpha` and `AllBeta` set a whole stage. These are the kubelet's own; *works* means \
         that the gate switches something on or off, *checks* that it decides which configurations are \
         valid. All others have no effect yet, and setting one to something other than its default gives a \
         warning.\n\n\
         | Gate | Stage | Default | Effect |\n|---|---|---|---|\n",
    );
    for gate in Gate::all()
        .iter()
        .filter(|gate| gate.whose == Whose::Kubelet)
    {
        let stage = match gate.stage {
            Stage::Alpha => "alpha",
            Stage::Beta => "beta",
            Stage::Stable => "stable",
            Stage::Deprecated => "deprecated",
        };
        let fixed = if gate.locked { ", fixed" } else { "" };
        let effect = match (gate.locked, gate.effect()) {
            (true, _) => "",
            (false, GateEffect::Switches) => "works",
            (false, GateEffect::Checks) => "checks",
            (false, GateEffect::Nothing) => "not yet",
        };
        writeln!(
            page,
            "| `{}` | {stage} | {}{fixed} | {effect} |",
            gate.name, gate.default
        )
        .expect("a String takes any text");
    }
}
