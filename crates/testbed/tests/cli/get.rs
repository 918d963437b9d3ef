//! `get`: tables, documents, names and selection.

use std::process::Command;

use k8s_openapi::List;
use k8s_openapi::api::core::v1::{Event, Pod};
use rubelet_testbed::agent::binary;
use serde_json::Value;

use crate::{Shown, ended};

#[test]
fn the_table_is_aligned_and_shows_each_pods_state() {
    let shown = Shown::shared();
    let text = shown.stdout(&["get", "pods"]);
    let rows: Vec<&str> = text.lines().collect();
    assert_aligned(&text, &["NAME", "READY", "STATUS", "RESTARTS", "AGE"]);
    let expected = [
        ("db-testnode", "2/2", "Running"),
        ("done-testnode", "0/1", "Completed"),
        ("web-testnode", "1/1", "Running"),
        ("web2-testnode", "1/1", "Running"),
    ];
    assert_eq!(rows.len(), 1 + expected.len(), "{text}");
    for (row, (name, ready, status)) in rows[1..].iter().zip(expected) {
        let cells: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(cells[..4], [name, ready, status, "0"], "{text}");
        assert!(cells[4].ends_with(['s', 'm']), "{text}");
    }
    let wide = shown.stdout(&["get", "pods", "-o", "wide"]);
    assert_aligned(&wide, &["NAME", "READY", "IP", "NODE", "NOMINATED NODE"]);
    let web = wide.lines().find(|row| row.starts_with("web-")).unwrap();
    let cells: Vec<&str> = web.split_whitespace().collect();
    let prefix = shown.runtime.scratch().address_prefix();
    assert!(cells[5].starts_with(prefix), "{wide}");
    assert_eq!(cells[6], "testnode", "{wide}");

    let all = shown.stdout(&["get", "po", "-A", "--no-headers"]);
    assert_eq!(all.lines().count(), 5, "{all}");
    assert!(all.lines().any(|row| row.starts_with("other ")), "{all}");
    assert!(!all.contains("NAME"), "{all}");
}

/// Asserts that every heading is aligned with its cells.
fn assert_aligned(text: &str, headings: &[&str]) {
    let mut rows = text.lines();
    let head = rows.next().unwrap();
    for heading in headings {
        let at = head.find(heading).unwrap_or_else(|| panic!("{text}"));
        for row in text.lines() {
            let before = row[..at].chars().next_back().unwrap_or(' ');
            let first = row[at..].chars().next().unwrap_or(' ');
            assert!(before == ' ' && first != ' ', "{heading} in {text}");
        }
    }
}

#[test]
fn json_and_yaml_output_is_equal_and_valid() {
    let shown = Shown::shared();
    let json = shown.stdout(&["get", "pod", "web", "-o", "json"]);
    let pod: Pod = serde_json::from_str(&json).unwrap();
    assert_eq!(pod.metadata.name.as_deref(), Some("web-testnode"));
    let status = pod.status.unwrap();
    assert_eq!(status.phase.as_deref(), Some("Running"));
    assert!(status.start_time.is_some());
    let spec = pod.spec.unwrap();
    assert_eq!(spec.node_name.as_deref(), Some("testnode"));
    assert_eq!(spec.restart_policy.as_deref(), Some("Always"), "defaulted");

    let value: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["kind"], "Pod");
    assert_eq!(value["apiVersion"], "v1");
    let yaml = shown.stdout(&["get", "pod", "web", "-o", "yaml"]);
    let from_yaml: Value = serde_saphyr::from_str(&yaml).unwrap();
    assert_eq!(from_yaml, value);

    let list = shown.stdout(&["get", "pods", "-A", "-o", "json"]);
    let list: Value = serde_json::from_str(&list).unwrap();
    let items = list["items"].as_array().unwrap();
    assert_eq!(items.len(), 5);
    for item in items {
        serde_json::from_value::<Pod>(item.clone()).unwrap();
    }
    let events = shown.agent.get("/api/v1/events").unwrap().text();
    let events: List<Event> = serde_json::from_str(&events).unwrap();
    assert!(!events.items.is_empty());
}

#[test]
fn a_pod_is_found_by_any_unambiguous_name() {
    let shown = Shown::shared();
    for words in [
        &["get", "pods", "web"][..],
        &["get", "pods", "web-testnode"],
        &["get", "pod/web"],
        &["get", "po", "pod/web-"],
    ] {
        let text = shown.stdout(&[words, &["-o", "name"]].concat());
        assert_eq!(text, "pod/web-testnode\n", "{words:?}");
    }
}

