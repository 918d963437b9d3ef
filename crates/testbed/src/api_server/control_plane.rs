//! A control plane of real programs on ports of 127.0.0.1: etcd, the API server, the controllers and
//! the scheduler, in a private directory.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use sim_api::{Authority, User};

use super::client::Client;
use super::files::{self, Files};
use super::programs::Programs;
use super::{LIFETIME, audit, now};
use crate::agent::process::Process;
use crate::scratch::Scratch;
use crate::scratch::lock::HostLock;
use crate::{cleanup, report, wait};

/// Timeout of a program's start on a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(120);
/// Poll interval of the start.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const AUDIT_LOG: &str = "audit.log";
/// The issuer of tokens of service accounts.
const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// A running control plane. When the value is dropped, its processes are killed and its directory is
/// removed.
pub struct ControlPlane {
    pub(super) authority: Authority,
    pub(super) client: Client,
    address: SocketAddr,
    scratch: Scratch,
    api_server: Mutex<Process>,
    others: Vec<Process>,
}

impl ControlPlane {
    /// Starts all programs and waits until pods can be created.
    pub(super) fn start(programs: &Programs) -> Result<Self> {
        let scratch = Scratch::create(&HostLock::take()?)?;
        let built = Self::build(programs, &scratch);
        let mut plane = match built {
            Ok(plane) => plane,
            Err(error) => {
                remove(&scratch);
                return Err(error);
            }
        };
        // From here on, dropping the value stops all started programs.
        for other in plane.others.iter_mut().take(1) {
            other.start()?;
        }
        plane.start_api_server()?;
        for (path, object) in files::bootstrap_objects() {
            plane.client.post(path, &object)?;
        }
        for other in plane.others.iter_mut().skip(1) {
            other.start()?;
        }
        // Without the account no pod is admitted, and without the map none of them starts.
        for object in [
            ("serviceaccounts", "default", "default"),
            ("configmaps", "default", "kube-root-ca.crt"),
        ] {
            let there = |found: Option<&serde_json::Value>| found.is_some();
            let waited = plane.client.wait_for(object, START_TIMEOUT, there);
            waited.with_context(|| plane.log_ends()).map(drop)?;
        }
        Ok(plane)
    }

    fn build(programs: &Programs, scratch: &Scratch) -> Result<Self> {
        let authority = Authority::new(now()?)?;
        let address = SocketAddr::new(LOCALHOST, scratch.port(0));
        let files = Files::write(scratch.dir(), &authority, &format!("https://{address}"))?;
        let admin = authority.client(&User::admin(), now()?, LIFETIME)?;
        let client = Client::new(address, &authority.pem(), &admin)?;
        let process = |name: &str, arguments: Vec<String>| Process {
            scratch: scratch.clone(),
            program: programs.path(name),
            arguments: arguments.into_iter().map(OsString::from).collect(),
            environment: Vec::new(),
            log: scratch.dir().join(format!("{name}.log")),
            child: None,
            started_at: None,
            boot_id: None,
        };
        let store = format!("http://{LOCALHOST}:{}", scratch.port(1));
        let peers = format!("http://{LOCALHOST}:{}", scratch.port(2));
        Ok(Self {
            authority,
            client,
            address,
            scratch: scratch.clone(),
            api_server: Mutex::new(process(
                "kube-apiserver",
                api_server(&files, address, &store),
            )),
            others: vec![
                process("etcd", etcd(&files, &store, &peers)),
                process("kube-controller-manager", controllers(&files)),
                process("kube-scheduler", scheduler(&files)),
            ],
        })
    }

    pub(super) fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// Kills the API server; the other programs continue.
    pub(super) fn kill_api_server(&self) -> Result<()> {
        self.process().kill9()
    }

    /// Starts the API server and waits until it is ready.
    pub(super) fn start_api_server(&self) -> Result<()> {
        self.process().start()?;
        let waited = wait::until_every(
            POLL_INTERVAL,
            "the API server is ready",
            START_TIMEOUT,
            || {
                if self.process().has_ended() {
                    bail!("kube-apiserver has ended");
                }
                let answer = self.client.ask("GET", "/readyz", None);
                Ok(answer.ok().filter(|answer| answer.status == 200).map(drop))
            },
        );
        waited.with_context(|| self.log_ends())
    }

