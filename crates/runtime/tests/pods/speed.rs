//! How long things take. Not a test: the machine's load decides. Runs when asked for by name.

use std::{sync::Arc, time::Duration};

use rubelet_cri::{RuntimeService, v1};
use tokio::{task::JoinSet, time::Instant};

use crate::fixture::{Fixture, create, remove_pod, run_pod, shell, start};

pub(crate) async fn of_single_pods(fixture: &Fixture) {
    let runtime = fixture.runtime().await;
    let mut times: [Vec<Duration>; 5] = Default::default();
    for number in 0..20 {
        let pod = fixture.pod(&format!("single-{number}"));
        let mut begun = Instant::now();
        let mut lap = |times: &mut Vec<Duration>| {
            let now = Instant::now();
            times.push(now - begun);
            begun = now;
        };
        let sandbox = run_pod(&runtime, &pod).await;
        lap(&mut times[0]);
        let main = create(&runtime, &sandbox, &pod, shell("main", "exec sleep 1000")).await;
        lap(&mut times[1]);
        start(&runtime, &main).await;
        lap(&mut times[2]);
        let exec = v1::ExecSyncRequest {
            container_id: main.clone(),
            cmd: vec!["true".to_owned()],
            timeout: 5,
        };
        runtime.exec_sync(exec).await.unwrap();
        lap(&mut times[3]);
        remove_pod(&runtime, &sandbox).await;
        lap(&mut times[4]);
    }
    for (what, mut times) in ["run", "create", "start", "exec", "remove"]
        .into_iter()
        .zip(times)
    {
        times.sort_unstable();
        println!(
            "{what}: p50 {:?}, max {:?}",
            times[times.len() / 2],
            times[times.len() - 1]
        );
    }
}

pub(crate) async fn of_a_hundred_pods(fixture: &Fixture) {
    let runtime = fixture.runtime().await;
    let begun = Instant::now();
    let mut starting = JoinSet::new();
    for number in 0..100 {
        let (runtime, pod) = (Arc::clone(&runtime), fixture.pod(&format!("many-{number}")));
        starting.spawn(async move {
            let sandbox = run_pod(&runtime, &pod).await;
            let main = create(&runtime, &sandbox, &pod, shell("main", "exec sleep 1000")).await;
            start(&runtime, &main).await;
            sandbox
        });
    }
    let sandboxes = starting.join_all().await;
    println!("100 started in {:?}", begun.elapsed());
    let begun = Instant::now();
    let mut stopping = JoinSet::new();
    for sandbox in sandboxes {
        let runtime = Arc::clone(&runtime);
        stopping.spawn(async move { remove_pod(&runtime, &sandbox).await });
    }
    stopping.join_all().await;
    println!("100 stopped and removed in {:?}", begun.elapsed());
}
