//! Sessions with crictl, on machines that have it.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;
use rubelet_testbed::http::get_tcp;
use rubelet_testbed::wait;

use crate::outside::children::{Lines, run_with_input};
use crate::subject::{Subject, TIMEOUT};

/// crictl against the runtime; `None` where there is none.
struct Crictl {
    program: PathBuf,
    endpoint: String,
}

impl Crictl {
    fn find(subject: &Subject) -> Option<Self> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let program = std::env::split_paths(&path)
            .map(|directory| directory.join("crictl"))
            .find(|program| program.is_file());
        if program.is_none() {
            subject.skip("crictl is no package of Debian's; put one into PATH");
        }
        Some(Self {
            program: program?,
            endpoint: subject.runtime.endpoint(),
        })
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args([
                "--config",
                "/dev/null",
                "--runtime-endpoint",
                &self.endpoint,
            ])
            .args(["--image-endpoint", &self.endpoint])
            .args(words);
        command
    }
}

#[test]
fn crictl_runs_commands_attaches_and_forwards_ports() -> Result<()> {
    let subject = Subject::shared()?;
    let Some(crictl) = Crictl::find(&subject) else {
        return Ok(());
    };
    let sandbox = subject.sandbox("crictl")?;
    let script = "mkdir -p /www; echo a page > /www/index.html; httpd -p 8080 -h /www; \
                  while read a; do echo got $a; done; sleep 1000";
    let mut config = sandbox.script("main", script);
    config.stdin = true;
    let id = sandbox.start(config)?;
    // containerd 2.1 knows none of the WebSocket protocols of this crictl.
    let transports: &[&str] = match subject.is_embedded() {
        true => &["spdy", "websocket"],
        false => &["spdy"],
    };
    for transport in transports {
        let exec = |words: &[&str], input: &[u8]| {
            let words = [&["exec", "--transport", transport], words].concat();
            run_with_input(&mut crictl.command(&words), input)
        };
        let (output, code) = exec(&[&id, "echo", "hello"], b"");
        let told = (output.stdout.as_slice(), code);
        assert_eq!(told, (&b"hello\n"[..], 0), "{transport}: {output:?}");
        let (output, code) = exec(&["-i", &id, "cat"], b"some input");
        let told = (output.stdout.as_slice(), code);
        assert_eq!(told, (&b"some input"[..], 0), "{transport}: {output:?}");
        let (output, code) = exec(&[&id, "sh", "-c", "echo err >&2; exit 7"], b"");
        assert_ne!(code, 0, "{transport}: {output:?}");
        assert!(output.said("err\n"), "{transport}: {output:?}");
        assert!(output.said("exit code 7"), "{transport}: {output:?}");

        let words = ["attach", "-i", "--transport", transport, &id];
        let mut attached = Lines::start_with_input(&mut crictl.command(&words), b"word\n");
        attached.wait("what came back", TIMEOUT, |line| line == "got word");
        drop(attached);

        // crictl never says which port it has chosen.
        let port = rubelet_testbed::agent::free_port(std::net::Ipv4Addr::LOCALHOST.into())?;
        let ports = format!("{port}:8080");
        let words = [
            "port-forward",
            "--transport",
            transport,
            &sandbox.id,
            &ports,
        ];
        let forwarding = Lines::start(&mut crictl.command(&words));
        let address = format!("127.0.0.1:{port}");
        let answer = wait::until("the page", TIMEOUT, || {
            Ok(get_tcp(&address, "/index.html").ok())
        })?;
        assert_eq!(answer.text(), "a page\n", "{transport}");
        drop(forwarding);
    }
    Ok(())
}
