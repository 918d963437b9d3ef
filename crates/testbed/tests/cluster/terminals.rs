//! Sessions of kubectl on a terminal, and logs that it follows.

use crate::joined::{IMAGE, Joined, WAITS, pod};
use crate::outside::TIMEOUT;
use crate::outside::children::Lines;
use crate::outside::kubectl::{Kubectl, SessionClient};
use crate::outside::terminal::OnTerminal;

/// kubectl on a terminal.
fn on_terminal(client: &SessionClient, words: &[&str]) -> OnTerminal {
    OnTerminal::start(client.command().args(words))
}

/// Its shell has the size of the terminal, and its exit code is that of kubectl.
fn uses_shell(client: &SessionClient, shell: &mut OnTerminal, code: i32) {
    shell.answers("echo $(stty size) $((40 + 2)) here\r", "24 80 42 here");
    shell.types(&format!("exit {code}\r"));
    assert_eq!(shell.ends(), Some(code), "{client}");
}

#[test]
fn kubectl_opens_shells_on_terminals() {
    let joined = Joined::start("worker");
    let mut web = pod("web", WAITS);
    let mut shell = pod("shell", "exec sh -i")["spec"]["containers"][0].clone();
    shell["name"] = "shell".into();
    shell["stdin"] = true.into();
    shell["tty"] = true.into();
    web["spec"]["containers"]
        .as_array_mut()
        .unwrap()
        .push(shell);
    joined.create(&web);
    joined.wait_ready("web");
    let image = format!("--image={IMAGE}");
    let new = [&*image, "--image-pull-policy=IfNotPresent"];
    for client in Kubectl::all_of_cluster(&joined.cluster) {
        let exec = ["exec", "-it", "web", "-c", "main", "--", "sh"];
        uses_shell(&client, &mut on_terminal(&client, &exec), 9);

        let run = [&["run", "once", "-it", "--rm", "--restart=Never"], &new[..]].concat();
        let run = [&run[..], &["--command", "--", "sh"]].concat();
        uses_shell(&client, &mut on_terminal(&client, &run), 0);
        joined.wait_gone("once");

        let attach = ["attach", "-it", "web", "-c", "shell"];
        let mut attached = on_terminal(&client, &attach);
        attached.answers("echo $((5 * 5)) attached\r", "25 attached");
        drop(attached);

        if client.has_debug() {
            let debug = [&["debug", "-it", "web", "--target=main"], &new[..]].concat();
            let debug = [&debug[..], &["--", "sh"]].concat();
            uses_shell(&client, &mut on_terminal(&client, &debug), 0);
        }

        let mut logs = Lines::start(client.command().args(["logs", "-f", "web", "-c", "main"]));
        logs.wait("its first line", TIMEOUT, |line| line == "begins");
    }
}
