//! Resolves the file, the drop-ins and the flags into one configuration.

use crate::defaults;
use crate::error::ConfigError;
use crate::field::{Field, Kind};
use crate::fields::{API_VERSION, KIND, KubeletConfiguration};
use crate::flags::{Flags, Role};
use crate::gaps::open_gaps;
use crate::gates::FeatureGates;
use crate::layer::{Layer, LayerKind, RUBELET};
use crate::merge::{assign, merge};
use crate::origins::{Origin, Origins};
use crate::rubelet_options::RubeletOptions;
use crate::validation::{Check, Violation, validate};
use crate::warnings::{Warning, legacy_defaults_warning, warnings};
use rubelet_yaml::join_path;
use serde_json::{Map, Value, json};

/// All inputs of a configuration. The caller reads the files.
#[derive(Clone, Copy, Debug)]
pub struct Sources<'a> {
    /// Path and text of the file given with `--config`.
    pub file: Option<(&'a str, &'a str)>,
    /// Path and text of each drop-in, in the order of [`drop_in_order`].
    pub drop_ins: &'a [(String, String)],
    /// The command line.
    pub flags: &'a Flags,
}

/// A valid configuration, and the origins of its values.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The kubelet's options.
    pub config: KubeletConfiguration,
    /// Rubelet's own options.
    pub rubelet: RubeletOptions,
    /// The feature gates.
    pub gates: FeatureGates,
    /// The origin of each value.
    pub origins: Origins,
    /// What was given and has no effect. The agent prints each when it starts.
    pub warnings: Vec<Warning>,
    /// What the kubelet would do with this configuration and Rubelet does not support yet.
    pub gaps: Vec<&'static str>,
    /// Whether the machine is a node of a cluster.
    pub joined: bool,
}

/// One value of a configuration, as `config show --origin` lists it.
#[derive(Clone, Debug, PartialEq)]
pub struct Leaf {
    /// Path of the field.
    pub path: String,
    /// Its value, in the form it has in a file.
    pub value: Value,
    /// Its origin.
    pub origin: Origin,
}

/// Sorts the paths of drop-ins as they take effect, and omits those that don't end in `.conf`.
/// Paths are compared by component, so that the files of a directory stay together.
#[must_use]
pub fn drop_in_order(mut paths: Vec<String>) -> Vec<String> {
    paths.retain(|path| path.ends_with(".conf"));
    paths.sort_by(|a, b| a.split('/').cmp(b.split('/')));
    paths
}

/// Resolves a configuration: defaults, then the file, then each drop-in, then the flags.
///
/// # Errors
/// The first error, with its file, line and field, or its flag.
pub fn resolve(sources: Sources<'_>) -> Result<Resolved, ConfigError> {
    let mut layers = Vec::new();
    if let Some((path, text)) = sources.file {
        layers.push(Layer::read(LayerKind::File, path, text)?);
    }
    for (path, text) in sources.drop_ins {
        layers.push(Layer::read(LayerKind::DropIn, path, text)?);
    }
    let mut merged = merge_all(&layers, sources);
    let rubelet = merged.values.remove(RUBELET).unwrap_or_else(|| json!({}));
    let wrong = |error: &serde_json::Error| ConfigError {
        origin: Origin::Default,
        position: None,
        field: None,
        message: error.to_string(),
        snippet: None,
    };
    let rubelet: RubeletOptions = serde_json::from_value(rubelet).map_err(|error| wrong(&error))?;
    let mut config: KubeletConfiguration =
        serde_json::from_value(Value::Object(merged.values)).map_err(|error| wrong(&error))?;
    defaults::normalise(&mut config);
    let origins = merged.origins;
    let gates = FeatureGates::from_map(&config.feature_gates).map_err(|(name, error)| {
        let fields = vec![join_path("featureGates", &name)];
        locate_violation(
            Violation {
                fields,
                message: error.to_string(),
            },
            &origins,
            &layers,
        )
    })?;
    let given = |path: &str| origins.within(path).is_some();
    let check = Check {
        config: &config,
        rubelet: &rubelet,
        gates: &gates,
        given: &given,
    };
    validate(&check).map_err(|invalid| locate_violation(invalid, &origins, &layers))?;
    let mut warnings = warnings(&config, &gates, &origins, sources.flags, is_joined(sources));
    if has_legacy_defaults(sources) {
        warnings.extend(legacy_defaults_warning(&to_json(&config), &origins));
    }
    Ok(Resolved {
        gaps: open_gaps(),
        config,
        rubelet,
        gates,
        origins,
        warnings,
        joined: is_joined(sources),
    })
}

struct Merged {
    values: Map<String, Value>,
    origins: Origins,
}

fn is_joined(sources: Sources<'_>) -> bool {
    sources.flags.kubeconfig().is_some()
}

fn has_legacy_defaults(sources: Sources<'_>) -> bool {
    is_joined(sources) && sources.file.is_none()
}

