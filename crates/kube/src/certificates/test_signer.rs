//! A model of the API server's certificate requests, for the tests of this directory.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use rcgen::{
    CertificateParams, CertificateSigningRequestParams, CertifiedIssuer, KeyPair, date_time_ymd,
};
use rustls::pki_types::CertificateSigningRequestDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;
use tokio::time::Instant;

use super::key::{NodeKey, subject};
use super::pair::Pair;
use super::pem::section;
use super::rules::CertificateTemplate;
use crate::clock::WallClock;
use crate::test_server::{ReceivedRequest, TestAnswer, TestServer};

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

/// The day on which the clock of the tests starts, at midnight.
pub(super) const START: (i32, u8, u8) = (2027, 1, 15);

/// A clock that follows tokio's.
pub(super) fn clock() -> WallClock {
    let (year, month, day) = START;
    let midnight: Timestamp = format!("{year}-{month:02}-{day:02}T00:00:00Z")
        .parse()
        .unwrap();
    let began = Instant::now();
    Arc::new(move || midnight + began.elapsed())
}

/// Requests, and who watches them.
pub(super) struct Signer {
    state: Mutex<SignerState>,
    issuer: CertifiedIssuer<'static, KeyPair>,
    clock: WallClock,
    /// How many requests there have been.
    made: watch::Sender<usize>,
}

#[derive(Default)]
struct SignerState {
    requests: BTreeMap<String, Value>,
    watchers: Vec<UnboundedSender<String>>,
    /// Answer everything with this code.
    refuse: Option<u16>,
    /// Whether every request is approved at once.
    approves: bool,
    /// How far the signer's clock is ahead, and how long its certificates last.
    issue: Option<(SignedDuration, Duration)>,
}

impl Signer {
    pub(super) fn new(approves: bool) -> Arc<Self> {
        let key = KeyPair::generate().unwrap();
        let issuer = CertifiedIssuer::self_signed(CertificateParams::default(), key).unwrap();
        let state = SignerState {
            approves,
            ..SignerState::default()
        };
        Arc::new(Self {
            state: Mutex::new(state),
            issuer,
            clock: clock(),
            made: watch::Sender::new(0),
        })
    }

    pub(super) fn server(self: &Arc<Self>) -> TestServer {
        let signer = Arc::clone(self);
        TestServer::new(move |asked| signer.answer(asked))
    }

    pub(super) fn refuse(&self, code: Option<u16>) {
        self.state.lock().refuse = code;
    }

    /// From now on certificates are issued as kube-controller-manager does: valid from five minutes before
    /// the signer's clock on, which is ahead by `skew`.
    pub(super) fn issue(&self, skew: SignedDuration, lifetime: Duration) {
        self.state.lock().issue = Some((skew, lifetime));
    }

    /// What the signer's clock shows.
    pub(super) fn now(&self) -> Timestamp {
        let issue = self.state.lock().issue;
        (self.clock)() + issue.map_or(SignedDuration::ZERO, |(skew, _)| skew)
    }

    /// Names of the requests there are.
    pub(super) fn names(&self) -> Vec<String> {
        self.state.lock().requests.keys().cloned().collect()
    }

    pub(super) fn request(&self, name: &str) -> Value {
        self.state.lock().requests[name].clone()
    }

    /// Waits until there have been so many requests, and gives the name of the newest.
    pub(super) async fn nth(&self, count: usize) -> String {
        let mut made = self.made.subscribe();
        made.wait_for(|made| *made >= count).await.unwrap();
        let state = self.state.lock();
        let uid = format!("uid-{count}");
        let mut all = state.requests.iter();
        all.find(|(_, request)| request["metadata"]["uid"] == *uid)
            .unwrap()
            .0
            .clone()
    }

    pub(super) fn approve(&self, name: &str) {
        let issue = self.state.lock().issue;
        let now = self.now();
        self.change(name, |request| {
            let certificate = self.sign(request, issue.map(|(_, lifetime)| (now, lifetime)));
            request["status"] = json!({
                "conditions": [{"type": "Approved", "status": "True"}],
                "certificate": STANDARD.encode(certificate),
            });
        });
    }

    pub(super) fn deny(&self, name: &str) {
        self.change(name, |request| {
            request["status"] = json!({
                "conditions": [{
                    "type": "Denied", "status": "True", "reason": "KubectlDeny",
                    "message": "This CSR was denied by kubectl certificate deny.",
                }],
            });
        });
    }

    pub(super) fn forget(&self, name: &str) {
        let mut state = self.state.lock();
        let gone = state.requests.remove(name).unwrap();
        state.tell("DELETED", &gone);
    }

    fn change(&self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut state = self.state.lock();
        let request = state.requests.get_mut(name).unwrap();
        change(request);
        let changed = request.clone();
        state.tell("MODIFIED", &changed);
    }

