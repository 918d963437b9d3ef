//! `rubelet config`.

use std::{fs, path::Path};

use super::fixture::{Ended, Screens, type_words};

const HEADER: &str = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";

fn type_in(words: &[&str]) -> Ended {
    let words = words.iter().copied().map(str::to_owned).collect();
    type_words(words, &Screens::default(), false)
}

fn write(directory: &Path, name: &str, fields: &str) -> String {
    let path = directory.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, format!("{HEADER}{fields}")).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_good_configuration_is_ok() {
    let directory = tempfile::tempdir().unwrap();
    let file = write(directory.path(), "config.yaml", "podPidsLimit: 20\n");
    let drop_in = write(directory.path(), "conf.d/10-a.conf", "podPidsLimit: 30\n");
    write(directory.path(), "conf.d/notes.txt", "not: ours\n");
    let directory = directory.path().join("conf.d");
    let directory = directory.to_str().unwrap();
    let words = [
        "config",
        "validate",
        "--config",
        &file,
        "--config-dir",
        directory,
    ];
    let ended = type_in(&words);
    assert_eq!(ended.code, 0);
    assert_eq!(ended.out, format!("{file}, {drop_in}: ok\n"));
}

#[test]
fn what_a_kubelet_would_do_and_this_agent_does_not_yet_is_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let file = write(directory.path(), "config.yaml", "podPidsLimit: 20\n");
    let said = type_in(&["config", "validate", "--config", &file]).err;
    assert!(said.starts_with("not yet: "), "{said}");
    assert!(said.contains("volumes of CSI"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn a_mistake_names_file_line_and_field() {
    let directory = tempfile::tempdir().unwrap();
    let file = write(
        directory.path(),
        "config.yaml",
        "fileCheckFrequency: 1m\nmaxPodz: 20\n",
    );
    let error = type_in(&["config", "validate", "--config", &file]).error(1);
    let last = error
        .lines()
        .find(|line| line.starts_with("error: "))
        .expect("an error line");
    assert!(
        last.contains(&format!("{file}:4")) && last.contains("maxPodz"),
        "{error}"
    );
}

#[test]
fn a_file_that_is_missing_is_named() {
    let error = type_in(&["config", "validate", "--config", "/nowhere/config.yaml"]).error(1);
    assert!(
        error.starts_with("error: cannot read /nowhere/config.yaml: No such file"),
        "{error}"
    );
    let error = type_in(&["config", "show", "--config-dir", "/nowhere"]).error(1);
    assert!(error.contains("directory of drop-ins /nowhere"), "{error}");
}

#[test]
fn show_tells_values_and_where_they_came_from() {
    let directory = tempfile::tempdir().unwrap();
    let file = write(directory.path(), "config.yaml", "fileCheckFrequency: 30s\n");
    let words = [
        "config",
        "show",
        "--config",
        &file,
        "--pod-max-pids=50",
        "--origin",
    ];
    let table = type_in(&words).data();
    let row = |field: &str| {
        let line = table
            .lines()
            .find(|line| line.starts_with(field))
            .expect(field);
        line.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(row("FIELD"), ["FIELD", "VALUE", "ORIGIN"]);
    assert_eq!(
        row("podPidsLimit"),
        ["podPidsLimit", "50", "flag", "--pod-max-pids"]
    );
    assert_eq!(
        row("fileCheckFrequency"),
        ["fileCheckFrequency", "30s", "file", &format!("{file}:3")]
    );
    assert_eq!(row("httpCheckFrequency")[2], "default");

    let json = type_in(&["config", "show", "-o", "json", "--config", &file]).data();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&json["kind"], &json["fileCheckFrequency"]),
        (&"KubeletConfiguration".into(), &"30s".into())
    );
    let yaml = type_in(&["config", "show", "--pod-max-pids", "50", "-o", "yaml"]).data();
    assert!(yaml.contains("\npodPidsLimit: 50\n"), "{yaml}");
}

#[test]
fn a_shown_configuration_can_be_used_again() {
    let directory = tempfile::tempdir().unwrap();
    let shown = type_in(&["config", "show", "--pod-max-pids", "50"]).data();
    let file = directory.path().join("again.yaml");
    fs::write(&file, &shown).unwrap();
    let again = type_in(&["config", "show", "--config", file.to_str().unwrap()]);
    assert_eq!((again.code, again.out), (0, shown));
}

#[test]
fn wrong_flags_are_wrong_usage() {
    for (words, message) in [
        (
            ["config", "validate", "--max-podz=1"],
            "unknown flag --max-podz; did you mean --max-pods?",
        ),
        (["config", "show", "--pod-max-pids=x"], "--pod-max-pids"),
        (["config", "show", "stray"], "unexpected argument \"stray\""),
        (["config", "validate", "--origin"], "unknown flag --origin"),
        (["config", "show", "--output=xml"], "xml"),
    ] {
        let error = type_in(&words).error(2);
        assert!(error.contains(message), "{words:?}: {error}");
    }
}
