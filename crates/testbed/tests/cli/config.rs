//! `config validate` and `config show`.

use std::path::Path;

use serde_json::Value;

use crate::rubelet;

const HEAD: &str = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";

/// Writes a configuration; its path as text.
fn write(directory: &Path, name: &str, body: &str) -> String {
    let path = directory.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, format!("{HEAD}{body}")).unwrap();
    path.display().to_string()
}

#[test]
fn valid_configurations_are_shown_with_origins() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let file = write(
        directory,
        "config.yaml",
        "healthzPort: 1111\nfileCheckFrequency: 30s\ncontainerLogMaxSize: 5Mi\n",
    );
    let late = write(directory, "conf.d/20-late.conf", "healthzPort: 3333\n");
    write(
        directory,
        "conf.d/10-early.conf",
        "healthzPort: 2222\nfailSwapOn: false\n",
    );
    write(directory, "conf.d/ignored.txt", "healthzPort: 4444\n");
    let drop_ins = directory.join("conf.d").display().to_string();
    let sources = ["--config", &file, "--config-dir", &drop_ins];

    let valid = rubelet(&[&["config", "validate"], &sources[..]].concat());
    assert_eq!(valid.code, 0, "{valid:?}");
    assert!(valid.stdout.ends_with(": ok\n"), "{valid:?}");

    let flags = ["--file-check-frequency=5s", "--origin"];
    let show = rubelet(&[&["config", "show"], &sources[..], &flags].concat());
    assert_eq!(show.code, 0, "{show:?}");
    let row = |field: &str| {
        let row = show.stdout.lines().find(|row| row.starts_with(field));
        row.unwrap_or_else(|| panic!("{field} in {}", show.stdout))
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(
        row("healthzPort "),
        format!("healthzPort 3333 drop-in {late}:3")
    );
    assert_eq!(
        row("fileCheckFrequency "),
        "fileCheckFrequency 5s flag --file-check-frequency"
    );
    assert_eq!(row("httpCheckFrequency "), "httpCheckFrequency 20s default");

    let json = rubelet(&[&["config", "show", "-o", "json"], &sources[..]].concat());
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["healthzPort"], 3333);
    assert_eq!(json["failSwapOn"], false);
    let yaml = rubelet(&[&["config", "show"], &sources[..]].concat());
    let yaml: Value = serde_saphyr::from_str(&yaml.stdout).unwrap();
    assert_eq!(yaml, json);
    // What is shown can be used.
    let shown = directory.join("shown.json");
    std::fs::write(&shown, json.to_string()).unwrap();
    let again = rubelet(&[
        "config",
        "validate",
        "--config",
        &shown.display().to_string(),
    ]);
    assert_eq!(again.code, 0, "{again:?}");
}

#[test]
fn a_configuration_error_has_file_line_and_field() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let rows = [
        (
            "healthzPrt: 1",
            "3:1: healthzPrt: unknown field; did you mean \"healthzPort\"?",
        ),
        ("healthzPort: many", "3:14: healthzPort: "),
        ("\nhealthzPort: 70000", "4:1: healthzPort: "),
        ("fileCheckFrequency: soon", "3:21: fileCheckFrequency: "),
        ("healthzPort: 1\nhealthzPort: 2", "4:1: healthzPort: "),
        (
            "rubelet:\n  sockett: /x",
            "4:3: rubelet.sockett: unknown field",
        ),
    ];
    for (body, part) in rows {
        let file = write(directory, "bad.yaml", body);
        let expected = format!("error: {file}:{part}");
        for command in ["validate", "show"] {
            let output = rubelet(&["config", command, "--config", &file]);
            assert_eq!((output.code, &*output.stdout), (1, ""), "{body}");
            let errors: Vec<&str> = output
                .stderr
                .lines()
                .filter(|line| line.starts_with("error"))
                .collect();
            assert_eq!(errors.len(), 1, "{}", output.stderr);
            assert!(
                errors[0].starts_with(&expected),
                "{}\n{expected}",
                errors[0]
            );
        }
    }
    write(directory, "conf.d/05-bad.conf", "maxPods: -4\n");
    let drop_ins = directory.join("conf.d").display().to_string();
    let output = rubelet(&["config", "validate", "--config-dir", &drop_ins]);
    assert_eq!(output.code, 1);
    assert!(
        output.stderr.contains("05-bad.conf:3:"),
        "{}",
        output.stderr
    );

    for (code, words) in [
        (
            1,
            &["config", "validate", "--config", "/nowhere/config.yaml"][..],
        ),
        (1, &["config", "validate", "--config-dir", "/nowhere"]),
        (2, &["config", "validate", "--frobnicate"]),
        (2, &["config"]),
        (2, &["config", "show", "-o", "toml"]),
    ] {
        let output = rubelet(words);
        assert_eq!((output.code, &*output.stdout), (code, ""), "{words:?}");
        assert!(!output.stderr.is_empty(), "{words:?}");
    }
}
