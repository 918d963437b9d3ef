//! kubectl's sessions with containers through the socket.

use rubelet_testbed::http::get_tcp;

use crate::outside::children::{Lines, run_with_input};
use crate::outside::kubectl::{Kubectl, SPDY, WEB_SOCKET};
use crate::outside::{self, PodText, TIMEOUT};

#[test]
fn kubectl_sessions_work_through_the_socket() {
    let script = "mkdir -p /www; echo a page > /www/index.html; exec httpd -f -p 8080 -h /www";
    let (_runtime, agent) = outside::with_pods(&[PodText::new("web").script(script)]);
    let kubectl = Kubectl::to(&agent.api_socket());
    for protocol in [WEB_SOCKET, SPDY] {
        let exec = |words: &[&str], input: &[u8]| {
            let mut command = kubectl.session(protocol);
            run_with_input(command.args(["exec", "web-testnode"]).args(words), input)
        };
        let (output, code) = exec(&["--", "echo", "hello"], b"");
        assert_eq!(output.stdout, b"hello\n", "{protocol}: {output:?}");
        assert_eq!(code, 0, "{protocol}: {output:?}");
        let (output, code) = exec(&["-i", "--", "cat"], b"x\n");
        assert_eq!((output.stdout.as_slice(), code), (&b"x\n"[..], 0));
        let (output, code) = exec(&["--", "sh", "-c", "exit 7"], b"");
        assert_eq!(code, 7, "{protocol}: {output:?}");
        assert!(output.said("exit code 7"), "{protocol}: {output:?}");
        // The server of the pod may start a moment after its container.
        let listens = "until wget -q -O - http://127.0.0.1:8080/index.html; do :; done";
        let (output, _) = exec(&["--", "sh", "-c", listens], b"");
        assert_eq!(output.stdout, b"a page\n", "{protocol}: {output:?}");

        let mut command = kubectl.session(protocol);
        let forward = [
            "port-forward",
            "--address=127.0.0.1",
            "web-testnode",
            ":8080",
        ];
        let mut forwarding = Lines::start(command.args(forward));
        let line = forwarding.wait("the port", TIMEOUT, |line| line.ends_with("-> 8080"));
        let address = line.strip_prefix("Forwarding from ").unwrap();
        let (address, _) = address.split_once(" -> ").unwrap();
        for _ in 0..2 {
            let answer = get_tcp(address, "/index.html").unwrap();
            assert_eq!(answer.text(), "a page\n", "{protocol}");
        }
    }
}
