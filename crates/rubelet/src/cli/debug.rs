//! `rubelet debug`: an ephemeral container beside those of a pod that runs.

use std::hash::{BuildHasher as _, RandomState};

use http::Method;
use serde_json::{Value, json};

use super::{
    agent::{Agent, Call},
    failure::Failure,
    target::{NamespaceArgs, PodArg, name_of, pod_path},
    terminal::Terminal,
};

/// Adds an ephemeral container to a pod that runs
#[derive(Debug, Clone, clap::Args)]
#[command(
    long_about = "Adds an ephemeral container to a pod that runs. It is started once, has no \
                  input and no terminal (it is not interactive), and what it prints is in its log. \
                  It stays part of the pod until the pod is gone.",
    after_help = "\
Examples:
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
    /// Container whose processes it sees
    #[arg(long, value_name = "CONTAINER")]
    target: Option<String>,
    /// Name of the container; without one it is made up
    #[arg(short, long, value_name = "NAME")]
    container: Option<String>,
    #[command(flatten)]
    namespace: NamespaceArgs,
    /// Command and its arguments; without one the image's own is run
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub(super) async fn run(
    agent: &Agent,
    args: &DebugArgs,
    terminal: &mut Terminal<'_>,
) -> Result<(), Failure> {
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
    let pod = name_of(&pod);
    terminal.print(format!("pod/{pod}: ephemeral container {name} was added\n"))?;
    if args.command.is_empty() {
        terminal.note("It has no input: what waits for a command, such as a shell, ends at once.");
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
        // As kubectl's profile `general`: what a debugger needs.
        "securityContext": { "capabilities": { "add": ["SYS_PTRACE"] } },
    });
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

/// A name as kubectl makes them up: letters and digits that spell no word.
fn made_up(mut number: u64) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut name = "debugger-".to_owned();
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
