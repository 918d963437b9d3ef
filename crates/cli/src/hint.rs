//! Suggestions for commands of other tools.

use clap::error::{ContextKind, ContextValue, ErrorKind};

const MANIFESTS: &str = "pods come and go with their manifests: put the file into the manifest directory, \
     edit it there, or remove it; `rubelet get manifests` shows the status of each";

/// Commands of kubectl, crictl, podman and systemctl, and their equivalents here.
const WORDS: &[(&[&str], &str)] = &[
    (
        &["proxy"],
        "`rubelet port-forward` forwards ports of a pod; the agent's socket speaks the Kubernetes API",
    ),
    (
        &["stats", "statsp"],
        "`rubelet top` shows CPU and memory of the node and its pods",
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
        "`rubelet status` shows the state of the node, `rubelet doctor` checks the machine",
    ),
];

/// The same error; for a command of another tool it suggests the equivalent.
pub(super) fn hint(mut error: clap::Error) -> clap::Error {
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
            ("proxy", "port-forward"),
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
