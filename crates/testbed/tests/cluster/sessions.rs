//! Sessions with containers through the API server: `kubectl exec`, `attach`, `cp`, `run -i` and `port-forward`.

use rubelet_testbed::http::get_tcp;
use rubelet_testbed::images::load_without_shell;
use rubelet_testbed::runtime::Kind;
use rubelet_testbed::wait;
use serde_json::json;
use sim_api::{AccessRule, Credentials};

use crate::joined::{IMAGE, Joined, WAITS, pod};
use crate::outside::TIMEOUT;
use crate::outside::children::{Lines, run_with_input};
use crate::outside::kubectl::{Kubectl, WEB_SOCKET};

#[test]
fn kubectl_exec_works_over_each_protocol() {
    let joined = Joined::start("worker");
    let mut web = pod("web", WAITS);
    let mut side = web["spec"]["containers"][0].clone();
    side["name"] = "side".into();
    side["env"] = json!([{ "name": "WHO", "value": "the side" }]);
    web["spec"]["containers"].as_array_mut().unwrap().push(side);
    joined.create(&web);
    joined.wait_ready("web");
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 251) as u8).collect();
    for client in Kubectl::all_of_cluster(&joined.cluster) {
        let exec = |words: &[&str], input: &[u8]| {
            let mut command = client.command();
            command.args(["exec", "web", "-c", "main"]).args(words);
            run_with_input(&mut command, input)
        };
        let (output, code) = exec(&["--", "echo", "two  words", "&"], b"");
        assert_eq!(
            (output.stdout.as_slice(), code),
            (&b"two  words &\n"[..], 0)
        );

        let script = "echo out; echo err >&2; exit 7";
        let (output, code) = exec(&["--", "sh", "-c", script], b"");
        assert_eq!(output.stdout, b"out\n", "{client}");
        assert!(output.said("err\n"), "{client}: {output:?}");
        assert!(
            output.said("command terminated with exit code 7") && code == 7,
            "{client}: {output:?}"
        );

        // The command ends because its input does.
        let (output, code) = exec(&["-i", "--", "cat"], b"x\n");
        assert_eq!((output.stdout.as_slice(), code), (&b"x\n"[..], 0));
        let (output, code) = exec(&["-i", "--", "cat"], &bytes);
        assert_eq!(code, 0, "{client}");
        assert!(output.stdout == bytes, "{client}: {}", output.stdout.len());

        let (output, code) = exec(&["-c", "side", "--", "sh", "-c", "echo $WHO"], b"");
        assert_eq!((output.stdout.as_slice(), code), (&b"the side\n"[..], 0));
        for words in [
            &["--", "no-such-program"][..],
            &["-c", "nothing", "--", "true"],
        ] {
            let (output, code) = exec(words, b"");
            assert_ne!(code, 0, "{client} {words:?}");
            let named = words.iter().find(|word| word.starts_with("no")).unwrap();
            assert!(output.said(named), "{client}: {output:?}");
        }
    }
}

/// What kubectl shows for a program that the image does not have.
const NO_SHELL: &str = "error: Internal error occurred: error executing command in container: failed to exec in \
     container: OCI runtime exec failed: exec failed: unable to start container process: exec: \"sh\": \
     executable file not found in $PATH";

#[test]
fn kubectl_execs_in_a_container_without_a_shell() {
    let image = "localhost/rubelet/programs:1";
    let joined = Joined::start("worker");
    load_without_shell(&joined.runtime, image, &["sleep", "cat", "echo"]).unwrap();
    let mut small = pod("small", "");
    let container = &mut small["spec"]["containers"][0];
    container["image"] = image.into();
    container["command"] = json!(["sleep", "1000000"]);
    joined.create(&small);
    joined.wait_ready("small");
    for client in Kubectl::all_of_cluster(&joined.cluster) {
        let exec = |words: &[&str], input: &[u8]| {
            run_with_input(client.command().args(["exec", "small"]).args(words), input)
        };
        let (output, code) = exec(&["--", "echo", "two  words"], b"");
        assert_eq!((output.stdout.as_slice(), code), (&b"two  words\n"[..], 0));
        let (output, code) = exec(&["-i", "--", "/bin/cat"], b"fed\n");
        assert_eq!((output.stdout.as_slice(), code), (&b"fed\n"[..], 0));

        let (output, code) = exec(&["--", "sh", "-c", "echo hello"], b"");
        assert_eq!(output.stdout, b"");
        if joined.runtime.kind() == Kind::Crio {
            // It starts the command before it answers, and reports how that ended.
            assert_eq!(code, 255, "{client}: {output:?}");
            assert!(
                output.said("executable file not found in $PATH"),
                "{client}: {output:?}"
            );
            continue;
        }
        assert_eq!(code, 1, "{client}: {output:?}");
        let complaint = without_exec_id(output.stderr.trim_end());
        assert_eq!(complaint, NO_SHELL, "{client}");
    }
}

/// containerd also names its identifier of the command.
fn without_exec_id(complaint: &str) -> String {
    match complaint.split_once("failed to start exec \"") {
        Some((before, after)) => {
            let (_, after) = after.split_once("\": ").unwrap();
            format!("{before}{after}")
        }
        None => complaint.to_owned(),
    }
}

#[test]
fn kubectl_cp_copies_files_in_both_directions() {
    let joined = Joined::start("worker");
    joined.create(&pod("web", WAITS));
    joined.wait_ready("web");
    let (there, back) = (joined.cluster.path("there"), joined.cluster.path("back"));
    let bytes: Vec<u8> = (0..500_000_u32).map(|at| (at % 253) as u8).collect();
    std::fs::write(&there, &bytes).unwrap();
    for client in Kubectl::all_of_cluster(&joined.cluster) {
        let copy = |from: &str, to: &str| {
            let mut command = client.command();
            let (output, code) = run_with_input(command.args(["cp", from, to]), b"");
            assert_eq!(code, 0, "{client} {from} {to}: {output:?}");
        };
        copy(&there.display().to_string(), "web:/tmp/copy");
        copy("web:/tmp/copy", &back.display().to_string());
        assert!(std::fs::read(&back).unwrap() == bytes, "{client}");
        std::fs::remove_file(&back).unwrap();
    }
}

