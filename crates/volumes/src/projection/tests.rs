//! Volumes made of files, on the disk and in memory.

use std::{fs, os::unix::fs::MetadataExt, sync::Arc};

use rubelet_api::{
    container::{MountPropagation, RecursiveReadOnly, SubPath, VolumeMount},
    downward::Allocatable,
    objects::{ConfigMap, Secret},
    volume::{DownwardContent, DownwardFile, ObjectVolume, Projection, Volume, VolumeSource},
};
use rubelet_base::ErrorChain;

use super::*;
use crate::{
    VolumeQuotas, cleanup,
    prepare::{self, MountedVolumes, VolumeError},
    test_support::{Scratch, container, ignored, pod},
};

const SETTINGS: VolumeSettings = VolumeSettings {
    memory_bound: 1 << 20,
    allocatable: Allocatable {
        cpu: 2000,
        memory: 1 << 30,
    },
    quotas: VolumeQuotas::GateOff,
};

fn object(name: &str) -> ObjectVolume {
    ObjectVolume {
        name: name.into(),
        items: vec![],
        default_mode: 0o644,
        optional: false,
    }
}

fn volume(name: &str, source: VolumeSource) -> Volume {
    Volume {
        name: name.into(),
        source,
    }
}

/// A config map `c` and a secret `s`, each with one key.
fn objects(value: &str) -> PodObjects {
    let data = |key: &str| [(key.into(), Arc::from(value.as_bytes()))].into();
    let config_map = ConfigMap {
        data: data("color"),
        ..ConfigMap::default()
    };
    let secret = Secret {
        data: data("password"),
        ..Secret::default()
    };
    PodObjects {
        config_maps: [("c".into(), Arc::new(config_map))].into(),
        secrets: [("s".into(), Arc::new(secret))].into(),
        ..PodObjects::default()
    }
}

fn labels() -> VolumeSource {
    VolumeSource::Files(FileVolume::DownwardApi {
        items: vec![DownwardFile {
            path: "labels".into(),
            content: DownwardContent::Labels,
            mode: None,
        }],
        default_mode: 0o644,
    })
}

fn all_kinds() -> Pod {
    let mut pod = pod();
    pod.spec.volumes = vec![
        volume(
            "conf",
            VolumeSource::Files(FileVolume::ConfigMap(object("c"))),
        ),
        volume(
            "login",
            VolumeSource::Files(FileVolume::Secret(object("s"))),
        ),
        volume("self", labels()),
        volume(
            "both",
            VolumeSource::Files(FileVolume::Projected {
                sources: vec![Projection::Secret(rubelet_api::volume::ObjectProjection {
                    name: "s".into(),
                    items: vec![],
                    optional: false,
                })],
                default_mode: 0o400,
            }),
        ),
    ];
    pod
}

fn prepare(
    pod: &Pod,
    scratch: &Scratch,
    objects: &PodObjects,
) -> Result<MountedVolumes, VolumeError> {
    prepare::prepare(pod, &scratch.dirs(), &SETTINGS, objects, &ignored)
}

fn read(mounted: &MountedVolumes, volume: &str, file: &str) -> String {
    fs::read_to_string(mounted.path(volume).unwrap().join(file)).unwrap()
}

#[test]
fn paths_are_those_of_the_kubelet_and_secrets_are_on_tmpfs() {
    let Some(scratch) = Scratch::as_root() else {
        return;
    };
    let mut pod = all_kinds();
    pod.labels = [("app".into(), "web".into())].into();
    let mounted = prepare(&pod, &scratch, &objects("red")).unwrap();
    let volumes = scratch.dirs().volumes();
    for (name, place) in [
        ("conf", "kubernetes.io~configmap/conf"),
        ("login", "kubernetes.io~secret/login"),
        ("self", "kubernetes.io~downward-api/self"),
        ("both", "kubernetes.io~projected/both"),
    ] {
        assert_eq!(mounted.path(name), Some(&*volumes.join(place)));
        let marker = format!("kubernetes.io~empty-dir/wrapped_{name}/ready");
        assert!(scratch.dirs().plugins().join(marker).is_file());
    }
    assert_eq!(read(&mounted, "conf", "color"), "red");
    assert_eq!(read(&mounted, "login", "password"), "red");
    assert_eq!(read(&mounted, "self", "labels"), "app=\"web\"");
    assert_eq!(read(&mounted, "both", "password"), "red");
    let mut in_memory: Vec<String> = scratch
        .mounts()
        .into_iter()
        .inspect(|entry| assert_eq!(entry.fs_type, "tmpfs"))
        .map(|entry| {
            let name = entry.mount_point.file_name().unwrap();
            name.to_str().unwrap().to_owned()
        })
        .collect();
    in_memory.sort();
    assert_eq!(in_memory, ["both", "login", "self"]);

    assert_eq!(
        prepare(&pod, &scratch, &objects("blue")).unwrap().paths,
        mounted.paths
    );
    assert_eq!(read(&mounted, "login", "password"), "blue");
    assert_eq!(scratch.mounts().len(), 3, "nothing is mounted twice");

    cleanup(&scratch.dirs(), &ignored).unwrap();
    assert!(!scratch.dirs().pod().exists());
    assert!(scratch.mounts().is_empty());
}

