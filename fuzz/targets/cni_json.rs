//! CNI: configurations as somebody put them down, and what plugins answer. The first byte chooses.

#![no_main]

use std::{cell::OnceCell, collections::BTreeMap, path::Path};

use libfuzzer_sys::fuzz_target;
use rubelet_cni::{Cidr, NetworkRefusal, NetworkRequest, NetworkResult};
use serde_json::{Map, Value, json};

#[expect(
    dead_code,
    reason = "only what is written by plugins and pods is read here"
)]
#[path = "../../crates/cni/src/plugins/capabilities.rs"]
mod capabilities;
#[expect(dead_code, reason = "verbs are not called here")]
#[path = "../../crates/cni/src/plugins/conf.rs"]
mod conf;
#[expect(dead_code, reason = "no plugin is run here")]
#[path = "../../crates/cni/src/plugins/error.rs"]
mod error;
#[path = "../../crates/cni/src/plugins/json_file.rs"]
mod json_file;
#[path = "../../crates/cni/src/plugins/result.rs"]
mod result;

use conf::{ConfigDir, ConfigList};

thread_local! {
    static DIR: OnceCell<tempfile::TempDir> = const { OnceCell::new() };
}

fuzz_target!(|data: &[u8]| {
    let Some((choice, text)) = data.split_first() else {
        return;
    };
    match choice % 5 {
        0 => configuration("net.conflist", text),
        1 => configuration("net.conf", text),
        2 => answer(text),
        3 => bandwidth(text),
        _ => record(text),
    }
});

fn configuration(name: &str, text: &[u8]) {
    DIR.with(|dir| {
        let dir = dir.get_or_init(|| tempfile::tempdir().expect("a directory can be made"));
        let file = dir.path().join(name);
        std::fs::write(&file, text).expect("a file can be made in it");
        let found = ConfigDir::read(dir.path());
        std::fs::remove_file(&file).expect("and removed");
        match found {
            ConfigDir::List(list) => check(&list),
            ConfigDir::Broken(why) => assert!(why.len() <= 12 * text.len() + 500, "{why}"),
            ConfigDir::None => panic!("{name} was there"),
        }
    });
}

fn record(text: &[u8]) {
    if let Ok(value) = serde_json::from_slice(text)
        && let Ok(list) = ConfigList::from_value(value)
    {
        check(&list);
    }
}

/// A list can be read from its record, runs no program outside of the directories of plugins, and
/// tells plugins who they are.
fn check(list: &ConfigList) {
    let again = ConfigList::from_value(list.raw.clone());
    assert_eq!(again.as_ref().ok(), Some(list));
    assert!(!list.plugins.is_empty());
    let capabilities = Map::from_iter([("portMappings".to_owned(), json!([]))]);
    for plugin in &list.plugins {
        let program = Path::new("/opt/cni/bin").join(conf::kind(plugin));
        assert_eq!(program.parent(), Some(Path::new("/opt/cni/bin")));
        let input = list.input(plugin, &capabilities, None, &Map::new());
        assert_eq!(input["name"], *list.name);
        assert_eq!(input["cniVersion"], list.version.as_str());
        let told = plugin.get("runtimeConfig") != input.get("runtimeConfig");
        assert!(!told || list.declares("portMappings"));
    }
}

fn answer(text: &[u8]) {
    let Ok(result) = result::parse("bridge", "1.0.0", text) else {
        return;
    };
    assert!(result.get("cniVersion").is_some_and(Value::is_string));
    let summary = result::summary(&result, "eth0");
    assert!(summary.ips.len() <= text.len() / 2);
    // Written down and read again, as for a later check of the pod.
    let written = serde_json::to_vec(&result).expect("a value can be written");
    let again = result::parse("bridge", "1.0.0", &written).expect("and read");
    assert_eq!(result::summary(&again, "eth0").ips, summary.ips);
}

fn bandwidth(text: &[u8]) {
    let text = String::from_utf8_lossy(text).into_owned();
    let request = NetworkRequest {
        annotations: BTreeMap::from([("kubernetes.io/ingress-bandwidth".to_owned(), text)]),
        ..NetworkRequest::default()
    };
    if let Ok(values) = capabilities::values(&request, &[]) {
        let rate = values["bandwidth"]["ingressRate"].as_u64();
        let within = |rate| (1_000..=1_000_000_000_000_000).contains(&rate);
        assert!(rate.is_some_and(within), "{rate:?}");
    }
}
