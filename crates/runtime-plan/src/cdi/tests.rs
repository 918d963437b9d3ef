//! Descriptions of devices, good and bad, and what they change.

use std::path::Path;

use rubelet_oci::{DeviceKind, Spec};

use super::*;

const GPU: &str = r#"
cdiVersion: "0.6.0"
kind: vendor.example/gpu
annotations: { made-by: vendor }
containerEdits:
  env: [ALL=1, PATH=/opt/bin]
  mounts:
    - { hostPath: /usr/lib/gpu.so, containerPath: /usr/lib/gpu.so, options: [ro, nosuid, bind] }
devices:
  - name: "0"
    containerEdits:
      deviceNodes: [{ path: /dev/gpu0, permissions: rw }]
  - name: "1"
    containerEdits:
      env: [GPU=1]
      deviceNodes:
        - { path: /dev/gpu1, hostPath: /dev/host-gpu1, type: c, major: 195, minor: 1, fileMode: 438, gid: 44 }
      additionalGids: [44, 0, 44]
"#;

fn file(name: &str, priority: usize, text: &str) -> SpecFile {
    SpecFile {
        path: name.into(),
        priority,
        content: read(text).map_err(|error| UnusableSpec(error.to_string())),
    }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

#[test]
fn devices_come_with_all_that_belongs_to_them() {
    let files = [file("/etc/cdi/gpu.yaml", 0, GPU)];
    let wanted = names(&["vendor.example/gpu=1", "vendor.example/gpu=0"]);
    let edits = DeviceCatalog::of(&files).edits(&wanted).unwrap();
    assert_eq!(edits.nodes_to_inspect(), [Path::new("/dev/gpu0")]);
    let mut spec = Spec::default();
    spec.process.env = vec!["PATH=/bin".into(), "A=b".into()];
    spec.process.user.uid = 1000;
    let found = NodeOnHost {
        kind: DeviceKind::Char,
        major: 195,
        minor: 0,
    };
    apply(&mut spec, &edits, [found]).unwrap();
    assert_eq!(spec.process.env, ["PATH=/opt/bin", "A=b", "ALL=1", "GPU=1"]);
    assert_eq!(spec.process.user.additional_gids, [44]);
    assert_eq!(spec.mounts.len(), 1, "once for all devices of the file");
    let devices = &spec.linux.devices;
    let shown: Vec<_> = devices
        .iter()
        .map(|one| {
            (
                one.path.to_str().unwrap(),
                one.major,
                one.minor,
                one.uid,
                one.gid,
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("/dev/gpu1", 195, 1, Some(1000), Some(44)),
            ("/dev/gpu0", 195, 0, Some(1000), None)
        ]
    );
    let rules = spec.linux.resources.unwrap().devices;
    let rules: Vec<_> = rules
        .iter()
        .map(|rule| (rule.minor, &*rule.access))
        .collect();
    assert_eq!(rules, [(Some(1), "rwm"), (Some(0), "rw")]);
}

#[test]
fn a_node_that_is_something_else_on_the_host_is_refused() {
    let text = GPU.replace("path: /dev/gpu0,", "path: /dev/gpu0, type: b,");
    let files = [file("/etc/cdi/gpu.yaml", 0, &text)];
    let edits = DeviceCatalog::of(&files)
        .edits(&names(&["vendor.example/gpu=0"]))
        .unwrap();
    let found = NodeOnHost {
        kind: DeviceKind::Char,
        major: 195,
        minor: 0,
    };
    let error = apply(&mut Spec::default(), &edits, [found]).unwrap_err();
    assert!(
        error
            .message
            .contains("/dev/gpu0 is not a device of type \"b\""),
        "{error}"
    );
}

#[test]
fn what_the_runtime_does_not_do_is_refused() {
    for (edits, part) in [
        (
            "hooks: [{ hookName: createContainer, path: /bin/hook, args: [a] }]",
            "a hook (createContainer /bin/hook)",
        ),
        ("intelRdt: { closID: a }", "intelRdt"),
        (
            "netDevices: [{ hostInterfaceName: a, name: b }]",
            "netDevices",
        ),
    ] {
        let text = format!(
            "cdiVersion: 1.1.0\nkind: a.b/c\ndevices:\n- name: x\n  containerEdits:\n    {edits}\n"
        );
        let files = [file("/etc/cdi/a.yaml", 0, &text)];
        let edits = DeviceCatalog::of(&files)
            .edits(&names(&["a.b/c=x"]))
            .unwrap();
        let error = apply(&mut Spec::default(), &edits, []).unwrap_err();
        assert!(error.message.contains(part), "{error}");
    }
}

#[test]
fn the_later_directory_counts_and_two_files_of_one_directory_do_not() {
    let other = GPU.replace("195, minor: 1", "195, minor: 7");
    let device = names(&["vendor.example/gpu=1"]);
    let files = [
        file("/etc/cdi/a.yaml", 0, GPU),
        file("/run/cdi/b.yaml", 1, &other),
    ];
    let catalog = DeviceCatalog::of(&files);
    let mut spec = Spec::default();
    apply(&mut spec, &catalog.edits(&device).unwrap(), []).unwrap();
    assert_eq!(spec.linux.devices[0].minor, 7);
    assert!(catalog.problems().is_empty());

    let files = [
        file("/etc/cdi/a.yaml", 0, GPU),
        file("/etc/cdi/b.yaml", 0, &other),
    ];
    let catalog = DeviceCatalog::of(&files);
    let error = catalog.edits(&device).unwrap_err();
    assert!(
        error.message.contains("/etc/cdi/a.yaml, /etc/cdi/b.yaml"),
        "{error}"
    );
    assert_eq!(catalog.problems().len(), 2);
}

#[test]
fn a_device_that_is_not_there_is_reported_with_those_that_are() {
    let files = [
        file("/etc/cdi/gpu.yaml", 0, GPU),
        file("/etc/cdi/broken.json", 0, "{\"kind\": 1"),
    ];
    let catalog = DeviceCatalog::of(&files);
    let error = catalog
        .edits(&names(&["vendor.example/gpu=9"]))
        .unwrap_err();
    for part in [
        "gpu=9",
        "gpu=0, vendor.example/gpu=1",
        "/etc/cdi/broken.json",
    ] {
        assert!(error.message.contains(part), "{error}");
    }
    assert!(catalog.problems()[0].starts_with("/etc/cdi/broken.json: "));
}

#[test]
fn files_that_can_not_be_are_reported_with_the_place() {
    for (from, to, part) in [
        (
            "0.6.0",
            "2.0.0",
            "cdiVersion \"2.0.0\" is not supported: use 0.1.0, ",
        ),
        (
            "vendor.example/gpu",
            "vendor.example",
            "is not vendor/class",
        ),
        (
            "vendor.example/gpu",
            "9.example/gpu",
            "vendor \"9.example\"",
        ),
        ("name: \"1\"", "name: \"0\"", "duplicate device \"0\""),
        ("name: \"1\"", "name: \"-1\"", "\"-1\""),
        (
            "env: [GPU=1]",
            "env: [GPU]",
            "devices[1].containerEdits.env[0]",
        ),
        ("permissions: rw", "permissions: rx", "permissions"),
        (
            "type: c",
            "type: x",
            "\"x\" is not supported: use b, c, u or p",
        ),
        ("path: /dev/gpu0", "path: dev/gpu0", "absolute"),
        ("permissions: rw", "permision: rw", "permision"),
        ("kind:", "kindd:", "kind"),
    ] {
        let error = read(&GPU.replace(from, to)).unwrap_err().to_string();
        assert!(error.contains(part), "{part}: {error}");
    }
    assert!(read("").is_err() && read("[]").is_err() && read("a: 1\n---\nb: 1").is_err());
    let json = r#"{"cdiVersion":"0.3.0","kind":"a.b/c","devices":[{"name":"x","containerEdits":{"env":["A=1"]}}]}"#;
    assert!(read(json).is_ok());
}

#[test]
fn devices_are_asked_for_by_field_and_by_annotation_once_each() {
    let mut config = v1::ContainerConfig::default();
    assert!(wanted(&config).unwrap().is_empty());
    config.cdi_devices = vec![v1::CdiDevice {
        name: "a.b/c=x".into(),
    }];
    let note = |value: &str| [("cdi.k8s.io/plugin".to_owned(), value.to_owned())].into();
    config.annotations = note("a.b/c=y,a.b/c=x");
    assert_eq!(wanted(&config).unwrap(), ["a.b/c=x", "a.b/c=y"]);
    config.annotations = note("gpu0");
    let error = wanted(&config).unwrap_err().to_string();
    assert!(
        error.starts_with("annotations[cdi.k8s.io/plugin]: \"gpu0\""),
        "{error}"
    );
}
