//! CNI configuration lists: finding and reading them, and the input of each plugin.

use std::{
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value};

use super::json_file;

/// The supported versions of the specification, oldest first.
const VERSIONS: [&str; 7] = [
    "0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0",
];

/// A version of the specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version(&'static str);

impl Version {
    /// The first version with CHECK, and with `prevResult` for DEL.
    pub(crate) const WITH_CHECK: Self = Self("0.4.0");
    /// The first version with GC and STATUS.
    pub(crate) const WITH_STATUS: Self = Self("1.1.0");

    fn parse(text: &str) -> Option<Self> {
        VERSIONS.into_iter().find(|&known| known == text).map(Self)
    }

    pub(crate) fn as_str(self) -> &'static str {
        self.0
    }
}

/// A configuration list: plugins that are run one after the other.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ConfigList {
    pub(crate) name: String,
    pub(crate) version: Version,
    pub(crate) check: bool,
    pub(crate) collect: bool,
    pub(crate) plugins: Vec<Map<String, Value>>,
    /// The list as stored in records and the cache.
    pub(crate) raw: Value,
}

/// Why a configuration can't be used. The text continues a sentence that begins with the configuration.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// The file can't be read.
    #[error("cannot be read: {0}")]
    Read(io::Error),
    /// The file is not JSON.
    #[error("is not valid JSON: {0}")]
    Json(serde_json::Error),
    /// The file has JSON of another type.
    #[error("is not a JSON object")]
    NotAnObject,
    /// A file for a single plugin has a list.
    #[error("has a list of plugins: its name must end with .conflist")]
    ListInConf,
    /// The network's name breaks the rule of the specification.
    #[error(
        "has the invalid name {0:?}: use letters, digits, '_', '.' and '-', a letter or digit first"
    )]
    Name(String),
    /// There is no list.
    #[error("has no list of plugins")]
    NoPluginList,
    /// The list is empty.
    #[error("has no plugins")]
    NoPlugins,
    /// A plugin has no type, or one that is no file name.
    #[error("has a plugin without a valid type: {0}")]
    PluginType(String),
    /// No version of the file is supported.
    #[error("has the unsupported cniVersion {0}; supported are {versions}", versions = VERSIONS.join(", "))]
    Version(String),
    /// A file of the directory for the network's plugins can't be used.
    #[error("has the plugin {}: {reason}", path.display())]
    Plugin {
        /// The file.
        path: PathBuf,
        /// The error.
        reason: String,
    },
}

/// The content of the configuration directory.
#[derive(Debug)]
pub(crate) enum ConfigDir {
    /// No configuration at all.
    None,
    /// Only invalid configurations; the error of the first one.
    Broken(String),
    /// The first valid one by file name.
    List(ConfigList),
}

impl ConfigDir {
    /// Reads the directory. A missing directory has no configuration.
    pub(crate) fn read(dir: &Path) -> Self {
        let files = match files(dir) {
            Ok(files) => files,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Self::None,
            Err(error) => {
                return Self::Broken(format!(
                    "cannot read the CNI configuration directory {}: {error}",
                    dir.display()
                ));
            }
        };
        let mut wrong: Option<String> = None;
        for file in files {
            match ConfigList::read(&file) {
                Ok(list) => return Self::List(list),
                Err(why) => {
                    wrong.get_or_insert_with(|| {
                        format!("the CNI configuration {} {why}", file.display())
                    });
                }
            }
        }
        wrong.map_or(Self::None, Self::Broken)
    }
}

