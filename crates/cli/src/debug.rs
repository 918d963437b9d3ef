//! `rubelet debug`: an ephemeral container in a running pod.

mod attach;

use std::hash::{BuildHasher as _, RandomState};

use http::Method;
use serde_json::{Value, json};

use super::{
    agent::{Agent, Call},
    failure::CommandError,
    session::StreamArgs,
    target::{NamespaceArgs, PodArg, name_of, pod_path},
    terminal::Terminal,
};

/// Adds an ephemeral container to a running pod
#[derive(Debug, Clone, clap::Args)]
#[command(
    long_about = "Adds an ephemeral container to a running pod. It is started once. With -it, the \
                  command waits until it runs and attaches to it; without, what the container prints \
                  is in its log. It stays part of the pod until the pod is gone.",
    after_help = "\
Examples:
  rubelet debug -it web --image busybox --target app
  rubelet debug pod/web --image busybox -- ip addr
  rubelet debug web --image busybox --target app -c look -- sh -c 'ps; ls -l /proc/1/root'
  rubelet logs web -c look"
)]
pub(crate) struct DebugArgs {
    #[command(flatten)]
    pod: PodArg,
    /// Image of the container
    #[arg(long, value_name = "IMAGE")]
    image: String,
    /// Container whose processes it can see
    #[arg(long, value_name = "CONTAINER")]
    target: Option<String>,
    /// Name of the container [default: debugger-XXXXX]
    #[arg(short, long, value_name = "NAME")]
    container: Option<String>,
    #[command(flatten)]
    streams: StreamArgs,
    /// Attach to the container when it runs, which -i does too
    #[arg(long)]
    attach: bool,
    #[command(flatten)]
    namespace: NamespaceArgs,
    /// Command and its arguments [default: those of the image]
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub(super) async fn run(
    agent: &Agent,
    args: &DebugArgs,
    terminal: &mut Terminal<'_>,
) -> Result<(), CommandError> {
    let pod = args.pod.find(agent, args.namespace.namespace()).await?;
    let name = args
        .container
        .clone()
        .unwrap_or_else(|| made_up(RandomState::new().hash_one(name_of(&pod))));
    let call = Call {
        method: Method::PATCH,
        url: &pod_path(&pod, "ephemeralcontainers"),
        body: Some((
            "application/strategic-merge-patch+json",
            json!({ "spec": { "ephemeralContainers": [container(args, &name)] } }),
        )),
    };
    if args.container.as_ref().is_some_and(|name| has(&pod, name)) {
        let message = format!(
            "pod {:?} has an ephemeral container {name:?} already; choose another name",
            name_of(&pod)
        );
        return Err(anyhow::anyhow!(message).into());
    }
    agent.call(call).await?;
    if args.attach || args.streams.stdin {
        if args.container.is_none() && !args.streams.quiet {
            terminal.note(&format!("Defaulting debug container name to {name}."));
        }
        let option = args.namespace.option();
        return attach::attach(agent, &pod, &name, args.streams, &option, terminal).await;
    }
    let pod = name_of(&pod);
    terminal.print(format!("pod/{pod}: ephemeral container {name} was added\n"))?;
    if args.command.is_empty() {
        terminal.note("It has no stdin: a shell exits at once. Use -it to get one.");
    }
    let namespace = args.namespace.option();
    terminal.note(&format!(
        "Its log: rubelet logs pod/{pod} -c {name} -f{namespace}"
    ));
    Ok(())
}

fn container(args: &DebugArgs, name: &str) -> Value {
    let mut container = json!({
        "name": name,
        "image": args.image,
        // As in kubectl's profile `general`: what a debugger needs.
        "securityContext": { "capabilities": { "add": ["SYS_PTRACE"] } },
    });
    for (field, set) in [("stdin", args.streams.stdin), ("tty", args.streams.tty)] {
        if set {
            container[field] = true.into();
        }
    }
    if !args.command.is_empty() {
        container["command"] = args.command.as_slice().into();
    }
    if let Some(target) = &args.target {
        container["targetContainerName"] = target.as_str().into();
    }
    container
}

fn has(pod: &Value, name: &str) -> bool {
    let containers = pod["spec"]["ephemeralContainers"].as_array();
    containers
        .into_iter()
        .flatten()
        .any(|container| container["name"] == name)
}

fn made_up(number: u64) -> String {
    format!("debugger-{}", suffix(number))
}

/// A name suffix as kubectl generates it: no vowels, so that it spells no word.
pub(super) fn suffix(mut number: u64) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut name = String::new();
    for _ in 0..5 {
        let index = usize::try_from(number % LETTERS.len() as u64).unwrap_or_default();
        name.push(char::from(LETTERS[index]));
        number /= LETTERS.len() as u64;
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_up_names_are_labels_of_one_length() {
        for number in [0, 1, 26, 27, 12_345_678, u64::MAX] {
            let name = made_up(number);
            assert_eq!(name.len(), "debugger-xxxxx".len(), "{name}");
            assert!(
                name.bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            );
        }
        assert_ne!(made_up(1), made_up(2));
    }
}
