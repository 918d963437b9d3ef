//! A real kubectl, from the machine or from Debian's package.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rubelet_testbed::agent::CliOutput;
use rubelet_testbed::command::{output_of, stdout_of};
use rubelet_testbed::packages::{self, kubectl::KubectlRelease};
use rubelet_testbed::{Cluster, api_server};

use super::relay::Relay;

/// Sessions over WebSockets, for a kubectl that supports them; older ones always use SPDY.
pub(crate) const WEB_SOCKET: &str = "true";
/// Sessions over SPDY.
pub(crate) const SPDY: &str = "false";

const PACKAGE: &str = "kubernetes-client";

/// kubectl against one server, without any configuration of the user who runs the test.
pub(crate) struct Kubectl {
    program: PathBuf,
    server: Server,
    home: tempfile::TempDir,
}

/// The server.
enum Server {
    /// Behind a TCP port of the test.
    Relay(Relay),
    /// In a kubeconfig.
    Kubeconfig(PathBuf),
}

impl Kubectl {
    /// Forwards a TCP port to the socket and makes sure that there is a kubectl.
    pub(crate) fn to(socket: &Path) -> Self {
        Self::of("kubectl".into(), Server::Relay(Relay::start(socket)))
    }

    /// The administrator of a cluster, with the kubectl that belongs to its API server if there is one.
    pub(crate) fn of_cluster(cluster: &Cluster) -> Self {
        let program = api_server::kubectl().unwrap();
        Self::of(program, Server::Kubeconfig(cluster.admin_kubeconfig()))
    }

    /// The administrator of a cluster with Debian's newest and oldest kubectl, over each protocol.
    pub(crate) fn all_of_cluster(cluster: &Cluster) -> Vec<SessionClient> {
        let all = [
            ("the newest kubectl", KubectlRelease::Newest, WEB_SOCKET),
            ("the newest kubectl", KubectlRelease::Newest, SPDY),
            ("kubectl 1.20", KubectlRelease::Old, SPDY),
        ];
        let client = |(name, release, protocol)| {
            let program = packages::kubectl::ensure(release).unwrap();
            let server = Server::Kubeconfig(cluster.admin_kubeconfig());
            SessionClient {
                name,
                kubectl: Self::of(program, server),
                protocol,
            }
        };
        all.map(client).into()
    }

    fn of(program: PathBuf, server: Server) -> Self {
        if Command::new(&program).arg("--help").output().is_err() {
            install();
        }
        Self {
            program,
            server,
            home: tempfile::tempdir().unwrap(),
        }
    }

    /// The beginning of a command line.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.env("HOME", self.home.path());
        match &self.server {
            Server::Relay(relay) => command
                .env("KUBECONFIG", "/dev/null")
                .args(["--server", &relay.url()]),
            Server::Kubeconfig(path) => command.env("KUBECONFIG", path),
        };
        command
    }

    /// The beginning of a command line that opens a session over [`WEB_SOCKET`] or [`SPDY`].
    pub(crate) fn session(&self, protocol: &str) -> Command {
        let mut command = self.command();
        command
            .env("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", protocol)
            .env("KUBECTL_PORT_FORWARD_WEBSOCKETS", protocol);
        command
    }

    /// Runs a command.
    pub(crate) fn run(&self, words: &[&str]) -> CliOutput {
        let output = output_of(self.command().args(words)).unwrap();
        CliOutput {
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            code: output.status.code().unwrap_or(-1),
        }
    }

    /// Whether `patch` has this option, which indicates its age.
    pub(crate) fn knows(&self, option: &str) -> bool {
        self.stdout(&["patch", "--help"]).contains(option)
    }

    /// Standard output of a command that must succeed.
    pub(crate) fn stdout(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert_eq!(output.code, 0, "kubectl {words:?}: {}", output.stderr);
        output.stdout
    }
}

/// A kubectl that opens its sessions over one protocol.
pub(crate) struct SessionClient {
    name: &'static str,
    kubectl: Kubectl,
    protocol: &'static str,
}

impl SessionClient {
    /// The beginning of a command line.
    pub(crate) fn command(&self) -> Command {
        self.kubectl.session(self.protocol)
    }

    /// Whether its `debug` sends a request that API servers still support.
    pub(crate) fn has_debug(&self) -> bool {
        self.kubectl
            .stdout(&["debug", "--help"])
            .contains("--profile")
    }
}

impl fmt::Display for SessionClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let protocol = match self.protocol {
            WEB_SOCKET => "a WebSocket",
            _ => "SPDY",
        };
        write!(f, "{} over {protocol}", self.name)
    }
}

fn install() {
    let apt = |words: &[&str]| {
        let mut command = Command::new("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive");
        stdout_of(command.args(["-o", "DPkg::Lock::Timeout=120"]).args(words))
    };
    let install = ["install", "--yes", "--no-install-recommends", PACKAGE];
    // Existing lists may be too old or missing.
    if apt(&install).is_err() {
        apt(&["update"]).unwrap();
        apt(&install).unwrap();
    }
}
