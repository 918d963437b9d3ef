//! How long it takes. Printed with `--nocapture`; fails only when something is far off.

use std::os::fd::AsFd;

use rustix::{
    process::{WaitId, WaitIdOptions, waitid},
    time::{ClockId, clock_gettime},
};

use rubelet_container::{NamespaceOptions, make_namespaces};
use rubelet_oci::NamespaceKind;

use crate::{
    Case,
    fixture::{ContainerFixture, created, pipes, process, script, spec, started},
    pods::from_pod,
};

pub(crate) const CASES: &[Case] = &[("bench::launch_and_exec", launch_and_exec)];

fn now() -> f64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as f64 * 1e3 + now.tv_nsec as f64 / 1e6
}

fn middle(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn launch_and_exec() {
    let mut place = ContainerFixture::new();
    let (mut creates, mut starts, mut ends) = (Vec::new(), Vec::new(), Vec::new());
    let begin = now();
    let pod = make_namespaces(&NamespaceOptions {
        net: true,
        ipc: true,
        uts: true,
        ..NamespaceOptions::default()
    });
    let pod = pod.unwrap();
    println!("namespaces of a pod {:.2} ms", now() - begin);
    let mut plain = spec(&["true"]);
    let shared = [
        NamespaceKind::Network,
        NamespaceKind::Ipc,
        NamespaceKind::Uts,
    ];
    from_pod(&mut plain, &shared);
    for number in 0..50 {
        let (stdio, _ends) = pipes();
        place.overlay.upper = Some(place.directory(&format!("upper-{number}")));
        place.overlay.work = Some(place.directory(&format!("work-{number}")));
        let begin = now();
        let mut launching = place.launch(&plain, stdio, pod.joined(), None).unwrap();
        created(&mut launching.reports).unwrap();
        let is_created = now();
        rubelet_container::open_barrier(launching.barrier);
        started(&mut launching.reports).unwrap();
        let is_started = now();
        waitid(
            WaitId::PidFd(launching.pidfd.as_fd()),
            WaitIdOptions::EXITED,
        )
        .unwrap();
        creates.push(is_created - begin);
        starts.push(is_started - is_created);
        ends.push(now() - is_started);
    }
    println!(
        "create {:.2} ms, start {:.2} ms, run and end {:.2} ms",
        middle(creates),
        middle(starts),
        middle(ends)
    );
    let long = script("echo; sleep 1000");
    let running = place.start(&long, Default::default());
    let mut execs = Vec::new();
    for _ in 0..50 {
        let begin = now();
        place.exec(&running, &long, &process(&["true"])).unwrap();
        execs.push(now() - begin);
    }
    println!("exec to its end {:.2} ms", middle(execs));
}
