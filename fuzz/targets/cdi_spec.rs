//! A CDI specification: what its devices change in a container is well-formed.

#![no_main]

use std::collections::BTreeSet;

use libfuzzer_sys::fuzz_target;
use rubelet_oci::{DeviceKind, Spec};
use rubelet_runtime_plan::cdi::{DeviceCatalog, NodeOnHost, SpecFile, apply, read};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let document = match read(text) {
        Ok(document) => document,
        Err(why) => {
            assert!(!why.to_string().is_empty());
            return;
        }
    };
    let names: Vec<String> = document
        .devices
        .iter()
        .map(|device| format!("{}={}", document.kind, device.name))
        .collect();
    let files = [SpecFile {
        path: "/etc/cdi/a.json".into(),
        priority: 0,
        content: Ok(document),
    }];
    let catalog = DeviceCatalog::of(&files);
    assert!(catalog.problems().is_empty(), "{:?}", catalog.problems());
    let edits = catalog
        .edits(&names)
        .expect("each device of a good file is described once");
    for kind in [DeviceKind::Char, DeviceKind::Block] {
        let found = edits.nodes_to_inspect().into_iter().map(|path| {
            assert!(path.is_absolute(), "{}", path.display());
            NodeOnHost {
                kind,
                major: 1,
                minor: 3,
            }
        });
        let mut spec = Spec::default();
        if apply(&mut spec, &edits, found).is_ok() {
            check(&spec);
        }
    }
});

/// Nothing is at one place twice, and nothing at a place that depends on where the runtime is.
fn check(spec: &Spec) {
    let devices = spec.linux.devices.iter().map(|device| &device.path);
    let mounts = spec.mounts.iter().map(|mount| &mount.destination);
    for places in [devices.collect::<Vec<_>>(), mounts.collect()] {
        assert!(places.iter().all(|place| place.is_absolute()), "{places:?}");
        let different: BTreeSet<_> = places.iter().collect();
        assert_eq!(different.len(), places.len(), "{places:?}");
    }
    let groups = &spec.process.user.additional_gids;
    let different: BTreeSet<_> = groups.iter().collect();
    assert_eq!(different.len(), groups.len(), "{groups:?}");
    assert!(!groups.contains(&0), "no device makes its user root");
    let names = spec.process.env.iter().map(|one| one.split('=').next());
    assert_eq!(
        names.collect::<BTreeSet<_>>().len(),
        spec.process.env.len(),
        "{:?}",
        spec.process.env
    );
}
