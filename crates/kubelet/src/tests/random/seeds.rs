//! Many short lives full of trouble, each made from a number: soon after the trouble ends, what is
//! known is what is true.
//!
//! `RUBELET_SEED=n` lives through one of them only, `RUBELET_SEEDS=n` through so many in each test,
//! from the seed `RUBELET_FIRST_SEED` on.

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
    Story,
    life::{Life, short_life},
    truth::is_known_to_run,
};
use crate::tests::node::seconds;

/// Tests; they run at the same time.
const SHARDS: u64 = 8;
/// Lives in each of them.
const EACH: u64 = 250;

// The bounds that SPECIFICATION.md promises, in its words.

/// The last wait after a failure ends this long after the trouble at the latest: looks and lists
/// that failed are repeated after 5 s at most. What is promised counts from then.
const BACK_OFF: Duration = Duration::from_secs(6);
/// So soon what is known is true, where there is a stream or polling.
const SOON: Duration = Duration::from_secs(2);
/// And where events were lost on a stream that is open: with the next list, each 60 s +-10 %.
const LATER: Duration = Duration::from_secs(70);
/// So much later as long as something has changed within [`SOON`]: each change has to be learned
/// again.
const MOVES: Duration = Duration::from_secs(20);

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
    tree.expect("every number makes a life").current()
}

async fn live(life: Life) {
    let acts = life.acts.clone();
    let mut story = Story::new(life);
    for (pause, act) in acts {
        story.pass(Duration::from_millis(pause)).await;
        story.act(act).await;
    }
    story.learn_the_truth().await;
    story.learn_of_one_more_end().await;
    story.end().await;
}

impl Story {
    /// Trouble ends, and what is known becomes what is true.
    async fn learn_the_truth(&mut self) {
        let eaten = self.eaten;
        self.end_trouble();
        let began = Instant::now();
        let limit = BACK_OFF + if eaten { LATER } else { SOON };
        loop {
            self.pass(Duration::from_millis(200)).await;
            let differs = self.difference();
            let Some(differs) = differs else {
                return;
            };
            // While things happen, both are on the move.
            let moves = self.node.uptime() - self.truth.changed < SOON;
            let allowed = limit + if moves { MOVES } else { Duration::ZERO };
            assert!(
                began.elapsed() <= allowed,
                "not known after {:?}: {differs}\n{}",
                began.elapsed(),
                self.node.account()
            );
        }
    }

    /// One more container ends, long after all trouble.
    async fn learn_of_one_more_end(&mut self) {
        sleep(BACK_OFF).await;
        self.pass(Duration::ZERO).await;
        let Some((uid, id)) = self.truth.running() else {
            return;
        };
        self.node.sim.kill_container(&id, 77, "");
        let pod = self.uids.iter().position(|of| *of == uid);
        let Some(pod) = pod.filter(|pod| self.versions[*pod].wanted) else {
            return;
        };
        let began = Instant::now();
        let limit = if self.eaten { LATER } else { SOON };
        while is_known_to_run(&self.node.known(&format!("p{pod}")), &id) {
            assert!(
                began.elapsed() <= limit,
                "{id} is still said to run\n{}",
                self.node.account()
            );
            self.pass(Duration::from_millis(100)).await;
        }
    }

    /// How what is known differs from what is true, if it does.
    fn difference(&self) -> Option<String> {
        if self.node.agent().pleg().relists().borrow().at.is_none() {
            return Some("the runtime was not listed yet".to_owned());
        }
        let there = self.truth.pods();
        (0..self.versions.len()).find_map(|pod| {
            let uid = &self.uids[pod];
            if !self.versions[pod].wanted && !there.contains(uid) {
                return None;
            }
            self.truth
                .differs(uid, &self.node.known(&format!("p{pod}")))
        })
    }

    /// What was reported by the last agent, and whether it ends without a trace.
    async fn end(mut self) {
        // Time to work on the last change.
        sleep(seconds(11)).await;
        self.check_record();
        for event in self.node.lifecycle() {
            let waited = self.node.now().duration_since(event.at);
            let has_task = self.node.agent().pods.get(&event.uid).is_some();
            let is_old = waited.as_secs() > 30 && self.life.hooks.is_empty() && !self.stepped;
            assert!(
                event.to_start.is_some() || !is_old || !has_task,
                "nobody worked on {event:?}\n{}",
                self.node.account()
            );
        }
        if self.life.hooks.is_empty() {
            self.delivery.assert_all_worked_on(&self.node);
        }
        self.assert_order();
        self.assert_codes();
        self.node.kill().await;
        // Calls that their caller gave up may continue; all else is gone.
        if !self.life.finishes_abandoned_calls {
            for _ in 0..20 {
                yield_now().await;
            }
            sleep(Duration::from_millis(1)).await;
            assert_eq!(
                Handle::current().metrics().num_alive_tasks(),
                0,
                "a task is left"
            );
        }
        let streams = self.node.sim.open_streams();
        assert_eq!(streams, 0, "a stream is left");
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
    let lived = catch_unwind(AssertUnwindSafe(|| runtime.block_on(live(life))));
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
