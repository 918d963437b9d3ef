//! Warnings of settings without effect, which are not errors.

use crate::defaults::legacy_defaults;
use crate::field::{Effect, each_leaf};
use crate::fields::{API_VERSION, KubeletConfiguration};
use crate::flags::{Flags, Role};
use crate::gates::{FeatureGates, Gate, GateEffect, GateOwner};
use crate::origins::{Origin, Origins};
use rubelet_yaml::join_path;
use serde_json::Value;
use std::fmt;

/// A setting without effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Its origin.
    pub origin: Origin,
    /// Path of the field. Empty for a flag without a field.
    pub field: String,
    /// Why it has no effect.
    pub message: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Origin::File { path, line } | Origin::DropIn { path, line } => {
                write!(f, "{path}:{line}: {}: {}", self.field, self.message)
            }
            Origin::Flag { name } => write!(f, "--{name}: {}", self.message),
            Origin::Default => write!(f, "{}: {}", self.field, self.message),
        }
    }
}

pub(crate) fn warnings(
    config: &KubeletConfiguration,
    gates: &FeatureGates,
    origins: &Origins,
    flags: &Flags,
    joined: bool,
) -> Vec<Warning> {
    let mut found = Vec::new();
    fields(config, origins, joined, &mut found);
    features(config, gates, origins, &mut found);
    for (flag, _) in flags.iter() {
        let message = match flag.role {
            Role::Own(Effect::NotYet) => "has no effect yet".to_owned(),
            Role::Own(Effect::Differs(reason)) => format!("has no effect: {reason}"),
            Role::Ignored(reason) => format!("has no effect: {reason}"),
            Role::Own(_) | Role::Field(_) => continue,
        };
        let origin = Origin::Flag { name: flag.name };
        found.push(Warning {
            origin,
            field: String::new(),
            message,
        });
    }
    found
}

fn fields(
    config: &KubeletConfiguration,
    origins: &Origins,
    joined: bool,
    found: &mut Vec<Warning>,
) {
    let json = |config: &KubeletConfiguration| serde_json::to_value(config).unwrap_or_default();
    let (given, default) = (json(config), json(&KubeletConfiguration::default()));
    each_leaf(KubeletConfiguration::FIELDS, "", &mut |path, field| {
        let message = match field.effect {
            Effect::Cluster if !joined => "has no effect without an API server".to_owned(),
            Effect::Works | Effect::Cluster | Effect::Better(_) => return,
            Effect::Differs(reason) => format!("has no effect: {reason}"),
            Effect::Partly(part) => format!("works in part: {part}"),
            Effect::NotYet => "has no effect yet".to_owned(),
        };
        if at(&given, path) == at(&default, path) {
            return;
        }
        if let Some((_, origin)) = origins.within(path) {
            let origin = origin.clone();
            found.push(Warning {
                origin,
                field: path.to_owned(),
                message,
            });
        }
    });
}

/// Warns of the legacy defaults of a kubelet without `--config`, as far as they have not been
/// overridden.
pub(crate) fn legacy_defaults_warning(config: &Value, origins: &Origins) -> Option<Warning> {
    let open: Vec<String> = legacy_defaults()
        .into_iter()
        .filter(|(path, value)| at(config, path) == value && origins.within(path).is_none())
        .map(|(path, value)| format!("{path}: {value}"))
        .collect();
    let field = open.first()?.split(':').next()?.to_owned();
    let message = format!(
        "without --config the kubelet's legacy defaults apply: {}; set --config to use those of \
         {API_VERSION}",
        open.join(", ")
    );
    Some(Warning {
        origin: Origin::Default,
        field,
        message,
    })
}

fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    path.split('.')
        .fold(value, |value, key| value.get(key).unwrap_or(&Value::Null))
}

fn features(
    config: &KubeletConfiguration,
    gates: &FeatureGates,
    origins: &Origins,
    found: &mut Vec<Warning>,
) {
    for name in config.feature_gates.keys() {
        let Some(gate) = Gate::find(name) else {
            continue;
        };
        let changed = gates.enabled(name) != gate.default;
        if changed && gate.owner == GateOwner::Kubelet && gate.effect() == GateEffect::Nothing {
            let field = join_path("featureGates", name);
            let origin = origins.of(&field).clone();
            let message = "this feature gate has no effect yet".to_owned();
            found.push(Warning {
                origin,
                field,
                message,
            });
        }
    }
}
