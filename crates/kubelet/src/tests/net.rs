//! The network for tests: what probes and hooks are answered is scripted, each attempt is noted.

use std::time::Duration;

use async_trait::async_trait;
use parking_lot::{Mutex, MutexGuard};
use rubelet_api::probe::{HttpGet, ProbeHandler};
use rubelet_probes::{NetProbe, ProbeOutcome, ProbeReport};
use tokio::time::{Instant, sleep};

/// The network. Without a script everything passes at once.
pub(super) struct FakeNet {
    began: Instant,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    script: Option<Script>,
    attempts: Vec<Attempt>,
}

type Script = Box<dyn FnMut(&Attempt) -> Answer + Send>;

/// One attempt.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Attempt {
    /// When it began, since the network was made.
    pub(super) at: Duration,
    /// The pod's address.
    pub(super) host: String,
    /// What was tried.
    pub(super) what: NetCall,
    /// How long it may take.
    pub(super) timeout: Duration,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum NetCall {
    Probe(ProbeHandler),
    Hook(HttpGet),
}

/// What comes of an attempt.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) verdict: ProbeOutcome,
    pub(super) output: String,
    pub(super) takes: Duration,
}

impl Answer {
    /// It passes at once.
    pub(super) fn passes() -> Self {
        Self::of(ProbeOutcome::Passed, "ok")
    }

    /// It fails at once, with these words.
    pub(super) fn fails(output: &str) -> Self {
        Self::of(ProbeOutcome::Failed, output)
    }

    /// It ends at once in this way.
    pub(super) fn of(verdict: ProbeOutcome, output: &str) -> Self {
        Self {
            verdict,
            output: output.to_owned(),
            takes: Duration::ZERO,
        }
    }

    /// There is no answer.
    pub(super) fn hangs() -> Self {
        Self::passes().after(Duration::from_secs(1_000_000_000))
    }

    /// The same, but it takes this long.
    pub(super) fn after(self, takes: Duration) -> Self {
        Self { takes, ..self }
    }
}

impl FakeNet {
    pub(super) fn new() -> Self {
        Self {
            began: Instant::now(),
            state: Mutex::default(),
        }
    }

    /// From now on each attempt comes to what `script` says.
    pub(super) fn on(&self, script: impl FnMut(&Attempt) -> Answer + Send + 'static) {
        self.state().script = Some(Box::new(script));
    }

    /// All attempts until now, oldest first.
    pub(super) fn attempts(&self) -> Vec<Attempt> {
        self.state().attempts.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    async fn attempt(&self, what: NetCall, host: &str, timeout: Duration) -> ProbeReport {
        let attempt = Attempt {
            at: self.began.elapsed(),
            host: host.to_owned(),
            what,
            timeout,
        };
        let answer = {
            let mut state = self.state();
            state.attempts.push(attempt.clone());
            let script = state.script.as_mut();
            script.map_or_else(Answer::passes, |script| script(&attempt))
        };
        let began = Instant::now();
        let late = answer.takes > timeout;
        sleep(answer.takes.min(timeout)).await;
        let (verdict, output) = match late {
            true => (
                ProbeOutcome::TimedOut,
                "context deadline exceeded".to_owned(),
            ),
            false => (answer.verdict, answer.output),
        };
        ProbeReport {
            verdict,
            output,
            latency: began.elapsed(),
        }
    }
}

#[async_trait]
impl NetProbe for FakeNet {
    async fn probe(&self, handler: &ProbeHandler, host: &str, timeout: Duration) -> ProbeReport {
        let what = NetCall::Probe(handler.clone());
        self.attempt(what, host, timeout).await
    }

    async fn hook(&self, get: &HttpGet, host: &str, timeout: Duration) -> ProbeReport {
        let what = NetCall::Hook(get.clone());
        self.attempt(what, host, timeout).await
    }
}
