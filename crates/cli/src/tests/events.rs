//! `rubelet events`.

use rubelet_server::Resource;

use super::fixture::{TestAgent, event, pod};

fn agent() -> TestAgent {
    let agent = TestAgent::start();
    agent
        .node
        .put(Resource::Pods, pod("default", "web-n1", "web"));
    agent.node.put(
        Resource::Events,
        event("default", "a", "web-n1", 9, "second"),
    );
    agent.node.put(
        Resource::Events,
        event("default", "b", "web-n1", 20, "first"),
    );
    agent.node.put(
        Resource::Events,
        event("default", "c", "gone-n1", 30, "farewell"),
    );
    agent.node.put(
        Resource::Events,
        event("kube-system", "d", "dns-n1", 40, "hello"),
    );
    agent
}

#[test]
fn events_are_printed_oldest_first() {
    assert_eq!(
        agent().type_in("events -A").data(),
        "\
NAMESPACE     LAST SEEN   TYPE     REASON    OBJECT        MESSAGE
kube-system   40h         Normal   Started   pod/dns-n1    hello
default       30h         Normal   Started   pod/gone-n1   farewell
default       20h         Normal   Started   pod/web-n1    first
default       9h          Normal   Started   pod/web-n1    second
"
    );
}

#[test]
fn events_of_one_pod_can_be_chosen_also_when_it_is_gone() {
    let agent = agent();
    for (pod, names) in [
        ("pod/web-n1", "event/b\nevent/a\n"),
        ("web", "event/b\nevent/a\n"),
        ("pod/gone-n1", "event/c\n"),
    ] {
        assert_eq!(
            agent.type_in(&format!("events --for {pod} -o name")).data(),
            names,
            "{pod}"
        );
    }
    let nothing = agent.type_in("events --for pod/never");
    assert_eq!(
        (nothing.code, nothing.out.as_str(), nothing.err.as_str()),
        (0, "", "No events found in namespace \"default\".\n")
    );
}