    /// A certificate of ten days from the day of `at` on, as somebody else may have got it.
    pub(super) fn pair(&self, common_name: &str, at: Timestamp) -> Pair {
        let key = NodeKey::generate().unwrap();
        let mut wanted = CertificateTemplate::node("");
        wanted.common_name = common_name.to_owned();
        let mut params = subject(&wanted).unwrap();
        let date = at.to_zoned(jiff::tz::TimeZone::UTC).date();
        let end = date.checked_add(jiff::Span::new().days(10)).unwrap();
        let midnight = |date: jiff::civil::Date| {
            let part = |number: i8| u8::try_from(number).unwrap();
            date_time_ymd(i32::from(date.year()), part(date.month()), part(date.day()))
        };
        params.not_before = midnight(date);
        params.not_after = midnight(end);
        let certificate = params.signed_by(key.pair(), &self.issuer).unwrap();
        Pair::new(vec![certificate.der().clone()], key.der()).unwrap()
    }

    /// A certificate of ten days from the start of the clock on, or of that time and lifetime.
    fn sign(&self, request: &Value, issue: Option<(Timestamp, Duration)>) -> String {
        let pem = STANDARD
            .decode(request["spec"]["request"].as_str().unwrap())
            .unwrap();
        let der = CertificateSigningRequestDer::from_pem_slice(&pem).unwrap();
        let mut params = CertificateSigningRequestParams::from_der(&der).unwrap();
        let (year, month, day) = START;
        params.params.not_before = date_time_ymd(year, month, day);
        params.params.not_after = date_time_ymd(year, month, day + 10);
        if let Some((now, lifetime)) = issue {
            let seconds = u64::try_from(now.as_second()).unwrap();
            let now = date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds);
            params.params.not_before = now - Duration::from_secs(300);
            params.params.not_after = now + lifetime;
        }
        let certificate = params.signed_by(&self.issuer).unwrap();
        section("CERTIFICATE", certificate.der())
    }

    fn answer(&self, asked: &ReceivedRequest) -> TestAnswer {
        if let Some(code) = self.state.lock().refuse {
            return status(code, "Unauthorized");
        }
        if asked.method == "POST" {
            return self.create(serde_json::from_str(&asked.body).unwrap());
        }
        let state = self.state.lock();
        if asked.path.contains("watch=true") || asked.path.contains("watch=1") {
            drop(state);
            return self.watch(asked);
        }
        let name = asked
            .path
            .strip_prefix(REQUESTS)
            .unwrap()
            .trim_start_matches('/');
        match state.requests.get(name) {
            Some(request) => TestAnswer::Json(200, request.clone()),
            None => status(404, "NotFound"),
        }
    }

    fn create(&self, mut request: Value) -> TestAnswer {
        let name = request["metadata"]["name"].as_str().unwrap().to_owned();
        let mut state = self.state.lock();
        if state.requests.contains_key(&name) {
            return status(409, "AlreadyExists");
        }
        let count = *self.made.borrow() + 1;
        request["metadata"]["uid"] = format!("uid-{count}").into();
        request["metadata"]["resourceVersion"] = count.to_string().into();
        state.requests.insert(name.clone(), request.clone());
        state.tell("ADDED", &request);
        let approves = state.approves;
        drop(state);
        self.made.send_replace(count);
        if approves {
            self.approve(&name);
        }
        TestAnswer::Json(201, request)
    }

    fn watch(&self, asked: &ReceivedRequest) -> TestAnswer {
        let mut state = self.state.lock();
        let ours = |name: &str| asked.path.contains(name);
        let mut lines: Vec<Value> = state
            .requests
            .iter()
            .filter(|(name, _)| ours(name))
            .map(|(_, request)| json!({"type": "ADDED", "object": request}))
            .collect();
        lines.push(json!({"type": "BOOKMARK", "object": {"metadata": {
            "resourceVersion": "100",
            "annotations": {"k8s.io/initial-events-end": "true"},
        }}}));
        let (answer, sender) = TestAnswer::lines(&lines);
        state.watchers.push(sender);
        answer
    }
}

impl SignerState {
    fn tell(&mut self, kind: &str, request: &Value) {
        let line = json!({"type": kind, "object": request}).to_string() + "\n";
        self.watchers
            .retain(|watcher| watcher.send(line.clone()).is_ok());
    }
}

fn status(code: u16, reason: &str) -> TestAnswer {
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure",
        "reason": reason, "message": format!("refused: {reason}"), "code": code,
    });
    TestAnswer::Json(code, body)
}

/// Gives everything that is ready its turn; no timer fires.
pub(super) async fn settle() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}

/// Days as time.
pub(super) fn days(count: f64) -> Duration {
    Duration::from_secs_f64(count * 24.0 * 3600.0)
}
