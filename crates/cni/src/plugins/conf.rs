//! CNI configurations: finding and reading them, and what each plugin is given.

use std::{
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value};

use super::documents;

/// The versions of the specification that are spoken, oldest first.
const VERSIONS: [&str; 7] = [
    "0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0",
];

/// A version of the specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version(&'static str);

impl Version {
    /// Where plugins get the result of an earlier verb, and there is CHECK.
    pub(crate) const WITH_CHECK: Self = Self("0.4.0");
    /// Where there are GC and STATUS.
    pub(crate) const WITH_STATUS: Self = Self("1.1.0");

    fn parse(text: &str) -> Option<Self> {
        VERSIONS.into_iter().find(|&known| known == text).map(Self)
    }

    pub(crate) fn as_str(self) -> &'static str {
        self.0
    }
}

/// A list of plugins that are run one after the other.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ConfigList {
    pub(crate) name: String,
    pub(crate) version: Version,
    pub(crate) check: bool,
    pub(crate) collect: bool,
    pub(crate) plugins: Vec<Map<String, Value>>,
    /// The list as it is written in records and caches.
    pub(crate) raw: Value,
}

/// What there is in the folder of configurations.
#[derive(Debug)]
pub(crate) enum Configured {
    /// No configuration at all.
    None,
    /// Configurations, none of which can be used; why.
    Broken(String),
    /// The first one, by name, that can be used.
    List(ConfigList),
}