    /// The rejected requests of nodes.
    pub(super) fn violations(&self) -> Result<Vec<String>> {
        let path = self.scratch.dir().join(AUDIT_LOG);
        let log = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        Ok(audit::refused(&log))
    }

    fn process(&self) -> MutexGuard<'_, Process> {
        self.api_server
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn log_ends(&self) -> String {
        let mut text = String::new();
        let api_server = self.process().log.clone();
        let logs = self.others.iter().map(|other| other.log.clone());
        for log in logs.chain([api_server]) {
            let end = report::tail(&log, 12);
            text.push_str(&format!("--- end of {}\n{end}\n", log.display()));
        }
        text
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        let api_server = self.api_server.get_mut();
        let api_server = api_server.unwrap_or_else(PoisonError::into_inner);
        for process in std::iter::once(api_server).chain(&mut self.others) {
            if process.pid().is_some()
                && let Err(error) = process.kill9()
            {
                report::say(&format!("{error:#}"));
            }
        }
        remove(&self.scratch);
    }
}

fn remove(scratch: &Scratch) {
    let removed = HostLock::take().and_then(|lock| cleanup::remove(scratch, &lock));
    if let Err(error) = removed {
        report::say(&format!("{error:#}"));
    }
}

fn etcd(files: &Files, store: &str, peers: &str) -> Vec<String> {
    vec![
        format!("--data-dir={}", files.path("etcd").display()),
        format!("--listen-client-urls={store}"),
        format!("--advertise-client-urls={store}"),
        format!("--listen-peer-urls={peers}"),
        format!("--initial-advertise-peer-urls={peers}"),
        format!("--initial-cluster=default={peers}"),
        // Data lost with the machine belongs to the test only.
        "--unsafe-no-fsync".to_owned(),
    ]
}

fn api_server(files: &Files, address: SocketAddr, store: &str) -> Vec<String> {
    let file = |flag: &str, name: &str| format!("--{flag}={}", files.path(name).display());
    vec![
        format!("--bind-address={}", address.ip()),
        format!("--secure-port={}", address.port()),
        format!("--etcd-servers={store}"),
        "--authorization-mode=Node,RBAC".to_owned(),
        "--enable-admission-plugins=NodeRestriction,ServiceAccount".to_owned(),
        "--enable-bootstrap-token-auth".to_owned(),
        "--allow-privileged".to_owned(),
        "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
        // 127.0.0.1 is not usable for other nodes' pods.
        "--endpoint-reconciler-type=none".to_owned(),
        "--kubelet-preferred-address-types=InternalIP".to_owned(),
        format!("--service-account-issuer={ISSUER}"),
        file("service-account-key-file", "accounts.crt"),
        file("service-account-signing-key-file", "accounts.key"),
        file("client-ca-file", "ca.crt"),
        file("tls-cert-file", "apiserver.crt"),
        file("tls-private-key-file", "apiserver.key"),
        file("kubelet-certificate-authority", "ca.crt"),
        file("kubelet-client-certificate", "to-nodes.crt"),
        file("kubelet-client-key", "to-nodes.key"),
        file("audit-policy-file", "audit-policy.json"),
        file("audit-log-path", AUDIT_LOG),
        file("cert-dir", "certs"),
    ]
}

fn controllers(files: &Files) -> Vec<String> {
    let mut arguments = client(files, "controllers");
    let file = |flag: &str, name: &str| format!("--{flag}={}", files.path(name).display());
    arguments.extend([
        "--use-service-account-credentials".to_owned(),
        file("root-ca-file", "ca.crt"),
        file("cluster-signing-cert-file", "ca.crt"),
        file("cluster-signing-key-file", "ca.key"),
    ]);
    arguments
}

fn scheduler(files: &Files) -> Vec<String> {
    client(files, "scheduler")
}

/// The flags of a program that is only a client of the API server: it does not listen.
fn client(files: &Files, name: &str) -> Vec<String> {
    let kubeconfig = files.path(&format!("{name}.kubeconfig"));
    vec![
        format!("--kubeconfig={}", kubeconfig.display()),
        "--leader-elect=false".to_owned(),
        "--secure-port=0".to_owned(),
    ]
}
