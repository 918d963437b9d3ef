//! Changes while no event stream is open: streams that end and runtimes that restart.

use rubelet_cri::v1::ContainerEventType as Kind;
use rubelet_pleg::LifecycleKind;
use rubelet_sim::{EventFault, EventFlavour};
use tokio::time::sleep;

use super::queries::{APP, DELIVERY_LIMIT, ONCE, millis};
use crate::tests::node::{Node, seconds};

/// Scenario 10.
#[tokio::test(start_paused = true)]
async fn events_resume_after_each_of_a_hundred_runtime_restarts() {
    let node = Node::new();
    node.apply("web", APP);
    for number in 0..5 {
        node.apply(&format!("job-{number}"), ONCE);
    }
    node.until_running().await;
    for restart in 0..100 {
        sleep(millis(500 + 370 * (restart % 30))).await;
        node.sim.set_down(true);
        sleep(millis(400)).await;
        node.sim.set_down(false);
        let listens = |node: &Node| node.sim.open_streams() == 1;
        let took = node.within(seconds(2), "a stream", listens).await;
        assert!(took < seconds(2), "{took:?}");
        // After the lists that follow a new stream, only events are this fast.
        sleep(seconds(7)).await;
        if restart % 20 == 19 {
            let id = node.kill_app(&node.uid(&format!("job-{}", restart / 20)), 1);
            let took = node.until_death_of(&id).await;
            assert!(took <= DELIVERY_LIMIT, "{took:?}");
        }
    }
    assert!(node.is_running("web"));
    let uid = node.uid("web");
    assert_eq!(node.sim.oracle().starts(&uid, "app"), 1);
}

/// Scenario 11.
#[tokio::test(start_paused = true)]
async fn an_exit_while_the_runtime_is_down_is_reported_soon_after() {
    for flavour in [
        EventFlavour::Containerd,
        EventFlavour::Shared,
        EventFlavour::CriO,
        EventFlavour::None,
    ] {
        for down in [10, 400, 7_300, 61_000] {
            let node = Node::new();
            node.sim.events(flavour);
            let uid = node.apply("job", ONCE);
            node.until_running().await;
            sleep(seconds(20)).await;
            node.sim.set_down(true);
            sleep(millis(down / 2)).await;
            let id = node.kill_app(&uid, 5);
            sleep(millis(down / 2)).await;
            node.sim.set_down(false);
            let back = node.sim.oracle().mark();
            node.until_death_of(&id).await;
            assert_eq!(node.state("job", "app"), "Terminated Error 5");
            // How soon the agent reconnects after a long outage is bounded elsewhere.
            let calls = node.sim.oracle().calls_since(back);
            let asked = calls.first().expect("the runtime was called").began;
            let took = node.uptime() - asked;
            assert!(took < seconds(2), "{flavour:?}, {down} ms: {took:?}");
        }
    }
}

/// Scenario 12.
#[tokio::test(start_paused = true)]
async fn changes_lost_between_streams_are_found_by_relists() {
    // Milliseconds from the end of the stream to the exit of the container.
    for after in [0, 1, 49, 50, 51, 60, 300, 900, 1500] {
        for swallowed in [false, true] {
            let node = Node::new();
            let uid = node.apply("job", ONCE);
            node.until_running().await;
            sleep(seconds(20)).await;
            node.sim.cut_events();
            sleep(millis(after)).await;
            if swallowed {
                let lost = EventFault::lost().of(Kind::ContainerStoppedEvent);
                node.sim.inject_event(lost.always());
            }
            let id = node.kill_app(&uid, 5);
            let took = node.until_death_of(&id).await;
            let limit = match (swallowed, after) {
                (false, _) => millis(100),
                (true, ..1000) => seconds(2),
                // The last of these lists comes five seconds after the new stream.
                (true, _) => seconds(5),
            };
            assert!(took < limit, "{after} ms, {swallowed}: {took:?}");
            assert_eq!(node.lifecycle_count(&id, LifecycleKind::Died), 1);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_keeps_ending_is_not_trusted_until_it_lasts() {
    let node = Node::new();
    node.sim.events(EventFlavour::Closed);
    let uid = node.apply("job", ONCE);
    let other = node.apply("other", ONCE);
    node.until_running().await;
    sleep(seconds(30)).await;
    let id = node.kill_app(&uid, 1);
    let took = node.until_death_of(&id).await;
    assert!(took <= millis(1100), "it polls: {took:?}");
    // Events are switched on in the runtime.
    node.sim.events(EventFlavour::CriO);
    sleep(seconds(75)).await;
    assert_eq!(node.sim.open_streams(), 1);
    let id = node.kill_app(&other, 1);
    let took = node.until_death_of(&id).await;
    assert!(took <= DELIVERY_LIMIT, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn an_idle_node_makes_few_calls() {
    let node = Node::new();
    for number in 0..10 {
        node.apply(&format!("p{number}"), APP);
    }
    node.until_running().await;
    sleep(seconds(120)).await;
    let mark = node.sim.oracle().mark();
    sleep(seconds(1200)).await;
    let calls = node.sim.oracle().calls_since(mark);
    let count = |call: &str| calls.iter().filter(|of| of.call == call).count();
    for list in ["ListPodSandbox", "ListContainers"] {
        let lists = count(list);
        assert!(
            (18..=23).contains(&lists),
            "{lists} times {list} in 20 minutes"
        );
    }
    let others = calls.len() - count("ListPodSandbox") - count("ListContainers");
    assert_eq!(others, count("Status"), "{calls:?}");
    assert!(others <= 241, "{others}");
}
