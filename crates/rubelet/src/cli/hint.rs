//! What to type in place of commands that other tools have.

use clap::error::{ContextKind, ContextValue, ErrorKind};

const NOT_BUILT: &str = "this is not built yet; on the runtime inside, `crictl -r \
     unix:///run/rubelet/runtime/cri.sock exec -s CONTAINER COMMAND` runs a command in a container, \
     and `rubelet debug` adds a container to a pod";
const MANIFESTS: &str = "pods come and go with their manifests: put the file into the manifest folder, \
     change it there, or take it away; `rubelet get manifests` shows what became of each";

/// Words of kubectl, crictl, podman and systemctl, and what there is here.
const WORDS: &[(&[&str], &str)] = &[
    (
        &["exec", "attach", "cp", "port-forward", "proxy"],
        NOT_BUILT,
    ),
    (
        &["top", "stats", "statsp"],
        "this is not built yet; `/metrics` has numbers of the node",
    ),
    (
        &[
            "apply", "create", "replace", "edit", "patch", "scale", "rollout", "kube", "play",
            "start", "stop", "rm", "kill", "runp",
        ],
        MANIFESTS,
    ),
    (
        &["ps", "pods", "pod", "ls", "list"],
        "`rubelet get pods` lists pods",
    ),
    (&["images"], "`rubelet image ls` lists images"),
    (&["pull"], "`rubelet image pull NAME` pulls an image"),
    (&["rmi"], "`rubelet image rm NAME` removes an image"),
    (
        &["load", "import"],
        "`rubelet image load FILE` loads images from an archive",
    ),
    (
        &["inspect", "inspectp", "show"],
        "`rubelet get pod NAME -o yaml` shows everything about a pod, `rubelet describe NAME` in words",
    ),
    (
        &["info", "health", "check", "check-config"],
        "`rubelet status` tells how the node is, `rubelet doctor` what the machine lacks",
    ),
];

/// The same error; one about a command that this program does not have says what there is instead.
pub(crate) fn hint(mut error: clap::Error) -> clap::Error {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return error;
    }
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    let known = WORDS.iter().find(|(words, _)| words.contains(&&**word));
    if let Some((_, tip)) = known {
        error.remove(ContextKind::SuggestedSubcommand);
        let tip = ContextValue::StyledStrs(vec![(*tip).into()]);
        error.insert(ContextKind::Suggested, tip);
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_other_tools_are_answered_with_those_of_this_one() {
        let typed = |word: &str| {
            let program = clap::Command::new("rubelet").subcommand(clap::Command::new("image"));
            let error = program.try_get_matches_from(["rubelet", word]);
            hint(error.expect_err("no such command")).to_string()
        };
        for (word, tip) in [
            ("exec", "crictl"),
            ("apply", "rubelet get manifests"),
            ("images", "rubelet image ls"),
            ("ps", "rubelet get pods"),
        ] {
            let text = typed(word);
            assert!(text.contains("tip: ") && text.contains(tip), "{text}");
            assert_eq!(text.matches("tip: ").count(), 1, "{text}");
        }
        // A slip of the finger is still understood.
        assert!(typed("imag").contains("'image'"), "{}", typed("imag"));
    }
}