impl Configured {
    /// Looks into the folder. A missing folder has no configuration.
    pub(crate) fn look(dir: &Path) -> Self {
        let files = match files(dir) {
            Ok(files) => files,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Self::None,
            Err(error) => {
                return Self::Broken(format!(
                    "cannot look for CNI configurations in {}: {error}",
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

/// Configuration files of a folder, by name.
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
    fn read(file: &Path) -> Result<Self, String> {
        let text = documents::read(file).map_err(|error| format!("cannot be read: {error}"))?;
        let value: Value = serde_json::from_slice(&text)
            .map_err(|error| format!("is not JSON as it should be: {error}"))?;
        let Value::Object(mut object) = value else {
            return Err("is not a JSON object".to_owned());
        };
        let is_list = file
            .extension()
            .is_some_and(|extension| extension == "conflist");
        if !is_list {
            if object.contains_key("plugins") {
                return Err("has a list of plugins: its name has to end with .conflist".to_owned());
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
        load_folder(file, &mut object)?;
        Self::from_value(Value::Object(object))
    }

    /// Takes a list apart; also one from a record.
    pub(crate) fn from_value(raw: Value) -> Result<Self, String> {
        let name = raw["name"].as_str().unwrap_or_default().to_owned();
        let fits = name
            .bytes()
            .next()
            .is_some_and(|byte| byte.is_ascii_alphanumeric())
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte));
        if !fits {
            return Err(format!(
                "has the name {name:?}, which takes letters, digits, '_', '.' and '-'"
            ));
        }
        let version = version(&raw)?;
        let Some(plugins) = raw["plugins"].as_array() else {
            return Err("has no list of plugins".to_owned());
        };
        let plugins: Vec<Map<String, Value>> = plugins
            .iter()
            .map(|plugin| match plugin {
                Value::Object(plugin) if plugin.get("type").is_some_and(is_type) => {
                    Ok(plugin.clone())
                }
                other => Err(format!(
                    "has a plugin without a usable type: {}",
                    brief(other)
                )),
            })
            .collect::<Result<_, String>>()?;
        if plugins.is_empty() {
            return Err("has no plugins".to_owned());
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

    /// What a plugin is given on its standard input.
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

/// A type is a file's name, never a path.
fn is_type(value: &Value) -> bool {
    value
        .as_str()
        .is_some_and(|kind| !kind.is_empty() && !kind.contains('/') && kind != "." && kind != "..")
}

fn version(raw: &Value) -> Result<Version, String> {
    let offered: Vec<&str> = match raw["cniVersions"].as_array() {
        Some(versions) => versions.iter().filter_map(Value::as_str).collect(),
        None => Vec::new(),
    };
    // Without a version it is of the time before there were versions.
    let single = raw["cniVersion"].as_str().unwrap_or("0.1.0");
    offered
        .iter()
        .chain([&single])
        .filter_map(|text| Version::parse(text))
        .max()
        .ok_or_else(|| {
            format!(
                "wants version {single} of CNI; known are {}",
                VERSIONS.join(", ")
            )
        })
}

/// Appends the plugins of the folder beside the file that has the network's name (libcni from 1.3).
fn load_folder(file: &Path, object: &mut Map<String, Value>) -> Result<(), String> {
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
        let read = documents::read(&path)
            .map_err(|error| error.to_string())
            .and_then(|text| {
                serde_json::from_slice::<Value>(&text).map_err(|error| error.to_string())
            });
        more.push(read.map_err(|why| format!("has the plugin {}: {why}", path.display()))?);
    }
    if more.is_empty() {
        return Ok(());
    }
    match object
        .entry("plugins")
        .or_insert_with(|| Value::Array(Vec::new()))
    {
        Value::Array(plugins) => plugins.extend(more),
        _ => return Err("has no list of plugins".to_owned()),
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
mod tests {
    use super::*;

    fn look(files: &[(&str, &str)]) -> Configured {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Configured::look(dir.path())
    }

    fn list(files: &[(&str, &str)]) -> ConfigList {
        match look(files) {
            Configured::List(list) => list,
            other => panic!("{other:?}"),
        }
    }

    fn broken(text: &str) -> String {
        match look(&[("10-x.conflist", text)]) {
            Configured::Broken(why) => why,
            other => panic!("{other:?}"),
        }
    }

    const NET: &str = r#"{"cniVersion":"1.0.0","name":"net","plugins":[{"type":"bridge"}]}"#;

    #[test]
    fn the_first_by_name_that_can_be_used_counts() {
        let second = NET.replace("\"net\"", "\"second\"");
        let found = list(&[
            ("20-b.conflist", &second),
            ("10-a.conflist", NET),
            ("05.txt", "x"),
        ]);
        assert_eq!(found.name, "net");
        let found = list(&[("10-a.conflist", "{"), ("20-b.conflist", &second)]);
        assert_eq!(found.name, "second");
        assert!(matches!(look(&[("README", "")]), Configured::None));
        assert!(matches!(
            Configured::look(Path::new("/rubelet-tnone")),
            Configured::None
        ));
    }

    #[test]
    fn a_single_plugin_becomes_a_list() {
        let found = list(&[(
            "10-a.conf",
            r#"{"cniVersion":"0.3.1","name":"one","type":"ptp","mtu":1400}"#,
        )]);
        assert_eq!(
            (found.name.as_str(), found.version.as_str()),
            ("one", "0.3.1")
        );
        assert_eq!(kind(&found.plugins[0]), "ptp");
        assert_eq!(found.plugins[0]["mtu"], 1400);
        assert_eq!(ConfigList::from_value(found.raw.clone()).unwrap(), found);
    }

    #[test]
    fn mistakes_are_told() {
        assert!(broken("{").contains("10-x.conflist is not JSON"));
        assert!(
            broken(r#"{"name":"a","cniVersion":"2.0.0","plugins":[{"type":"a"}]}"#)
                .contains("2.0.0")
        );
        assert!(
            broken(r#"{"name":"a/b","cniVersion":"1.0.0","plugins":[{"type":"a"}]}"#)
                .contains("a/b")
        );
        assert!(broken(r#"{"name":"a","cniVersion":"1.0.0","plugins":[]}"#).contains("no plugins"));
        assert!(broken(r#"{"name":"a","cniVersion":"1.0.0"}"#).contains("no list of plugins"));
        for kind in ["", "../sh", "/bin/sh", ".."] {
            let text =
                format!(r#"{{"name":"a","cniVersion":"1.0.0","plugins":[{{"type":"{kind}"}}]}}"#);
            assert!(broken(&text).contains("type"), "{kind}");
        }
        assert!(matches!(
            look(&[("10.conf", NET)]),
            Configured::Broken(why) if why.contains(".conflist")
        ));
    }

    #[test]
    fn the_newest_version_of_several_is_spoken() {
        let text = r#"{"name":"a","cniVersion":"0.4.0","cniVersions":["0.4.0","1.1.0","9.0.0"],"plugins":[{"type":"a"}]}"#;
        assert_eq!(list(&[("1.conflist", text)]).version.as_str(), "1.1.0");
    }

    #[test]
    fn plugins_of_the_networks_folder_are_appended() {
        let more = ("net/20-tuning.conf", r#"{"type":"tuning"}"#);
        let found = list(&[("10.conflist", NET), more]);
        let kinds: Vec<&str> = found.plugins.iter().map(kind).collect();
        assert_eq!(kinds, ["bridge", "tuning"]);
        let only = NET.replace("\"name\"", "\"loadOnlyInlinedPlugins\":true,\"name\"");
        assert_eq!(list(&[("10.conflist", &only), more]).plugins.len(), 1);
    }

    #[test]
    fn plugins_get_only_the_capabilities_they_declare() {
        let list = ConfigList::from_value(serde_json::json!({
            "name": "net", "cniVersion": "1.0.0", "plugins": [
                {"type": "bridge"},
                {"type": "portmap", "capabilities": {"portMappings": true, "dns": false}},
            ],
        }))
        .unwrap();
        let mut capabilities = Map::new();
        capabilities.insert("portMappings".to_owned(), serde_json::json!([1]));
        capabilities.insert("dns".to_owned(), serde_json::json!({}));
        let none = Map::new();
        let first = list.input(&list.plugins[0], &capabilities, None, &none);
        assert_eq!(
            first,
            serde_json::json!({"type": "bridge", "name": "net", "cniVersion": "1.0.0"})
        );
        let previous = serde_json::json!({"ips": []});
        let second = list.input(&list.plugins[1], &capabilities, Some(&previous), &none);
        assert_eq!(
            second["runtimeConfig"],
            serde_json::json!({"portMappings": [1]})
        );
        assert_eq!(second["prevResult"], previous);
        assert!(list.declares("portMappings") && !list.declares("dns"));
    }
}
