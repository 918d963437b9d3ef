//! External runtimes that don't behave. Scripts stand for them.

use std::fs;

use rubelet_shim::protocol::{Call, FailureKind, RuntimeChoice};

use crate::fixture::{Recipe, Shim, assert_failure, wait_until};

/// Tells what it was called with, then does what the verb says.
const HEAD: &str = r#"
here=$(dirname "$0"); echo "$*" >> "$here/calls"
log=$(echo "$*" | sed 's/.*--log \([^ ]*\).*/\1/')
pidfile=$(echo "$*" | sed 's/.*--pid-file \([^ ]*\).*/\1/')
"#;

fn shim(name: &str, script: &str) -> Shim {
    let mut shim = Shim::start(name, RuntimeChoice::Embedded);
    shim.make_sandbox();
    shim.use_runtime(&format!("{HEAD}{script}"));
    shim
}

fn create(shim: &Shim) -> Call {
    Call::Create(Box::new(shim.prepare("c", "true", Recipe::default())))
}

#[test]
fn a_runtime_that_hangs_holds_up_only_its_container_and_can_be_given_up() {
    let script = r#"case "$*" in *create*) exec sleep 1000;; esac"#;
    let shim = &mut shim("odd-hang", script);
    let call = create(shim);
    let creation = shim.client.request(call.clone(), &[]).unwrap();
    assert_eq!(shim.state().containers.len(), 1);
    assert_failure(&shim.refused(call), FailureKind::AlreadyExists, "c already");
    shim.delete("c");
    let given_up = crate::fixture::failure(shim.client.reply(creation));
    assert_failure(&given_up, FailureKind::WrongState, "deleted");
    let calls = fs::read_to_string(shim.path().join("calls")).unwrap();
    assert!(
        calls
            .lines()
            .last()
            .unwrap()
            .ends_with("--systemd-cgroup delete --force c"),
        "{calls}"
    );
    assert!(shim.state().containers.is_empty());
}

#[test]
fn a_runtime_that_fails_is_quoted_or_said_to_have_failed() {
    let script = r#"case "$*" in *create*) echo '{"level":"error","msg":"no luck today"}' > "$log"; exit 1;; esac"#;
    let shim = &mut shim("odd-fail", script);
    let call = create(shim);
    assert_failure(
        &shim.refused(call.clone()),
        FailureKind::Runtime,
        "odd: no luck today",
    );
    shim.use_runtime("exit 7");
    assert_failure(
        &shim.refused(call.clone()),
        FailureKind::Runtime,
        "(exit status 7)",
    );
    shim.use_runtime("kill -9 $$");
    assert_failure(
        &shim.refused(call.clone()),
        FailureKind::Runtime,
        "killed by signal 9",
    );
    let binary = shim.use_runtime("");
    fs::remove_file(&binary).unwrap();
    assert_failure(&shim.refused(call), FailureKind::Runtime, "cannot execute");
    assert!(shim.state().containers.is_empty());
}

#[test]
fn a_runtime_that_names_no_process_has_failed() {
    for (number, pid) in ["", "echo 1", "echo -5", "echo x", "echo 99999999999"]
        .iter()
        .enumerate()
    {
        let script = format!(r#"case "$*" in *create*) {pid} > "$pidfile";; esac"#);
        let shim = &mut shim(&format!("odd-pid-{number}"), &script);
        let call = create(shim);
        assert_failure(
            &shim.refused(call),
            FailureKind::Runtime,
            "no valid process ID",
        );
        assert!(shim.state().containers.is_empty());
    }
}

#[test]
fn an_init_that_exits_before_its_runtime_is_reported() {
    let script = r#"case "$*" in
        *create*) sh -c '(echo hello; exec sleep 0.02) & echo $! > "$1"' sh "$pidfile"; sleep 0.2;;
        *start*) sleep 0.1;;
    esac"#;
    let shim = &mut shim("odd-short", script);
    let call = create(shim);
    shim.call(call).unwrap();
    // It was over when it was made; there is nothing to start.
    wait_until("the end", || shim.bundle("c").join("exit.json").exists());
    assert_eq!(shim.exit("c").exit_code, 0);
    assert_eq!(shim.lines("c"), ["hello"]);
    let refused = shim.refused(Call::Start { id: "c".into() });
    assert_failure(&refused, FailureKind::WrongState, "has exited");
}