/// Configuration files of a directory, by name.
fn files(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let extension = path.extension().and_then(|extension| extension.to_str());
        if matches!(extension, Some("conf" | "conflist" | "json")) && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

impl ConfigList {
    fn read(file: &Path) -> Result<Self, ConfigError> {
        let text = json_file::read(file).map_err(ConfigError::Read)?;
        let value: Value = serde_json::from_slice(&text).map_err(ConfigError::Json)?;
        let Value::Object(mut object) = value else {
            return Err(ConfigError::NotAnObject);
        };
        let is_list = file
            .extension()
            .is_some_and(|extension| extension == "conflist");
        if !is_list {
            if object.contains_key("plugins") {
                return Err(ConfigError::ListInConf);
            }
            let mut list = Map::new();
            for key in ["name", "cniVersion"] {
                if let Some(value) = object.get(key) {
                    list.insert(key.to_owned(), value.clone());
                }
            }
            list.insert(
                "plugins".to_owned(),
                Value::Array(vec![Value::Object(object)]),
            );
            return Self::from_value(Value::Object(list));
        }
        load_directory(file, &mut object)?;
        Self::from_value(Value::Object(object))
    }

    /// Parses a list, from a file or a record.
    pub(crate) fn from_value(raw: Value) -> Result<Self, ConfigError> {
        let name = raw["name"].as_str().unwrap_or_default().to_owned();
        let fits = name
            .bytes()
            .next()
            .is_some_and(|byte| byte.is_ascii_alphanumeric())
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte));
        if !fits {
            return Err(ConfigError::Name(name));
        }
        let version = version(&raw)?;
        let Some(plugins) = raw["plugins"].as_array() else {
            return Err(ConfigError::NoPluginList);
        };
        let plugins: Vec<Map<String, Value>> = plugins
            .iter()
            .map(|plugin| match plugin {
                Value::Object(plugin) if plugin.get("type").is_some_and(is_type) => {
                    Ok(plugin.clone())
                }
                other => Err(ConfigError::PluginType(brief(other))),
            })
            .collect::<Result<_, ConfigError>>()?;
        if plugins.is_empty() {
            return Err(ConfigError::NoPlugins);
        }
        let flag = |key: &str| match &raw[key] {
            Value::Bool(value) => *value,
            Value::String(text) => text.eq_ignore_ascii_case("true"),
            _ => false,
        };
        Ok(Self {
            name,
            version,
            check: !flag("disableCheck"),
            collect: !flag("disableGC"),
            plugins,
            raw,
        })
    }

    /// The standard input of a plugin.
    pub(crate) fn input(
        &self,
        plugin: &Map<String, Value>,
        capabilities: &Map<String, Value>,
        previous: Option<&Value>,
        extra: &Map<String, Value>,
    ) -> Value {
        let mut input = plugin.clone();
        input.insert("name".to_owned(), self.name.clone().into());
        input.insert("cniVersion".to_owned(), self.version.as_str().into());
        let mut runtime = Map::new();
        for (name, value) in capabilities {
            if declares(plugin, name) {
                runtime.insert(name.clone(), value.clone());
            }
        }
        if !runtime.is_empty() {
            input.insert("runtimeConfig".to_owned(), Value::Object(runtime));
        }
        if let Some(previous) = previous {
            input.insert("prevResult".to_owned(), previous.clone());
        }
        input.extend(extra.clone());
        Value::Object(input)
    }

    /// Whether some plugin declares a capability.
    pub(crate) fn declares(&self, capability: &str) -> bool {
        self.plugins
            .iter()
            .any(|plugin| declares(plugin, capability))
    }
}

/// The name of a plugin's program.
pub(crate) fn kind(plugin: &Map<String, Value>) -> &str {
    plugin
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn declares(plugin: &Map<String, Value>, capability: &str) -> bool {
    plugin
        .get("capabilities")
        .and_then(|all| all.get(capability))
        .and_then(Value::as_bool)
        .unwrap_or(false)
}

/// A type is a file name, never a path.
fn is_type(value: &Value) -> bool {
    value
        .as_str()
        .is_some_and(|kind| !kind.is_empty() && !kind.contains('/') && kind != "." && kind != "..")
}

fn version(raw: &Value) -> Result<Version, ConfigError> {
    let offered: Vec<&str> = match raw["cniVersions"].as_array() {
        Some(versions) => versions.iter().filter_map(Value::as_str).collect(),
        None => Vec::new(),
    };
    // 0.1.0 is the default of the specification.
    let single = raw["cniVersion"].as_str().unwrap_or("0.1.0");
    offered
        .iter()
        .chain([&single])
        .filter_map(|text| Version::parse(text))
        .max()
        .ok_or_else(|| ConfigError::Version(single.to_owned()))
}

/// Appends the plugins of the subdirectory with the network's name (libcni 1.3 and later).
fn load_directory(file: &Path, object: &mut Map<String, Value>) -> Result<(), ConfigError> {
    let inline_only = object
        .get("loadOnlyInlinedPlugins")
        .and_then(Value::as_bool)
        .unwrap_or(false);
    let (Some(dir), Some(name)) = (file.parent(), object.get("name").and_then(Value::as_str))
    else {
        return Ok(());
    };
    if inline_only || name.contains('/') || name.starts_with('.') {
        return Ok(());
    }
    let mut more = Vec::new();
    for path in files(&dir.join(name)).unwrap_or_default() {
        if path.extension().is_none_or(|extension| extension != "conf") {
            continue;
        }
        let read = json_file::read(&path)
            .map_err(|error| error.to_string())
            .and_then(|text| {
                serde_json::from_slice::<Value>(&text).map_err(|error| error.to_string())
            });
        more.push(read.map_err(|reason| ConfigError::Plugin { path, reason })?);
    }
    if more.is_empty() {
        return Ok(());
    }
    match object
        .entry("plugins")
        .or_insert_with(|| Value::Array(Vec::new()))
    {
        Value::Array(plugins) => plugins.extend(more),
        _ => return Err(ConfigError::NoPluginList),
    }
    Ok(())
}

/// The beginning of a value, for messages.
fn brief(value: &Value) -> String {
    let mut text = String::new();
    let _ = write!(text, "{value}");
    if let Some((end, _)) = text.char_indices().nth(80) {
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests;
