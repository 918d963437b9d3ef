//! The network for tests: responses to probes and hooks are scripted, and each attempt is recorded.

use std::time::Duration;

use async_trait::async_trait;
use parking_lot::{Mutex, MutexGuard};
use rubelet_api::probe::{HttpGet, ProbeHandler};
use rubelet_probes::{NetProbe, ProbeOutcome, ProbeReport};
use tokio::time::{Instant, sleep};

/// The network. Without a script all attempts pass at once.
pub(super) struct FakeNet {
    began: Instant,
    state: Mutex<NetState>,
}

#[derive(Default)]
struct NetState {
    script: Option<Script>,
    attempts: Vec<NetAttempt>,
}

type Script = Box<dyn FnMut(&NetAttempt) -> NetResponse + Send>;

/// One probe or hook request.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NetAttempt {
    /// When it began, since the network was created.
    pub(super) at: Duration,
    /// The pod's address.
    pub(super) host: String,
    /// The request.
    pub(super) what: NetCall,
    /// Its timeout.
    pub(super) timeout: Duration,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum NetCall {
    Probe(ProbeHandler),
    Hook(HttpGet),
}

/// The scripted result of an attempt.
#[derive(Debug, Clone)]
pub(super) struct NetResponse {
    pub(super) verdict: ProbeOutcome,
    pub(super) output: String,
    pub(super) takes: Duration,
}

impl NetResponse {
    /// It passes at once.
    pub(super) fn passes() -> Self {
        Self::of(ProbeOutcome::Passed, "ok")
    }

    /// It fails at once, with this output.
    pub(super) fn fails(output: &str) -> Self {
        Self::of(ProbeOutcome::Failed, output)
    }

    /// It ends at once with this outcome.
    pub(super) fn of(verdict: ProbeOutcome, output: &str) -> Self {
        Self {
            verdict,
            output: output.to_owned(),
            takes: Duration::ZERO,
        }
    }

    /// There is no response.
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

    /// Answers attempts from now on by `script`.
    pub(super) fn on(&self, script: impl FnMut(&NetAttempt) -> NetResponse + Send + 'static) {
        self.state().script = Some(Box::new(script));
    }

    /// All attempts until now, oldest first.
    pub(super) fn attempts(&self) -> Vec<NetAttempt> {
        self.state().attempts.clone()
    }

    fn state(&self) -> MutexGuard<'_, NetState> {
        self.state.lock()
    }

    async fn attempt(&self, what: NetCall, host: &str, timeout: Duration) -> ProbeReport {
        let attempt = NetAttempt {
            at: self.began.elapsed(),
            host: host.to_owned(),
            what,
            timeout,
        };
        let answer = {
            let mut state = self.state();
            state.attempts.push(attempt.clone());
            let script = state.script.as_mut();
            script.map_or_else(NetResponse::passes, |script| script(&attempt))
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
