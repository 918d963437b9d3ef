//! `rubelet cp`.

use std::{fs, os::unix::fs::symlink};

use rubelet_server::Resource;
use tempfile::tempdir;

use super::fixture::{TestAgent, pod};

#[test]
fn files_are_copied_both_ways() {
    let agent = TestAgent::start();
    agent
        .node
        .put(Resource::Pods, pod("default", "web-n1", "web"));
    agent.node.put(Resource::Pods, pod("db", "pg-n1", "pg"));
    let (here, root) = (tempdir().unwrap(), agent.node.root.path());
    let local = |name: &str| here.path().join(name);
    fs::create_dir(root.join("data")).unwrap();
    fs::create_dir_all(local("site/sub")).unwrap();
    fs::write(local("site/sub/page"), "x".repeat(1 << 20)).unwrap();
    symlink("sub/page", local("site/link")).unwrap();
    let site = local("site").display().to_string();
    let back = local("back").display().to_string();
    for (command, file) in [
        (
            format!("cp {site} web:/data"),
            root.join("data/site/sub/page"),
        ),
        (
            format!("cp {site}/. db/pg:data"),
            root.join("data/sub/page"),
        ),
        (
            format!("cp {site}/link web:/data/new"),
            root.join("data/new"),
        ),
        (
            format!("cp web:/data/site {back} -c main"),
            local("back/sub/page"),
        ),
        (
            format!("cp pg:/data/site/sub/page {back} -n db"),
            local("back/page"),
        ),
        (
            format!("cp web:/data/site/. {back}/new"),
            local("back/new/sub/page"),
        ),
    ] {
        assert_eq!(agent.pipe(&command, "").data(), "", "{command}");
        fs::symlink_metadata(file).expect(&command);
    }
    assert_eq!(fs::read(local("back/page")).unwrap().len(), 1 << 20);
    assert_eq!(
        fs::read_link(local("back/link")).unwrap().to_str(),
        Some("sub/page")
    );
}

#[test]
fn what_can_not_be_copied_says_why() {
    let agent = TestAgent::start();
    agent
        .node
        .put(Resource::Pods, pod("default", "web-n1", "web"));
    let here = tempdir().unwrap();
    let path = here.path().display().to_string();
    for (command, code, part) in [
        (format!("cp web:/none {path}"), 1, "\"/none\": no such file"),
        (format!("cp {path}/none web:/"), 1, "none\": no such file"),
        (
            format!("cp {path} web:/none/new"),
            1,
            "/none/\": no such file",
        ),
        (format!("cp web:/x {path}/none/new"), 1, "no such file"),
        (
            format!("cp web:/x {path} -c nope"),
            1,
            "container nope not found",
        ),
        (format!("cp other:/x {path}"), 1, "not found in namespace"),
        (format!("cp {path} {path}"), 2, "must be in a pod"),
        ("cp web:/a web:/b".to_owned(), 2, "must be a local path"),
        (format!("cp web: {path}"), 2, "behind the colon"),
    ] {
        let told = agent.type_in(&command).error(code);
        assert!(told.contains(part), "{command}: {told}");
    }
}

#[test]
fn devices_and_fifos_are_named_and_left_out() {
    let agent = TestAgent::start();
    agent
        .node
        .put(Resource::Pods, pod("default", "web-n1", "web"));
    let root = fs::File::open(agent.node.root.path()).unwrap();
    fs::create_dir(agent.node.root.path().join("data")).unwrap();
    let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
    rustix::fs::mknodat(&root, "data/pipe", kind, mode, 0).unwrap();
    let here = tempdir().unwrap();
    let ended = agent.pipe(&format!("cp web:/data {}", here.path().display()), "");
    assert_eq!(ended.code, 0);
    let told = "skipped data/pipe: neither a file, a directory nor a link\n";
    assert_eq!(ended.err, told);
}