/// Repeats the last line that it has read: containerd forwards input before it attaches the output.
/// A `read` with a time limit would lose what it has read of a line when the time is over.
const REPEATS: &str = "exec 3<&0; (while read line <&3; do echo $line > /tmp/new; mv /tmp/new /tmp/last; done) & \
    while :; do [ ! -e /tmp/last ] || echo got $(cat /tmp/last); sleep 1; done";

#[test]
fn kubectl_debug_attaches_to_the_container_that_it_adds() {
    let joined = Joined::start("worker");
    joined.create(&pod("web", WAITS));
    joined.wait_ready("web");
    for client in Kubectl::all_of_cluster(&joined.cluster) {
        if !client.has_debug() {
            continue;
        }
        let mut command = client.command();
        let image = format!("--image={IMAGE}");
        let debug = ["debug", "-i", "web", "--target=main", &image];
        let rest = [
            "--image-pull-policy=IfNotPresent",
            "--",
            "sh",
            "-c",
            REPEATS,
        ];
        let input = format!("word-{client}\n");
        let command = command.args(debug).args(rest);
        let mut session = Lines::start_with_input(command, input.as_bytes());
        let expected = format!("got word-{client}");
        session.wait("what came back", TIMEOUT, |line| line == expected);
    }
}

#[test]
fn kubectl_attaches_to_containers_and_new_pods() {
    let joined = Joined::start("worker");
    let mut talks = pod("talks", REPEATS);
    talks["spec"]["containers"][0]["stdin"] = true.into();
    joined.create(&talks);
    joined.wait_ready("talks");
    for client in Kubectl::all_of_cluster(&joined.cluster) {
        let mut command = client.command();
        let attach = command.args(["attach", "-i", "talks"]);
        let input = format!("word-{client}\n");
        let mut attached = Lines::start_with_input(attach, input.as_bytes());
        let expected = format!("got word-{client}");
        attached.wait("what came back", TIMEOUT, |line| line == expected);
        drop(attached);

        let mut command = client.command();
        let image = format!("--image={IMAGE}");
        let run = ["run", "once", "-i", "--rm", "--restart=Never", &image];
        let rest = ["--image-pull-policy=IfNotPresent", "--command", "--", "cat"];
        let (output, code) = run_with_input(command.args(run).args(rest), b"through a pod\n");
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(stdout.contains("through a pod\n"), "{client}: {output:?}");
        assert_eq!(code, 0, "{client}: {output:?}");
        joined.wait_gone("once");
    }
}

#[test]
fn kubectl_port_forward_reaches_the_ports_of_a_pod() {
    let joined = Joined::start("worker");
    let script = "mkdir -p /www; echo a page > /www/index.html; exec httpd -f -p 8080 -h /www";
    let mut web = pod("web", script);
    let probe = json!({ "tcpSocket": { "port": 8080 }, "periodSeconds": 1 });
    web["spec"]["containers"][0]["readinessProbe"] = probe;
    joined.create(&web);
    joined.wait_ready("web");
    for client in Kubectl::all_of_cluster(&joined.cluster) {
        let mut command = client.command();
        let forward = [
            "port-forward",
            "--address=127.0.0.1",
            "pod/web",
            ":8080",
            ":8081",
        ];
        let mut forwarding = Lines::start(command.args(forward));
        let mut address = |port: &str| {
            let line = forwarding.wait(port, TIMEOUT, |line| line.ends_with(port));
            let line = line.strip_prefix("Forwarding from ").unwrap().to_owned();
            line.split_once(" -> ").unwrap().0.to_owned()
        };
        let (served, refused) = (address("-> 8080"), address("-> 8081"));
        for _ in 0..2 {
            let answer = get_tcp(&served, "/index.html").unwrap();
            assert_eq!(answer.text(), "a page\n", "{client}");
        }
        assert!(get_tcp(&refused, "/").is_err(), "{client}");
        forwarding.wait("the refusal", TIMEOUT, |line| line.contains("efused"));
    }
}

#[test]
fn a_user_without_pods_exec_is_refused() {
    let joined = Joined::start("worker");
    joined.create(&pod("web", WAITS));
    joined.wait_ready("web");
    let api = joined.cluster.api();
    let token = api.token_of("reader").unwrap();
    api.allow("reader", "get", "pods").unwrap();
    api.allow("reader", "get", "pods/exec").unwrap();
    if let Ok(model) = api.model() {
        model.add_access_rule(AccessRule::deny("reader", "create", "pods/exec"));
    }
    let file = joined.cluster.path("reader.kubeconfig");
    std::fs::write(&file, api.kubeconfig(&Credentials::Token(token))).unwrap();
    let mut said = None;
    // A real server may apply the rules a moment later.
    wait::until("the refusal", TIMEOUT, || {
        let mut command = joined.kubectl.session(WEB_SOCKET);
        command.env("KUBECONFIG", &file);
        let (output, code) = run_with_input(command.args(["exec", "web", "--", "true"]), b"");
        assert_ne!(code, 0, "{output:?}");
        let is_about_exec = output.said(r#"pods "web" is forbidden"#) && output.said("pods/exec");
        said = Some(output);
        Ok(is_about_exec.then_some(()))
    })
    .unwrap_or_else(|error| panic!("{error}: {said:?}"));
}
