//! Many short lives full of faults, each generated from a seed: soon after the faults end, the
//! observations are true.
//!
//! `RUBELET_SEED=n` runs one of them only, `RUBELET_SEEDS=n` so many in each test, from the seed
//! `RUBELET_FIRST_SEED` on.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use proptest::{
    strategy::ValueTree as _,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use tokio::{
    runtime::Handle,
    task::yield_now,
    time::{Instant, sleep},
};

use super::{
    RandomLife,
    life::{Life, short_life},
    truth::is_known_to_run,
};
use crate::tests::node::seconds;

/// Number of tests; they run in parallel.
const SHARDS: u64 = 8;
/// Number of lives in each test.
const EACH: u64 = 250;

// The bounds that SPECIFICATION.md promises.

/// The last retry begins this long after the last fault at the latest: failed inspections and lists
/// are repeated after 5 s at most. The bounds below count from then.
const LAST_RETRY: Duration = Duration::from_secs(6);
/// Time until observations are true, with a stream or with polling.
const CONVERGENCE: Duration = Duration::from_secs(2);
/// The same where events were lost on an open stream: with the next list, every 60 s ±10 %.
const CONVERGENCE_AFTER_LOSS: Duration = Duration::from_secs(70);
/// Additional time while something has changed within the last [`CONVERGENCE`]: each change has to be
/// observed again.
const STILL_CHANGING: Duration = Duration::from_secs(20);

fn life_of(seed: u64) -> Life {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let config = Config {
        failure_persistence: None,
        ..Config::default()
    };
    let mut runner = TestRunner::new_with_rng(config, rng);
    let tree = proptest::strategy::Strategy::new_tree(&short_life(), &mut runner);
    tree.expect("every seed generates a life").current()
}

async fn run_life(life: Life) {
    let actions = life.actions.clone();
    let mut run = RandomLife::new(life);
    for (pause, action) in actions {
        run.advance(Duration::from_millis(pause)).await;
        run.apply(action).await;
    }
    run.assert_status_converges().await;
    run.assert_later_exit_is_observed().await;
    run.end().await;
}

impl RandomLife {
    /// Ends all faults and checks that the observations become true.
    async fn assert_status_converges(&mut self) {
        let changes_lost = self.changes_lost;
        self.stop_faults();
        let began = Instant::now();
        let limit = LAST_RETRY
            + if changes_lost {
                CONVERGENCE_AFTER_LOSS
            } else {
                CONVERGENCE
            };
        loop {
            self.advance(Duration::from_millis(200)).await;
            let differs = self.difference();
            let Some(differs) = differs else {
                return;
            };
            // While containers still start or exit, observations lag behind.
            let still_changing = self.node.uptime() - self.truth.changed < CONVERGENCE;
            let allowed = limit
                + if still_changing {
                    STILL_CHANGING
                } else {
                    Duration::ZERO
                };
            assert!(
                began.elapsed() <= allowed,
                "not observed after {:?}: {differs}\n{}",
                began.elapsed(),
                self.node.failure_report()
            );
        }
    }

    /// Kills one more container, long after all faults.
    async fn assert_later_exit_is_observed(&mut self) {
        sleep(LAST_RETRY).await;
        self.advance(Duration::ZERO).await;
        let Some((uid, id)) = self.truth.running() else {
            return;
        };
        self.node.sim.kill_container(&id, 77, "");
        let pod = self.uids.iter().position(|of| *of == uid);
        let Some(pod) = pod.filter(|pod| self.versions[*pod].exists) else {
            return;
        };
        let began = Instant::now();
        let limit = if self.changes_lost {
            CONVERGENCE_AFTER_LOSS
        } else {
            CONVERGENCE
        };
        while is_known_to_run(&self.node.known(&format!("p{pod}")), &id) {
            assert!(
                began.elapsed() <= limit,
                "{id} is still observed as running\n{}",
                self.node.failure_report()
            );
            self.advance(Duration::from_millis(100)).await;
        }
    }

    /// The difference between observations and the truth, if there is one.
    fn difference(&self) -> Option<String> {
        if self.node.agent().pleg().relists().borrow().at.is_none() {
            return Some("the runtime was not listed yet".to_owned());
        }
        let there = self.truth.pods();
        (0..self.versions.len()).find_map(|pod| {
            let uid = &self.uids[pod];
            if !self.versions[pod].exists && !there.contains(uid) {
                return None;
            }
            self.truth
                .differs(uid, &self.node.known(&format!("p{pod}")))
        })
    }

    /// Checks the reports of the last agent, and that it leaves no tasks and streams when it is
    /// killed.
    async fn end(mut self) {
        // Time for pod tasks to handle the last change.
        sleep(seconds(11)).await;
        self.check_lifecycle_events();
        for event in self.node.lifecycle() {
            let waited = self.node.now().duration_since(event.at);
            let has_task = self.node.agent().pods.get(&event.uid).is_some();
            let is_old = waited.as_secs() > 30 && self.life.hooks.is_empty() && !self.stepped;
            assert!(
                event.to_start.is_some() || !is_old || !has_task,
                "no task handled {event:?}\n{}",
                self.node.failure_report()
            );
        }
        if self.life.hooks.is_empty() {
            self.delivery.assert_all_worked_on(&self.node);
        }
        self.assert_order();
        self.assert_codes();
        self.node.kill().await;
        // Abandoned calls may continue; all other tasks must be gone.
        if !self.life.finishes_abandoned_calls {
            for _ in 0..20 {
                yield_now().await;
            }
            sleep(Duration::from_millis(1)).await;
            assert_eq!(
                Handle::current().metrics().num_alive_tasks(),
                0,
                "a task was leaked"
            );
        }
        let streams = self.node.sim.open_streams();
        assert_eq!(streams, 0, "a stream was leaked");
    }
}

fn run(seed: u64) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    let life = life_of(seed);
    let text = format!("{life:?}");
    let lived = catch_unwind(AssertUnwindSafe(|| runtime.block_on(run_life(life))));
    if let Err(panic) = lived {
        eprintln!("RUBELET_SEED={seed}\n{text}");
        std::panic::resume_unwind(panic);
    }
}

fn run_shard(shard: u64) {
    let number = |name| {
        let text = std::env::var(name).ok()?;
        Some(text.parse::<u64>().expect("a number"))
    };
    match number("RUBELET_SEED") {
        Some(seed) if seed % SHARDS == shard => run(seed),
        Some(_) => {}
        None => {
            let each = number("RUBELET_SEEDS").unwrap_or(EACH);
            let first = number("RUBELET_FIRST_SEED").unwrap_or(0);
            let seeds = first..first + each * SHARDS;
            seeds.filter(|seed| seed % SHARDS == shard).for_each(run);
        }
    }
}

macro_rules! shards {
    ($($name:ident $shard:literal;)*) => {
        $(#[test]
        fn $name() {
            run_shard($shard);
        })*
    };
}

shards! {
    status_converges_after_trouble_ends_0 0;
    status_converges_after_trouble_ends_1 1;
    status_converges_after_trouble_ends_2 2;
    status_converges_after_trouble_ends_3 3;
    status_converges_after_trouble_ends_4 4;
    status_converges_after_trouble_ends_5 5;
    status_converges_after_trouble_ends_6 6;
    status_converges_after_trouble_ends_7 7;
}
