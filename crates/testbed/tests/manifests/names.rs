//! Names: which files are read, renamed files, and pods of the same name.

use rubelet_testbed::status::is_ready;
use rubelet_testbed::{Agent, Node, wait};

use crate::outside::{PodText, TIMEOUT, states};
use crate::{container_id, wait_words};

#[test]
fn backups_hidden_files_and_directories_are_skipped() {
    let node = Node::shared().unwrap();
    let agent = node.agent();
    let directory = agent.manifest_dir();
    let skipped = [
        ("skip.yaml~", "BackupFile"),
        ("skip.yaml.bak", "BackupFile"),
        ("skip.yaml.swp", "BackupFile"),
        ("skip.yaml.dpkg-old", "BackupFile"),
        ("#skip.yaml#", "BackupFile"),
        (".skip.yaml", "Hidden"),
    ];
    for (name, _) in skipped {
        agent
            .write_manifest(name, &PodText::new("skip").yaml())
            .unwrap();
    }
    std::fs::create_dir(directory.join("skip-directory")).unwrap();
    std::fs::write(directory.join("skip-directory/skip.yaml"), "{").unwrap();
    let seen = PodText::new("seen");
    agent.write_manifest("seen", &seen.yaml()).unwrap();
    states::wait_ready(agent, "seen");

    for (name, reason) in skipped.into_iter().chain([("skip-directory", "Directory")]) {
        let shown = states::wait_manifest(agent, name, "Skipped");
        assert_eq!(shown["status"]["reason"], reason, "{name}");
    }
    assert_eq!(agent.pod("skip").unwrap(), None);
    let skipped = format!("{}/skip-directory/skip.yaml", directory.display());
    let shown = states::manifest(agent, &skipped).unwrap();
    assert_eq!(shown, None, "directories are not entered");
}

#[test]
fn a_renamed_or_equal_file_does_not_restart_its_pod() {
    let node = Node::shared().unwrap();
    let agent = node.agent();
    let directory = agent.manifest_dir();
    let pod = PodText::new("moving");
    let outside = directory.with_file_name("outside.yaml");
    std::fs::write(&outside, pod.yaml()).unwrap();
    std::fs::rename(&outside, directory.join("old.yaml")).unwrap();
    let id = container_id(&states::wait_ready(agent, "moving"));

    std::fs::rename(directory.join("old.yaml"), directory.join("new.yaml")).unwrap();
    states::wait_manifest(agent, "new.yaml", "Ok");
    wait_forgotten(agent, "old.yaml");
    assert_eq!(container_id(&agent.pod("moving").unwrap().unwrap()), id);

    // An editor moves the old file away, writes the new one, and removes the old one.
    std::fs::rename(directory.join("new.yaml"), directory.join("new.yaml~")).unwrap();
    std::fs::write(directory.join("new.yaml"), pod.yaml()).unwrap();
    std::fs::remove_file(directory.join("new.yaml~")).unwrap();
    wait_forgotten(agent, "new.yaml~");
    states::wait_manifest(agent, "new.yaml", "Ok");
    let now = agent.pod("moving").unwrap().unwrap();
    assert!(is_ready(&now));
    assert_eq!(container_id(&now), id);
}

#[test]
fn the_first_of_two_files_with_the_same_pod_wins() {
    let node = Node::shared().unwrap();
    let agent = node.agent();
    let pod = PodText::new("double");
    agent.write_manifest("first.yaml", &pod.yaml()).unwrap();
    let id = container_id(&states::wait_ready(agent, "double"));

    let other = pod.clone().label("from", "second");
    // Sorted before the first one, it still has lower precedence.
    agent
        .write_manifest("a-second.yaml", &other.yaml())
        .unwrap();
    let shown = states::wait_manifest(agent, "a-second.yaml", "Bad");
    assert_eq!(shown["status"]["reason"], "Duplicate");
    wait_words(agent, "a-second.yaml", "first.yaml; rename or remove");
    let first = states::wait_manifest(agent, "first.yaml", "Ok");
    assert_eq!(
        first["status"]["pods"][0]["name"],
        agent.full_name("double")
    );

    agent.remove_manifest("first.yaml").unwrap();
    states::wait_manifest(agent, "a-second.yaml", "Ok");
    let now = states::wait_pod(agent, "double", "is the second one", |pod| {
        pod["metadata"]["labels"]["from"] == "second" && is_ready(pod)
    });
    assert_eq!(container_id(&now), id, "it is the same pod");
}

fn wait_forgotten(agent: &Agent, file: &str) {
    wait::until(&format!("{file} is forgotten"), TIMEOUT, || {
        Ok(states::manifest(agent, file)?.is_none().then_some(()))
    })
    .unwrap();
}