#[test]
fn selectors_filter_and_sort_by_orders() {
    let shown = Shown::shared();
    let names = |words: &[&str]| {
        let text = shown.stdout(&[&["get", "pods", "-o", "name"], words].concat());
        text.replace("pod/", "").replace("-testnode\n", " ")
    };
    assert_eq!(names(&["-l", "tier=front"]), "web web2 ");
    assert_eq!(names(&["-l", "tier!=front"]), "db done ");
    assert_eq!(names(&["-l", "tier in (back,front),!x"]), "db web web2 ");
    let phase = ["--field-selector", "status.phase=Succeeded"];
    assert_eq!(names(&phase), "done ");
    assert_eq!(names(&["-n", "other"]), "apart ");
    let sorted = names(&["--sort-by", ".metadata.labels.tier", "-l", "tier"]);
    assert!(sorted.starts_with("db "), "{sorted}");
}

#[test]
fn errors_are_printed_to_stderr_with_their_exit_code() {
    let shown = Shown::shared();
    let rows: [(i32, &[&str], &str); 10] = [
        (1, &["get", "pod", "nothing"], "pods \"nothing\" not found"),
        (
            1,
            &["get", "pod", "we"],
            "ambiguous; it may be web-testnode, web2-testnode",
        ),
        (
            1,
            &["get", "pod", "apart"],
            "there is other/apart-testnode (use -n)",
        ),
        (2, &["get", "nodes"], "unknown resource \"nodes\""),
        (2, &["get"], "required"),
        (2, &["get", "pods", "--colour"], "--colour"),
        (2, &["get", "pods", "-o", "xml"], "xml"),
        (2, &["get", "pod", "event/x"], "is no pod"),
        (2, &["get", "pod", "web", "-l", "a=b"], "cannot be combined"),
        (1, &["get", "pods", "-l", "a=b=c"], "a=b=c"),
    ];
    for (code, words, part) in rows {
        let complaint = shown.complaint(code, words);
        assert!(complaint.contains(part), "rubelet {words:?}: {complaint}");
    }
    // An empty result is not an error, and suggests where to look.
    let output = shown.agent.cli(&["get", "pods", "-n", "empty"]).unwrap();
    assert_eq!((output.code, &*output.stdout), (0, ""));
    assert!(output.stderr.contains("use -A to see all"), "{output:?}");
}

#[test]
fn manifests_are_listed_with_their_errors() {
    let shown = Shown::shared();
    let text = shown.stdout(&["get", "manifests"]);
    assert_aligned(&text, &["FILE", "PODS", "STATUS", "AGE", "REASON"]);
    let row = |file: &str| {
        let row = text.lines().find(|row| row.contains(file));
        row.unwrap_or_else(|| panic!("{text}"))
    };
    assert!(row("/web.yaml").contains(" ok "), "{text}");
    assert!(row("/web.yaml").contains("web-testnode"), "{text}");
    assert!(row("/bad.yaml").contains(" bad "), "{text}");
    assert!(
        row("/bad.yaml").contains("spec.contaners: unknown field"),
        "{text}"
    );
    let directory = shown.agent.manifest_dir();
    let path = directory.join("bad.yaml").display().to_string();
    let one = shown.stdout(&["get", "mf", &path, "-o", "yaml"]);
    let one: Value = serde_saphyr::from_str(&one).unwrap();
    assert_eq!(one["status"]["problems"][0]["line"], 6, "{one:#}");
}

#[test]
fn colours_are_used_on_terminals_only() {
    let shown = Shown::shared();
    assert!(!shown.stdout(&["get", "pods"]).contains('\x1b'));
    let line = format!("{} get pods", binary().unwrap().display());
    let on_terminal = |no_color: &str| {
        let socket = shown.agent.api_socket();
        let mut script = Command::new("script");
        script.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
        script.env("RUBELET_SOCKET", socket).env("TERM", "xterm");
        ended(script.env("NO_COLOR", no_color)).stdout
    };
    let text = on_terminal("");
    assert!(text.contains("\x1b[32mRunning"), "{text:?}");
    assert!(!on_terminal("1").contains('\x1b'));
}
