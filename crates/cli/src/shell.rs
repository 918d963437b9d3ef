//! `rubelet shell`: a shell on the node, in a privileged pod of a tool image.

mod manifest;

use std::{
    hash::{BuildHasher as _, RandomState},
    path::PathBuf,
};

use anyhow::{Context as _, anyhow};
use rubelet_server::Resource;
use rubelet_streaming::SessionKind;
use serde::Deserialize;
use serde_json::Value;

use self::manifest::{CONTAINER, ManifestFile};
use super::{
    agent::{Agent, collection},
    containers,
    debug::suffix,
    failure::CommandError,
    pod_watch,
    session::{Session, StreamArgs},
    signals::EndSignals,
    target::name_of,
    terminal::Terminal,
    url::Url,
};

/// Opens a shell on the node
#[derive(Debug, Clone, clap::Args)]
#[command(
    long_about = "Opens a shell on the node: in a privileged pod of a tool image, with the node's \
                  processes, network and IPC, and its root directory at /host. The command puts a \
                  manifest into the node's static pod directory, and removes it at the end.",
    after_help = "\
Examples:
  rubelet shell --image busybox
  rubelet shell
  rubelet shell -- chroot /host journalctl -u rubelet -f"
)]
pub(crate) struct ShellArgs {
    /// Image with the tools [default: rubelet.toolImage of the configuration]
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
    /// Only print output of the session
    #[arg(short, long)]
    quiet: bool,
    /// Command and its arguments [default: sh]
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub(super) async fn run(
    agent: &Agent,
    args: &ShellArgs,
    terminal: &mut Terminal<'_>,
) -> Result<(), CommandError> {
    let config = agent.get(&Url::new("/configz")).await?;
    let (directory, image) = settings(&config, args.image.as_deref())?;
    // From here on the manifest is removed before the program exits.
    let mut signals = EndSignals::catch()?;
    let name = format!(
        "rubelet-shell-{}",
        suffix(RandomState::new().hash_one(&directory))
    );
    let file = ManifestFile::write(&directory, &name, &image)?;
    // Signals during the session are handled by it; the dropped branch holds no state.
    let ended = tokio::select! {
        ended = in_pod(agent, args, &name, terminal) => ended,
        code = signals.next() => Err(CommandError::Exit(code)),
    };
    file.remove()?;
    ended
}

/// The parts of the node's configuration that this command needs.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NodeConfig {
    static_pod_path: String,
    rubelet: OwnOptions,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct OwnOptions {
    tool_image: String,
}

/// The directory of manifests, and the image.
fn settings(config: &Value, image: Option<&str>) -> Result<(PathBuf, String), CommandError> {
    let config = NodeConfig::deserialize(&config["kubeletconfig"])
        .context("the agent's configuration makes no sense")?;
    if config.static_pod_path.is_empty() {
        return Err(anyhow!(
            "the node has no directory of manifests, which this needs: set `staticPodPath` in its \
             configuration, and restart the agent"
        )
        .into());
    }
    let image = image.unwrap_or(&config.rubelet.tool_image);
    if image.is_empty() {
        return Err(anyhow!(
            "there is no tool image: give one with --image, or set `rubelet.toolImage` in the \
             node's configuration"
        )
        .into());
    }
    Ok((config.static_pod_path.into(), image.to_owned()))
}

/// Waits until the pod runs, and runs the command in it.
async fn in_pod(
    agent: &Agent,
    args: &ShellArgs,
    name: &str,
    terminal: &mut Terminal<'_>,
) -> Result<(), CommandError> {
    let pod = running(agent, name).await?;
    let shell = ["sh".to_owned()];
    let command = match args.command.as_slice() {
        [] => &shell[..],
        command => command,
    };
    let is_terminal = rustix::termios::isatty(&terminal.streams()?.stdin);
    let session = Session {
        kind: SessionKind::Exec,
        pod: &pod,
        container: CONTAINER,
        command,
        args: StreamArgs {
            stdin: true,
            tty: is_terminal,
            quiet: args.quiet,
        },
    };
    session.run(agent, terminal).await
}

/// Waits for the pod of the manifest, and until it runs.
async fn running(agent: &Agent, name: &str) -> Result<Value, CommandError> {
    let url = collection(Resource::Pods, Some(manifest::NAMESPACE));
    let prefix = format!("{name}-");
    let pod = loop {
        let listed = agent.list(&url).await?;
        let mut items = listed.items.into_iter();
        let found = items.find(|pod| name_of(pod) == name || name_of(pod).starts_with(&prefix));
        if let Some(pod) = found {
            break pod;
        }
        tokio::time::sleep(pod_watch::PAUSE).await;
    };
    pod_watch::until(agent, &pod, |pod| match pod {
        None => Some(Err(anyhow!("pod {name} is gone").into())),
        Some(pod) => progress(pod).map(|ready| ready.map(|()| pod.clone())),
    })
    .await?
}

/// Whether the container runs, or the reason if it never will.
fn progress(pod: &Value) -> Option<Result<(), CommandError>> {
    let name = name_of(pod);
    if let Some("Succeeded" | "Failed") = pod["status"]["phase"].as_str() {
        let message = pod["status"]["message"].as_str().unwrap_or_default();
        return Some(Err(anyhow!(
            "pod {name} has ended at once: {message}; an image for this needs `sh` and `sleep`"
        )
        .into()));
    }
    let state = &containers::status(pod, CONTAINER)?["state"];
    if state["running"].is_object() {
        return Some(Ok(()));
    }
    let reason = state["waiting"]["reason"].as_str()?;
    if matches!(reason, "ContainerCreating" | "PodInitializing" | "Pending") {
        return None;
    }
    let message = state["waiting"]["message"].as_str().unwrap_or_default();
    Some(Err(
        anyhow!("pod {name} cannot run: {reason}: {message}").into()
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_missing_in_the_configuration_is_named() {
        let config = |path: &str, image: &str| json!({ "kubeletconfig": { "staticPodPath": path, "rubelet": { "toolImage": image } } });
        for (config, image, expected) in [
            (config("/m", "tools"), None, Ok("tools")),
            (config("/m", "tools"), Some("busybox"), Ok("busybox")),
            (config("/m", ""), None, Err("rubelet.toolImage")),
            (config("", "tools"), None, Err("staticPodPath")),
        ] {
            match (settings(&config, image), expected) {
                (Ok((directory, image)), Ok(expected)) => {
                    assert_eq!((directory.to_str(), image.as_str()), (Some("/m"), expected));
                }
                (Err(CommandError::Error(told)), Err(part)) => {
                    assert!(told.to_string().contains(part), "{told}");
                }
                (found, _) => panic!("{config}: {found:?}"),
            }
        }
    }
}
