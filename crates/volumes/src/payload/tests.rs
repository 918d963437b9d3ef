//! The files of volumes, and the errors of impossible ones.

use rubelet_api::{
    container::{FieldPath, ResourceField, ResourceName},
    objects::{ConfigMap, ObjectData, Secret, Token},
    volume::{DownwardContent, ObjectVolume},
};

use super::*;
use crate::test_support::{container, pod};

fn data(entries: &[(&str, &[u8])]) -> ObjectData {
    let entries = entries.iter();
    entries
        .map(|(key, value)| ((*key).into(), Arc::from(*value)))
        .collect()
}

/// A config map `c`, a secret `s`, and tokens of the volume `v`.
fn objects() -> PodObjects {
    let config_map = ConfigMap {
        data: data(&[("a", b"1"), ("b", b"2")]),
        binary_data: data(&[("bin", b"\x00\xff")]),
    };
    let secret = Secret {
        kind: "Opaque".into(),
        data: data(&[("a", b"secret"), ("k", b"key")]),
    };
    PodObjects {
        config_maps: [("c".into(), Arc::new(config_map))].into(),
        secrets: [("s".into(), Arc::new(secret))].into(),
        tokens: [(("v".into(), "token".into()), Token("t0ken".into()))].into(),
        ..PodObjects::default()
    }
}

fn item(key: &str, path: &str, mode: Option<u32>) -> KeyToPath {
    KeyToPath {
        key: key.into(),
        path: path.into(),
        mode,
    }
}

fn object(name: &str, items: Vec<KeyToPath>, optional: bool) -> ObjectVolume {
    ObjectVolume {
        name: name.into(),
        items,
        default_mode: 0o644,
        optional,
    }
}

fn files(pod: &Pod, source: &FileVolume) -> Result<Vec<String>, String> {
    let allocatable = Allocatable {
        cpu: 2000,
        memory: 1 << 30,
    };
    let files = of(pod, "v", source, &objects(), allocatable).map_err(|error| error.to_string())?;
    let files = files.into_iter();
    let shown = files.map(|(path, file)| {
        let text = String::from_utf8_lossy(&file.data).into_owned();
        let owner = file
            .owner
            .map_or(String::new(), |owner| format!(" of {owner}"));
        format!("{path} {:o}{owner} {text}", file.mode)
    });
    Ok(shown.collect())
}

#[expect(clippy::needless_pass_by_value, reason = "rows are made in place")]
#[track_caller]
fn check(source: FileVolume, expected: &[&str]) {
    let expected: Vec<String> = expected.iter().map(ToString::to_string).collect();
    assert_eq!(files(&pod(), &source), Ok(expected));
}

#[expect(clippy::needless_pass_by_value, reason = "rows are made in place")]
#[track_caller]
fn fails(source: FileVolume, expected: &str) {
    assert_eq!(files(&pod(), &source), Err(expected.to_owned()));
}

#[test]
fn without_items_each_key_is_a_file() {
    check(
        FileVolume::ConfigMap(object("c", vec![], false)),
        &["a 644 1", "b 644 2", "bin 644 \0\u{fffd}"],
    );
    check(
        FileVolume::Secret(object("s", vec![], false)),
        &["a 644 secret", "k 644 key"],
    );
}

#[test]
fn items_choose_keys_paths_and_modes() {
    let items = vec![
        item("b", "dir//./two", Some(0o400)),
        item("bin", "raw", None),
    ];
    check(
        FileVolume::ConfigMap(object("c", items, false)),
        &["dir/two 400 2", "raw 644 \0\u{fffd}"],
    );
}

#[test]
fn what_is_optional_may_be_missing() {
    let items = || vec![item("none", "x", None), item("a", "y", None)];
    check(FileVolume::Secret(object("none", items(), true)), &[]);
    check(
        FileVolume::Secret(object("s", items(), true)),
        &["y 644 secret"],
    );
}

#[test]
fn what_is_missing_is_named_in_the_kubelets_words() {
    let items = || vec![item("none", "x", None)];
    let config_map = |name, items| FileVolume::ConfigMap(object(name, items, false));
    let secret = |name, items| FileVolume::Secret(object(name, items, false));
    fails(config_map("x", vec![]), "configmap \"x\" not found");
    fails(secret("x", vec![]), "secret \"x\" not found");
    fails(
        config_map("c", items()),
        "configmap references non-existent config key: none",
    );
    fails(
        secret("s", items()),
        "references non-existent secret key: none",
    );
}

