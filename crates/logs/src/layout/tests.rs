//! Tests of `layout`.

use super::*;

fn dir(namespace: &str, name: &str, uid: &str) -> Result<PodLogDir, LayoutError> {
    PodLogDir::new(
        Path::new("/logs"),
        &PodName::new(namespace, name),
        &PodUid::from(uid),
    )
}

#[test]
fn log_paths_are_those_of_the_kubelet() {
    let dir = dir("default", "web-node1", "abc").expect("a good name");
    assert_eq!(dir.path(), Path::new("/logs/default_web-node1_abc"));
    assert_eq!(
        dir.log("nginx", 3).expect("a good name"),
        Path::new("/logs/default_web-node1_abc/nginx/3.log")
    );
}

#[test]
fn no_name_leads_out_of_the_log_directory() {
    for (namespace, name, uid) in [
        ("default", "web", "../../etc"),
        ("a/b", "web", "u"),
        ("default", "", "u"),
        ("d", "w", "u\0"),
    ] {
        assert!(matches!(
            dir(namespace, name, uid),
            Err(LayoutError::Component { .. })
        ));
    }
    let good = dir("default", "web", "u").expect("a good name");
    assert!(good.log("..", 0).is_err());
    assert!(matches!(
        dir("default", &"n".repeat(253), "u"),
        Err(LayoutError::TooLong(_))
    ));
}

#[test]
fn a_found_directory_tells_its_pod() {
    let (pod, uid, found) =
        PodLogDir::from_found(Path::new("/logs"), "default_web-n_u_1").expect("a pod's directory");
    assert_eq!(
        (pod.to_string().as_str(), uid.as_str()),
        ("default/web-n", "u_1")
    );
    assert_eq!(found.path(), Path::new("/logs/default_web-n_u_1"));
    for other in ["lost+found", "default_web", "_web_u", ".."] {
        assert_eq!(
            PodLogDir::from_found(Path::new("/logs"), other),
            None,
            "{other}"
        );
    }
}

#[test]
fn attempts_are_read_from_current_rotated_and_compressed_logs() {
    for (name, attempt) in [
        ("0.log", Some(0)),
        ("12.log", Some(12)),
        ("3.log.20240101-000000", Some(3)),
        ("3.log.20240101-000000.gz", Some(3)),
        ("3.logs", None),
        ("x.log", None),
        (".log", None),
        ("+1.log", None),
        ("99999999999.log", None),
    ] {
        assert_eq!(attempt_of(name), attempt, "{name}");
    }
}

#[test]
fn only_plain_rotated_files_have_a_rotation_suffix() {
    assert!(is_rotation_suffix("20240131-235959"));
    for other in [
        "20240131-235959.gz",
        "20240131_235959",
        "bak",
        "",
        "2024013-2359599",
    ] {
        assert!(!is_rotation_suffix(other), "{other}");
    }
}

#[test]
fn link_names_are_cut_to_what_file_systems_take() {
    let id = ContainerId::from("0123456789abcdef");
    let pod = PodName::new("default", "web");
    assert_eq!(
        link_name(&pod, "nginx", &id),
        "web_default_nginx-0123456789abcdef.log"
    );
    let long = link_name(&PodName::new("default", &"p".repeat(250)), "nginx", &id);
    assert_eq!(long.len(), 255);
    assert!(long.ends_with(".log"));
}
