//! Tests of `quota`.

use std::fs;

use rubelet_base::PodUid;
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

use super::*;
use crate::test_support::{Scratch, ignored, pod};
use crate::{
    PodDirs,
    empty_dir::{self, EmptyDirRequest},
};

fn volume(medium: Medium, size_limit: Option<Bytes>) -> VolumeSource {
    VolumeSource::EmptyDir { medium, size_limit }
}

#[test]
fn only_volumes_on_disk_of_pods_with_user_namespaces_have_quotas() {
    let mut pod = pod();
    let disk = volume(Medium::Disk, Some(1));
    assert_eq!(request(&pod, &disk, VolumeQuotas::On).unwrap(), None);
    pod.spec.host_users = false;
    assert!(request(&pod, &disk, VolumeQuotas::On).unwrap().is_some());
    let memory = volume(Medium::Memory, Some(1));
    assert_eq!(request(&pod, &memory, VolumeQuotas::On).unwrap(), None);
}

#[test]
fn what_may_be_evicted_has_a_bound_a_little_above_its_limit() {
    let mut pod = pod();
    pod.spec.host_users = false;
    for (limit, file, api) in [
        (None, None, None),
        (Some(0), None, None),
        (Some(1 << 20), Some(1 << 20), Some(17 << 20)),
        (Some(1 << 30), Some(1 << 30), Some((1 << 30) + (64 << 20))),
        (Some(Bytes::MAX), Some(Bytes::MAX), Some(Bytes::MAX)),
    ] {
        for (source, bound) in [(PodSource::File, file), (PodSource::Api, api)] {
            pod.source = source;
            let found = request(&pod, &volume(Medium::Disk, limit), VolumeQuotas::On).unwrap();
            let expected = QuotaRequest {
                bound,
                must_hold: source == PodSource::File && bound.is_some(),
            };
            assert_eq!(found, Some(expected), "{limit:?} {source:?}");
        }
    }
}

#[test]
fn a_limit_that_nothing_would_hold_is_an_error() {
    let mut pod = pod();
    pod.spec.host_users = false;
    let limited = volume(Medium::Disk, Some(1 << 20));
    let unlimited = volume(Medium::Disk, None);
    for (off, needed) in [
        (
            VolumeQuotas::GateOff,
            "the feature gate LocalStorageCapacityIsolationFSQuotaMonitoring",
        ),
        (
            VolumeQuotas::NotAccounted,
            "`localStorageCapacityIsolation: true` in the configuration",
        ),
    ] {
        pod.source = PodSource::File;
        let error = request(&pod, &limited, off).unwrap_err();
        let expected = format!("sizeLimit on disk needs {needed}");
        assert_eq!(error.to_string(), expected);
        assert_eq!(request(&pod, &unlimited, off).unwrap(), None);
        pod.source = PodSource::Api;
        assert_eq!(request(&pod, &limited, off).unwrap(), None);
    }
}

#[test]
fn volumes_get_different_numbers_and_the_same_one_again() {
    let first = |path: &str| candidates(Path::new(path)).next().unwrap();
    assert_eq!(first("/a"), first("/a"));
    assert_ne!(first("/a"), first("/b"));
    let tried: HashSet<_> = candidates(Path::new("/a")).take(100).collect();
    assert_eq!(tried.len(), 100);
    assert!(tried.iter().all(|project| project.0 >= FIRST));
}

#[test]
fn numbers_in_the_lists_of_the_machine_are_taken() {
    let scratch = Scratch::new();
    let (projects, projid) = (
        scratch.path().join("projects"),
        scratch.path().join("projid"),
    );
    fs::write(&projects, "# comment\n1048577:/var/lib/a\n\n 7 :/b\n").unwrap();
    fs::write(&projid, "web:1048600\n").unwrap();
    let missing = scratch.path().join("missing");
    let found = named(&[&projects, &projid, &missing]).unwrap();
    assert_eq!(found, HashSet::from([1_048_577, 7, 1_048_600]));
}

#[test]
fn a_file_system_without_quotas_is_left_alone() {
    let scratch = Scratch::new();
    let mut request = QuotaRequest {
        bound: Some(1),
        must_hold: false,
    };
    assert_eq!(set_up(scratch.path(), request).unwrap(), None);
    let dir = open(CWD, scratch.path().as_os_str()).unwrap();
    assert_eq!(project_quota::of_directory(&dir).unwrap(), None);
    request.must_hold = true;
    let error = set_up(scratch.path(), request).unwrap_err().to_string();
    assert!(error.contains("prjquota"), "{error}");
}

#[test]
fn each_volume_has_a_bound_of_its_own_until_it_is_removed() {
    let Some(place) = rubelet_needs::project_quotas() else {
        return;
    };
    let builder = tempfile::Builder::new()
        .prefix("rbt-volumes-")
        .tempdir_in(place);
    let root = builder.unwrap();
    // With it, as root of the machine, nothing is bounded.
    let mut mine = capabilities(None).unwrap();
    mine.effective.remove(CapabilitySet::SYS_RESOURCE);
    set_capabilities(None, mine).unwrap();
    let dirs = PodDirs::new(root.path(), &PodUid::from("u1")).unwrap();
    let projects = ["a", "b"].map(|name| {
        let request = EmptyDirRequest {
            name,
            medium: Medium::Disk,
            size: 0,
            fs_group: None,
            on_root_mismatch: false,
            quota: Some(QuotaRequest {
                bound: Some(1 << 20),
                must_hold: true,
            }),
        };
        let path = empty_dir::prepare(&dirs, &request).unwrap().path;
        fs::write(path.join("small"), vec![1; 512 << 10]).unwrap();
        fs::write(path.join("large"), vec![1; 1 << 20]).unwrap_err();
        let dir = open(CWD, path.as_os_str()).unwrap();
        project_quota::of_directory(&dir).unwrap().unwrap()
    });
    assert_ne!(projects[0], projects[1]);

    crate::cleanup(&dirs, &ignored).unwrap();
    let next = root.path().join("next");
    fs::create_dir(&next).unwrap();
    let dir = open(CWD, next.as_os_str()).unwrap();
    project_quota::set_directory(&dir, projects[0]).unwrap();
    fs::write(next.join("large"), vec![1; 2 << 20]).unwrap();
}