#[test]
fn paths_stay_within_the_volume_and_away_from_what_its_writer_keeps() {
    for (path, expected) in [
        ("../up", "invalid path: must not contain '..': ../up"),
        ("/abs", "invalid path: must be relative path: /abs"),
        ("..data", "invalid path: must not start with '..': ..data"),
        (".", "invalid path: must not be empty: ."),
    ] {
        let items = vec![item("a", path, None)];
        fails(FileVolume::ConfigMap(object("c", items, false)), expected);
    }
}

fn downward(path: &str, content: DownwardContent) -> DownwardFile {
    DownwardFile {
        path: path.into(),
        content,
        mode: None,
    }
}

fn limit(container: &str) -> DownwardContent {
    DownwardContent::Resource(ResourceField {
        container: Some(container.into()),
        resource: ResourceName::LimitsMemory,
        divisor_milli: 1000 << 20,
    })
}

#[test]
fn the_downward_api_shows_the_pod_to_itself() {
    let mut pod = pod();
    pod.spec.containers = vec![container("main")];
    pod.labels = [("app", "web"), ("zone", "a \"b\"")]
        .map(|(key, value)| (key.into(), value.into()))
        .into();
    let source = |items| FileVolume::DownwardApi {
        items,
        default_mode: 0o600,
    };
    let shown = files(
        &pod,
        &source(vec![
            downward("labels", DownwardContent::Labels),
            downward("annotations", DownwardContent::Annotations),
            downward("name", DownwardContent::Field(FieldPath::Name)),
            downward(
                "app",
                DownwardContent::Field(FieldPath::Label("app".into())),
            ),
            downward("limit", limit("main")),
        ]),
    );
    let expected = [
        "annotations 600 ",
        "app 600 web",
        "labels 600 app=\"web\"\nzone=\"a \\\"b\\\"\"",
        "limit 600 1024",
        "name 600 web",
    ];
    assert_eq!(shown, Ok(expected.map(str::to_owned).to_vec()));
    assert_eq!(
        files(&pod, &source(vec![downward("limit", limit("other"))])),
        Err("container other not found".to_owned())
    );
}

fn projected(sources: Vec<Projection>) -> FileVolume {
    FileVolume::Projected {
        sources,
        default_mode: 0o644,
    }
}

fn source(name: &str) -> ObjectProjection {
    ObjectProjection {
        name: name.into(),
        items: vec![],
        optional: false,
    }
}

fn token() -> Projection {
    Projection::ServiceAccountToken {
        audience: "".into(),
        expiration: std::time::Duration::from_secs(3600),
        path: "token".into(),
    }
}

#[test]
fn sources_of_a_projected_volume_are_laid_over_each_other() {
    check(
        projected(vec![
            Projection::ConfigMap(source("c")),
            Projection::Secret(source("s")),
            token(),
        ]),
        &[
            "a 644 secret",
            "b 644 2",
            "bin 644 \0\u{fffd}",
            "k 644 key",
            "token 644 t0ken",
        ],
    );
}

#[test]
fn all_sources_that_fail_are_named() {
    fails(
        projected(vec![
            Projection::ConfigMap(source("x")),
            Projection::ConfigMap(source("c")),
            Projection::Secret(source("y")),
        ]),
        "[configmap \"x\" not found, secret \"y\" not found]",
    );
    fails(
        projected(vec![Projection::Secret(source("y"))]),
        "secret \"y\" not found",
    );
}

#[test]
fn a_token_is_for_the_user_or_the_group_of_the_pod_alone() {
    let of_user = |name: &str, user: Option<i64>| {
        let mut container = container(name);
        container.security.shared.run_as_user = user;
        container
    };
    for (of_pod, users, group, expected) in [
        (None, [None, None], None, "token 644 t0ken"),
        (None, [None, None], Some(7), "token 600 t0ken"),
        (Some(5), [None, None], None, "token 600 of 5 t0ken"),
        (Some(5), [None, Some(6)], None, "token 644 t0ken"),
        (None, [Some(6), Some(6)], None, "token 600 of 6 t0ken"),
        (None, [Some(6), None], None, "token 644 t0ken"),
    ] {
        let mut pod = pod();
        pod.spec.security.shared.run_as_user = of_pod;
        pod.spec.security.fs_group = group;
        let [first, second] = users;
        pod.spec.init_containers = vec![of_user("a", first)];
        pod.spec.containers = vec![of_user("b", second)];
        let shown = files(&pod, &projected(vec![token()]));
        assert_eq!(shown, Ok(vec![expected.to_owned()]), "{of_pod:?} {users:?}");
    }
    let other = FileVolume::Projected {
        sources: vec![Projection::ServiceAccountToken {
            audience: "".into(),
            expiration: std::time::Duration::from_secs(3600),
            path: "other".into(),
        }],
        default_mode: 0o644,
    };
    fails(
        other,
        "failed to fetch token: no token for other is available yet",
    );
}
