//! A manifest that becomes invalid: its pods keep their last valid definition.

use std::fs::File;
use std::io::Write;

use rubelet_testbed::status::is_ready;
use rubelet_testbed::{Node, wait};

use crate::outside::{PodText, TIMEOUT, pod_text, states};
use crate::{container_id, wait_words};

#[test]
fn the_last_valid_version_runs_until_the_manifest_is_valid() {
    let node = Node::shared().unwrap();
    let agent = node.agent();
    let pod = PodText::new("steady");
    let path = agent.manifest_dir().join("steady.yaml");
    agent.write_manifest("steady.yaml", &pod.yaml()).unwrap();
    let id = container_id(&states::wait_ready(agent, "steady"));
    let whole = pod.yaml();

    let bad = [
        ("cut in half", whole[..whole.len() / 2].to_owned()),
        ("misspelt", whole.replace("\"containers\"", "\"contaners\"")),
        ("empty", String::new()),
        ("another kind", whole.replace("\"Pod\"", "\"Job\"")),
    ];
    for (what, text) in bad {
        std::fs::write(&path, text).unwrap();
        let shown = states::wait_manifest(agent, "steady.yaml", "Bad");
        let message = shown["status"]["message"].as_str().unwrap();
        assert!(
            message.ends_with("(its last good version counts)"),
            "{what}: {message}"
        );
        assert_eq!(
            shown["status"]["pods"][0]["name"],
            agent.full_name("steady")
        );
        let now = agent.pod("steady").unwrap().unwrap();
        assert!(is_ready(&now), "{what}");
        assert_eq!(container_id(&now), id, "{what}");

        std::fs::write(&path, &whole).unwrap();
        states::wait_manifest(agent, "steady.yaml", "Ok");
        let now = agent.pod("steady").unwrap().unwrap();
        assert_eq!(container_id(&now), id, "{what}, then as before");
    }
    wait::until("its recovery was told", TIMEOUT, || {
        let events = states::events(agent, "ManifestRecovered")?;
        let told = events.iter().any(|event| {
            let message = event["message"].as_str().unwrap_or_default();
            message.contains("steady.yaml") && event["type"] == "Normal"
        });
        Ok(told.then_some(()))
    })
    .unwrap();

    std::fs::write(&path, "{").unwrap();
    states::wait_manifest(agent, "steady.yaml", "Bad");
    let edited = pod.edited(0, "2").yaml();
    std::fs::write(&path, edited).unwrap();
    let now = states::wait_pod(agent, "steady", "has restarted once", |pod| {
        is_ready(pod) && states::restarts(pod) == [("main".to_owned(), 1)]
    });
    assert_ne!(container_id(&now), id, "an edit that is good counts");
}

#[test]
fn a_file_that_is_being_written_is_not_parsed() {
    let node = Node::shared().unwrap();
    let agent = node.agent();
    // A half-written file is parsed when the agent starts to watch.
    let before = PodText::new("before");
    agent.write_manifest("before.yaml", &before.yaml()).unwrap();
    states::wait_ready(agent, "before");
    let whole = PodText::new("slow").yaml();
    let (first, second) = whole.split_at(1);
    let mut file = File::create(agent.manifest_dir().join("slow.yaml")).unwrap();
    file.write_all(first.as_bytes()).unwrap();
    // The other files are parsed, this one is not yet.
    let other = PodText::new("quick");
    agent.write_manifest("quick.yaml", &other.yaml()).unwrap();
    let ready = agent.wait_for("the other pod is ready", TIMEOUT, |agent| {
        // A file without writes for ten seconds is parsed.
        file.write_all(b" ")?;
        Ok(agent.pod("quick")?.filter(is_ready))
    });
    ready.unwrap();
    let shown = states::manifest(agent, "slow.yaml").unwrap();
    assert!(
        shown.is_none_or(|shown| shown["status"]["state"] != "Bad"),
        "half a file is nobody's mistake yet"
    );

    file.write_all(second.as_bytes()).unwrap();
    drop(file);
    states::wait_ready(agent, "slow");
    states::wait_manifest(agent, "slow.yaml", "Ok");
}

#[test]
fn only_the_invalid_one_of_several_documents_is_held() {
    let node = Node::shared().unwrap();
    let agent = node.agent();
    let pods = ["many0", "many1", "many2"].map(PodText::new);
    let good = pod_text::documents(&pods);
    agent.write_manifest("many.yaml", &good).unwrap();
    let ids =
        ["many0", "many1", "many2"].map(|name| container_id(&states::wait_ready(agent, name)));

    let broken = pods[1].clone().spec("restartPolicy", "Sometimes");
    let text = pod_text::documents(&[pods[0].clone(), broken, pods[2].clone().edited(0, "2")]);
    agent.write_manifest("many.yaml", &text).unwrap();
    wait_words(agent, "many.yaml", "spec.restartPolicy");
    states::wait_pod(agent, "many2", "is edited", |pod| {
        is_ready(pod) && container_id(pod) != ids[2]
    });
    for (name, id) in [("many0", &ids[0]), ("many1", &ids[1])] {
        let pod = agent.pod(name).unwrap().unwrap();
        assert_eq!(container_id(&pod), *id, "{name}");
    }
}