fn merge_all(layers: &[Layer], sources: Sources<'_>) -> Merged {
    let mut values = Map::new();
    let mut origins = Origins::default();
    if has_legacy_defaults(sources) {
        for (path, value) in defaults::legacy_defaults() {
            assign(&mut values, path, value);
        }
    }
    for (index, layer) in layers.iter().enumerate() {
        if index == usize::from(sources.file.is_some()) {
            defaults::add_defaults_before_drop_ins(&mut values);
        }
        let origin = |path: &str| layer.origin(path);
        merge(&mut values, &layer.fields(), "", &mut origins, &origin);
    }
    defaults::drop_zeros(&mut values, KubeletConfiguration::FIELDS, "", &mut origins);
    if let Some(Value::Object(own)) = values.get_mut(RUBELET) {
        defaults::drop_zeros(own, RubeletOptions::FIELDS, RUBELET, &mut origins);
    }
    defaults::add_derived_defaults(&mut values);
    for (flag, value) in sources.flags.iter() {
        let origin = Origin::Flag { name: flag.name };
        match flag.role {
            Role::Field("featureGates") => {
                let patch = Map::from_iter([("featureGates".to_owned(), value.clone())]);
                merge(&mut values, &patch, "", &mut origins, &|_| origin.clone());
            }
            Role::Field(path) => {
                assign(&mut values, path, value.clone());
                origins.set(path, origin);
            }
            Role::Own(_) | Role::Ignored(_) => {}
        }
    }
    if sources.flags.seccomp_default() {
        // The flag can enable what the file disables, but not the other way round.
        assign(&mut values, "seccompDefault", Value::Bool(true));
        origins.set(
            "seccompDefault",
            Origin::Flag {
                name: "seccomp-default",
            },
        );
    }
    Merged { values, origins }
}

/// Turns a violation into an error about the field that was given.
fn locate_violation(invalid: Violation, origins: &Origins, layers: &[Layer]) -> ConfigError {
    let Violation { fields, message } = invalid;
    let given = fields
        .iter()
        .find(|field| *origins.of(field) != Origin::Default);
    let below = fields.iter().find_map(|field| origins.within(field));
    let (path, origin) = match (given, below) {
        (Some(field), _) => (field.as_str(), origins.of(field)),
        (None, Some((path, origin))) => (path, origin),
        (None, None) => (fields.first().map_or("", String::as_str), &Origin::Default),
    };
    match layers.iter().find(|layer| layer.is(origin)) {
        Some(layer) => layer.error_at(path, message),
        None => ConfigError {
            origin: origin.clone(),
            position: None,
            field: Some(path.to_owned()),
            message,
            snippet: None,
        },
    }
}

impl Resolved {
    /// What a kubelet would do with this configuration and Rubelet does not support yet, in one line.
    /// `None` if there is nothing.
    #[must_use]
    pub fn not_yet(&self) -> Option<String> {
        (!self.gaps.is_empty()).then(|| self.gaps.join("; "))
    }

    /// The whole configuration in the form of a file, Rubelet's section included. Parsed again, it
    /// yields the same configuration.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut value = self.config.to_value();
        if let Value::Object(fields) = &mut value {
            fields.insert(RUBELET.to_owned(), to_json(&self.rubelet));
        }
        value
    }

    /// Every value with its origin, in the order of the table of fields. Entries of mappings are
    /// listed individually, because each may have its own origin.
    #[must_use]
    pub fn leaves(&self) -> Vec<Leaf> {
        let mut leaves = Vec::new();
        let config = to_json(&self.config);
        self.collect(KubeletConfiguration::FIELDS, &config, "", &mut leaves);
        let rubelet = to_json(&self.rubelet);
        self.collect(RubeletOptions::FIELDS, &rubelet, RUBELET, &mut leaves);
        leaves
    }

    fn collect(&self, fields: &[Field], values: &Value, prefix: &str, leaves: &mut Vec<Leaf>) {
        for field in fields {
            let Some(value) = values.get(field.name).filter(|value| !value.is_null()) else {
                continue;
            };
            let path = join_path(prefix, field.name);
            match (field.kind, value) {
                (Kind::Section(inner), value) => self.collect(inner, value, &path, leaves),
                (_, Value::Object(entries)) if !entries.is_empty() => {
                    for (key, value) in entries {
                        leaves.push(self.leaf(join_path(&path, key), value));
                    }
                }
                (_, value) => leaves.push(self.leaf(path, value)),
            }
        }
    }

    fn leaf(&self, path: String, value: &Value) -> Leaf {
        let origin = self.origins.of(&path).clone();
        Leaf {
            path,
            value: value.clone(),
            origin,
        }
    }
}

impl KubeletConfiguration {
    /// The configuration in the form of a file, as `/configz` shows it. Fields that are not given
    /// and have no default are omitted.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut value = to_json(self);
        remove_empty(&mut value, &to_json(&Self::default()));
        if let Value::Object(fields) = &mut value {
            fields.insert("apiVersion".to_owned(), API_VERSION.into());
            fields.insert("kind".to_owned(), KIND.into());
        }
        value
    }
}

pub(crate) fn to_json<T: serde::Serialize>(value: &T) -> Value {
    serde_json::to_value(value).expect("fields are strings, numbers, lists and mappings of these")
}

/// Removes nulls, and empty values whose default is empty too.
fn remove_empty(value: &mut Value, default: &Value) {
    let Value::Object(fields) = value else { return };
    fields.retain(|name, value| {
        let default = default.get(name).unwrap_or(&Value::Null);
        remove_empty(value, default);
        let empty = match value {
            Value::Null => return false,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            Value::Bool(_) | Value::Number(_) => false,
        };
        !(empty && has_only_empty_values(default))
    });
}

/// Whether a default contains only empty values.
fn has_only_empty_values(default: &Value) -> bool {
    match default {
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(has_only_empty_values),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
