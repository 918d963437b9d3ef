//! Nothing that the kubelet does by default is missing without a warning.

use super::{GAPS, IDLE};
use crate::field::each_leaf;
use crate::fields::KubeletConfiguration;
use crate::flags::{Role, all_flags};
use crate::gates::{Gate, GateOwner};
use rubelet_base::parity::ParityVerdict;
use serde_json::Value;

fn is_warned_of(name: &str) -> bool {
    let gaps = GAPS.iter();
    let mut names = gaps.flat_map(|gap| gap.fields.iter().chain(gap.gates));
    names.any(|known| *known == name) || IDLE.iter().any(|(idle, _)| *idle == name)
}

/// Whether a default disables the behaviour in the kubelet.
fn is_off(default: &Value) -> bool {
    match default {
        Value::Null | Value::Bool(false) => true,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => matches!(text.as_str(), "" | "none" | "None" | "0" | "0s"),
        Value::Array(items) => items.is_empty(),
        Value::Object(entries) => entries.is_empty(),
        Value::Bool(true) => false,
    }
}

#[test]
fn the_start_warns_of_each_unsupported_field_with_a_default() {
    let defaults = serde_json::to_value(KubeletConfiguration::default()).unwrap();
    let mut silent = Vec::new();
    each_leaf(KubeletConfiguration::FIELDS, "", &mut |path, field| {
        let default = defaults.pointer(&format!("/{}", path.replace('.', "/")));
        let off = is_off(default.unwrap_or(&Value::Null));
        if field.effect.verdict() == ParityVerdict::NotYet && !off && !is_warned_of(path) {
            silent.push(path.to_owned());
        }
    });
    assert_eq!(silent, [""; 0], "give each a row in GAPS or IDLE");
}

#[test]
fn the_start_warns_of_each_unsupported_gate_that_is_on_by_default() {
    let gates = Gate::all().iter();
    let silent: Vec<&str> = gates
        .filter(|gate| gate.owner == GateOwner::Kubelet && gate.default)
        .filter(|gate| match gate.verdict() {
            Some((verdict, _)) => verdict == ParityVerdict::NotYet && !is_warned_of(gate.name),
            None => true,
        })
        .map(|gate| gate.name)
        .collect();
    assert_eq!(
        silent, [""; 0],
        "give each a verdict, and a row in GAPS or IDLE"
    );
}

#[test]
fn unsupported_flags_have_no_effect_by_default() {
    let silent: Vec<&str> = all_flags()
        .filter(|flag| match flag.role {
            Role::Own(effect) => effect.verdict() == ParityVerdict::NotYet,
            Role::Field(_) | Role::Ignored(_) => false,
        })
        .filter(|flag| !matches!(flag.default, "" | "0s" | "false" | "-1"))
        .map(|flag| flag.name)
        .collect();
    assert_eq!(silent, [""; 0]);
}

#[test]
fn gaps_name_fields_and_gates_that_exist() {
    let mut paths = Vec::new();
    each_leaf(KubeletConfiguration::FIELDS, "", &mut |path, _| {
        paths.push(path.to_owned());
    });
    let exists = |name: &str| paths.iter().any(|path| path == name) || Gate::find(name).is_some();
    let gaps = GAPS
        .iter()
        .flat_map(|gap| gap.fields.iter().chain(gap.gates));
    for name in gaps.chain(IDLE.iter().map(|(name, _)| name)) {
        assert!(exists(name), "{name}");
    }
}
