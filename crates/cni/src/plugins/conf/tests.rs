//! Tests of `conf`.

use super::*;

fn look(files: &[(&str, &str)]) -> ConfigDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    ConfigDir::read(dir.path())
}

fn list(files: &[(&str, &str)]) -> ConfigList {
    match look(files) {
        ConfigDir::List(list) => list,
        other => panic!("{other:?}"),
    }
}

fn broken(text: &str) -> String {
    match look(&[("10-x.conflist", text)]) {
        ConfigDir::Broken(why) => why,
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
    assert!(matches!(look(&[("README", "")]), ConfigDir::None));
    assert!(matches!(
        ConfigDir::read(Path::new("/rubelet-tnone")),
        ConfigDir::None
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
fn mistakes_are_reported() {
    assert!(broken("{").contains("10-x.conflist is not valid JSON"));
    assert!(
        broken(r#"{"name":"a","cniVersion":"2.0.0","plugins":[{"type":"a"}]}"#).contains("2.0.0")
    );
    assert!(
        broken(r#"{"name":"a/b","cniVersion":"1.0.0","plugins":[{"type":"a"}]}"#).contains("a/b")
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
        ConfigDir::Broken(why) if why.contains(".conflist")
    ));
}

#[test]
fn the_newest_version_of_several_is_spoken() {
    let text = r#"{"name":"a","cniVersion":"0.4.0","cniVersions":["0.4.0","1.1.0","9.0.0"],"plugins":[{"type":"a"}]}"#;
    assert_eq!(list(&[("1.conflist", text)]).version.as_str(), "1.1.0");
}

#[test]
fn plugins_of_the_networks_directory_are_appended() {
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
