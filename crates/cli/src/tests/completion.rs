//! Names that the scripts of `rubelet completion` ask for.

use std::process::Command;

use rubelet_server::Resource;
use serde_json::json;

use super::fixture::{TestAgent, pod, type_words, words_at};

#[test]
fn names_are_those_of_the_running_agent() {
    let mut agent = TestAgent::start();
    for (namespace, name) in [
        ("default", "web-n1"),
        ("default", "worker-n1"),
        ("db", "pg-n1"),
    ] {
        let mut pod = pod(namespace, name, "app");
        pod["spec"]["initContainers"] = json!([{ "name": "setup" }]);
        agent.node.put(Resource::Pods, pod);
    }
    for (line, expected) in [
        ("exec w", "web-n1\nworker-n1\n"),
        ("exec -it we", "web-n1\n"),
        ("describe pod/w", "pod/web-n1\npod/worker-n1\n"),
        ("exec -n db ", "pg-n1\n"),
        ("logs web-n1 -c ", "main\nsetup\n"),
        ("logs web -c s", "setup\n"),
        ("get pods -n ", "db\ndefault\n"),
        ("exec nope -c ", ""),
        ("exec x", ""),
    ] {
        let mut words = agent.words("__names --");
        words.extend(line.split(' ').map(str::to_owned));
        let ended = type_words(words, &super::fixture::Screens::default(), false);
        assert_eq!(ended.data(), expected, "{line}");
    }
    agent.stop();
    let words = words_at(&agent.socket, "__names -- exec w");
    let ended = type_words(words, &super::fixture::Screens::default(), false);
    assert_eq!(ended.data(), "");
}

#[test]
fn the_script_for_bash_asks_for_names_and_knows_options() {
    let agent = TestAgent::start();
    let home = tempfile::tempdir().unwrap();
    let script = home.path().join("script");
    std::fs::write(&script, agent.type_in("completion bash").data()).unwrap();
    // The program: it knows two pods, and nothing else.
    let program = home.path().join("rubelet");
    let text =
        "#!/bin/sh\n[ \"$1 $2 $3\" = '__names -- exec' ] && printf '%s\\n' web-n1 worker-n1\n";
    std::fs::write(&program, text).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, mode).unwrap();
    let complete = |words: &str| {
        let words = words.replacen("rubelet", &program.display().to_string(), 1);
        let all: Vec<&str> = words.split(' ').collect();
        let [.., before, current] = all.as_slice() else {
            panic!("two words at least");
        };
        let script = format!(
            ". {}; COMP_WORDS=({words}); COMP_CWORD={}; _rubelet_names {} '{current}' {before}; \
             echo \"${{COMPREPLY[*]}}\"",
            script.display(),
            all.len() - 1,
            program.display(),
        );
        let output = Command::new("bash").args(["-c", &script]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(complete("rubelet exec w"), "web-n1 worker-n1\n");
    let options = complete("rubelet logs --al");
    assert!(options.contains("--all-containers"), "{options}");
}

#[test]
fn the_scripts_of_other_shells_ask_for_names_too() {
    let agent = TestAgent::start();
    let zsh = agent.type_in("completion zsh").data();
    assert!(zsh.starts_with("#compdef rubelet\n"));
    assert_eq!(zsh.matches("\n_rubelet() {").count(), 1);
    assert_eq!(zsh.matches("\n_rubelet_static() {").count(), 1);
    assert_eq!(zsh.matches("$funcstack[1]").count(), 1);
    let fish = agent.type_in("completion fish").data();
    assert!(fish.ends_with("complete -c rubelet -a '(__rubelet_names)'\n"));
}