#[test]
fn the_group_of_the_pod_can_read_and_no_one_gains_write_access() {
    let Some(scratch) = Scratch::as_root() else {
        return;
    };
    let mut pod = all_kinds();
    pod.spec.security.fs_group = Some(2000);
    for color in ["red", "blue"] {
        let mounted = prepare(&pod, &scratch, &objects(color)).unwrap();
        for (volume, file, mode) in [
            ("conf", "color", 0o644),
            ("both", "password", 0o440),
            ("login", "password", 0o644),
        ] {
            let dir = mounted.path(volume).unwrap();
            let of_file = fs::metadata(dir.join(file)).unwrap();
            assert_eq!((of_file.gid(), of_file.mode() & 0o7777), (2000, mode));
            let of_data = fs::metadata(dir.join("..data")).unwrap();
            assert_eq!((of_data.gid(), of_data.mode() & 0o7777), (2000, 0o2755));
        }
    }
}

#[test]
fn one_volume_that_fails_holds_up_no_other_and_leaves_nothing() {
    let scratch = Scratch::new();
    let mut pod = pod();
    pod.spec.volumes = vec![
        volume(
            "missing",
            VolumeSource::Files(FileVolume::ConfigMap(object("x"))),
        ),
        volume(
            "conf",
            VolumeSource::Files(FileVolume::ConfigMap(object("c"))),
        ),
    ];
    let error = prepare(&pod, &scratch, &objects("red")).unwrap_err();
    assert_eq!(
        ErrorChain(&error).to_string(),
        "MountVolume.SetUp failed for volume \"missing\" : configmap \"x\" not found"
    );
    let plugin = scratch.dirs().volumes().join("kubernetes.io~configmap");
    assert_eq!(
        fs::read_to_string(plugin.join("conf/color")).unwrap(),
        "red"
    );
    assert!(!plugin.join("missing").exists());
    // What is lost later stays as it was.
    pod.spec.volumes.remove(0);
    prepare(&pod, &scratch, &objects("red")).unwrap();
    prepare(&pod, &scratch, &PodObjects::default()).unwrap_err();
    assert_eq!(
        fs::read_to_string(plugin.join("conf/color")).unwrap(),
        "red"
    );
}

fn mount(volume: &str, mount_path: &str) -> VolumeMount {
    VolumeMount {
        volume: volume.into(),
        mount_path: mount_path.into(),
        sub_path: SubPath::Whole,
        read_only: false,
        propagation: MountPropagation::Private,
        recursive_read_only: RecursiveReadOnly::Disabled,
    }
}

#[test]
fn directories_for_volumes_within_the_volume_are_made() {
    let mut main = container("main");
    main.mounts = vec![
        mount("conf", "/etc/app/"),
        mount("a", "/etc/app/sub/a"),
        mount("b", "/etc/app/sub/a/deeper"),
        mount("c", "/etc/app2"),
        mount("d", "/etc/app/../up"),
    ];
    assert_eq!(nested(&main, "conf"), ["sub/a"]);
    assert_eq!(nested(&main, "a"), ["deeper"]);

    let scratch = Scratch::new();
    let mut pod = pod();
    pod.spec.containers = vec![main];
    pod.spec.volumes = vec![volume(
        "conf",
        VolumeSource::Files(FileVolume::ConfigMap(object("c"))),
    )];
    let mounted = prepare(&pod, &scratch, &objects("red")).unwrap();
    assert!(mounted.path("conf").unwrap().join("sub/a").is_dir());
    assert_eq!(read(&mounted, "conf", "color"), "red");
}
