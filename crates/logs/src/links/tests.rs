//! Tests of `links`.

use super::*;

#[test]
fn a_link_follows_the_newest_attempt() {
    let root = tempfile::tempdir().unwrap();
    let directory = root.path().join("containers");
    for log in ["/logs/p/c/0.log", "/logs/p/c/1.log", "/logs/p/c/1.log"] {
        create_link(&directory, "p_ns_c-id.log", Path::new(log)).unwrap();
        assert_eq!(
            fs::read_link(directory.join("p_ns_c-id.log")).unwrap(),
            Path::new(log)
        );
    }
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
    remove_link(&directory, "p_ns_c-id.log").unwrap();
    remove_link(&directory, "p_ns_c-id.log").unwrap();
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
}

#[test]
fn what_is_not_a_link_is_never_replaced_or_removed() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("mine.log"), "precious").unwrap();
    let made = create_link(root.path(), "mine.log", Path::new("/logs/x"));
    assert!(matches!(made, Err(LinkError::NotALink(_))));
    assert!(matches!(
        remove_link(root.path(), "mine.log"),
        Err(LinkError::NotALink(_))
    ));
    assert_eq!(
        fs::read_to_string(root.path().join("mine.log")).unwrap(),
        "precious"
    );
}

#[test]
fn the_longest_name_can_be_linked() {
    let root = tempfile::tempdir().unwrap();
    let name = "n".repeat(251) + ".log";
    create_link(root.path(), &name, Path::new("/logs/x")).unwrap();
    assert!(fs::symlink_metadata(root.path().join(name)).is_ok());
}

#[test]
fn only_our_dangling_links_of_ended_containers_go() {
    let root = tempfile::tempdir().unwrap();
    let pods = root.path().join("pods");
    let directory = root.path().join("containers");
    fs::create_dir_all(pods.join("a")).unwrap();
    fs::create_dir_all(&directory).unwrap();
    fs::write(pods.join("a/0.log"), "").unwrap();
    for (name, target) in [
        ("alive.log", pods.join("a/0.log")),
        ("dead.log", pods.join("b/0.log")),
        ("rotating.log", pods.join("c/0.log")),
        ("foreign.log", root.path().join("elsewhere/0.log")),
        ("sly.log", pods.join("../elsewhere/0.log")),
    ] {
        symlink(target, directory.join(name)).unwrap();
    }
    fs::write(directory.join("file.log"), "").unwrap();
    let keep = BTreeSet::from(["rotating.log".to_owned()]);
    assert_eq!(
        remove_dangling_links(&directory, &pods, &keep).unwrap(),
        ["dead.log"]
    );
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 5);
    assert!(
        remove_dangling_links(&root.path().join("none"), &pods, &keep)
            .unwrap()
            .is_empty()
    );
}
