//! Completion of object names on an unfinished command line.

use std::time::Duration;

use clap::{Arg, Command};
use rubelet_server::Resource;
use serde_json::Value;

use super::{
    super::{
        agent::{Agent, collection},
        containers,
        failure::CommandError,
        target::{find, name_of, namespace_of},
        terminal::Terminal,
    },
    print,
};

/// Short, since the user waits for it.
const PATIENCE: Duration = Duration::from_secs(1);

/// Prints the names that fit
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct NamesArgs {
    /// Words of the command line, the unfinished one last
    #[arg(last = true)]
    words: Vec<String>,
}

/// Prints the matching names; nothing if no agent runs.
pub(crate) async fn names(
    agent: &Agent,
    args: &NamesArgs,
    program: &Command,
    terminal: &mut Terminal<'_>,
) -> Result<(), CommandError> {
    let Some((line, current)) = CommandLine::read(program, &args.words) else {
        return Ok(());
    };
    let other = line.socket.as_deref().map(|path| Agent::new(path.into()));
    let found = line.names(other.as_ref().unwrap_or(agent));
    let Ok(Ok(mut found)) = tokio::time::timeout(PATIENCE, found).await else {
        return Ok(());
    };
    found.retain(|name| name.starts_with(current));
    found.sort_unstable();
    found.dedup();
    print(&found, terminal)
}

/// The kind of word to complete.
#[derive(Debug, PartialEq, Eq)]
enum NameKind {
    /// With the prefix that is already typed, such as `pod/`.
    Pod(&'static str),
    ContainerOf(String),
    Namespace,
}

/// A command line without its last word.
#[derive(Debug, PartialEq, Eq)]
struct CommandLine {
    wanted: NameKind,
    /// `None` means all.
    namespace: Option<String>,
    socket: Option<String>,
}

impl CommandLine {
    /// Parses as much as possible; the last word is returned beside it. `None` if no name is
    /// expected.
    fn read<'a>(program: &Command, words: &'a [String]) -> Option<(Self, &'a str)> {
        let (current, words) = words.split_last()?;
        let mut command = program.clone();
        let (mut namespace, mut socket) = (Some("default".to_owned()), None);
        let mut positional: Vec<&str> = Vec::new();
        let mut words = words.iter();
        let mut pending = None;
        let mut found_command = false;
        while let Some(word) = words.next() {
            if word == "--" {
                return None;
            }
            let Some((option, value)) = option(&command, program, word) else {
                if found_command {
                    let deeper = command.find_subcommand(word).cloned();
                    match deeper.filter(|_| positional.is_empty()) {
                        Some(deeper) => command = deeper,
                        None => positional.push(word),
                    }
                } else {
                    command = program.find_subcommand(word)?.clone();
                    found_command = true;
                }
                continue;
            };
            let Some(option) = option else { continue };
            let takes = option.get_action().takes_values();
            let value = match value {
                Some(value) => Some(value),
                None if takes => match words.next() {
                    Some(value) => Some(value.clone()),
                    None => {
                        pending = Some(option.get_id().to_string());
                        break;
                    }
                },
                None => None,
            };
            match option.get_id().as_str() {
                "namespace" => namespace = value,
                "all_namespaces" => namespace = None,
                "socket" => socket = value,
                _ => {}
            }
        }
        let wanted = wanted(command.get_name(), &positional, pending.as_deref(), current)?;
        let line = Self {
            wanted,
            namespace,
            socket,
        };
        Some((line, current))
    }

    async fn names(&self, agent: &Agent) -> Result<Vec<String>, CommandError> {
        let namespace = match self.wanted {
            NameKind::Namespace => None,
            _ => self.namespace.as_deref(),
        };
        let pods = agent.list(&collection(Resource::Pods, namespace)).await?;
        let all = |text: &dyn Fn(&Value) -> String| pods.items.iter().map(text).collect();
        Ok(match &self.wanted {
            NameKind::Namespace => all(&|pod| namespace_of(pod).to_owned()),
            NameKind::Pod(before) => all(&|pod| format!("{before}{}", name_of(pod))),
            NameKind::ContainerOf(name) => {
                let pod = find(agent, Resource::Pods, &pods, name, namespace).await?;
                containers::all(&pod)
            }
        })
    }
}

/// The option that a word is, and the value in it; the option is `None` if it is unknown. `None` if
/// the word is not an option.
fn option(
    command: &Command,
    program: &Command,
    word: &str,
) -> Option<(Option<Arg>, Option<String>)> {
    let find = |fits: &dyn Fn(&Arg) -> bool| {
        let mut all = command.get_arguments().chain(program.get_arguments());
        all.find(|arg| fits(arg)).cloned()
    };
    if let Some(long) = word.strip_prefix("--") {
        let (name, value) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (long, None),
        };
        return Some((find(&|arg| arg.get_long() == Some(name)), value));
    }
    let shorts = word.strip_prefix('-').filter(|rest| !rest.is_empty())?;
    for (index, short) in shorts.char_indices() {
        let arg = find(&|arg| arg.get_short() == Some(short));
        if arg
            .as_ref()
            .is_some_and(|arg| arg.get_action().takes_values())
        {
            let rest = shorts[index + short.len_utf8()..].trim_start_matches('=');
            return Some((arg, (!rest.is_empty()).then(|| rest.to_owned())));
        }
        if shorts.len() == index + short.len_utf8() {
            return Some((arg, None));
        }
    }
    None
}

fn wanted(
    command: &str,
    positional: &[&str],
    option: Option<&str>,
    current: &str,
) -> Option<NameKind> {
    let is_pod = |word: &&str| Resource::from_name(word) == Some(Resource::Pods);
    let by_kind = positional.first().is_some_and(is_pod);
    let names = &positional[usize::from(by_kind)..];
    let before = if current.starts_with("pod/") {
        "pod/"
    } else {
        ""
    };
    match option {
        Some("container" | "target") => {
            let name = names.first().copied()?;
            let name = name.split_once('/').map_or(name, |(_, name)| name);
            return Some(NameKind::ContainerOf(name.to_owned()));
        }
        Some("namespace") => return Some(NameKind::Namespace),
        Some("pod") => return Some(NameKind::Pod(before)),
        Some(_) => return None,
        None if current.starts_with('-') => return None,
        None => {}
    }
    match (command, by_kind, names) {
        ("get", true, _) => Some(NameKind::Pod("")),
        ("get", false, []) if !before.is_empty() => Some(NameKind::Pod(before)),
        ("logs", false, [pod]) => Some(NameKind::ContainerOf((*pod).to_owned())),
        ("cp", false, [] | [_]) | ("logs" | "port-forward", false, []) => {
            Some(NameKind::Pod(before))
        }
        ("describe" | "why" | "exec" | "attach" | "restart" | "debug" | "delete", _, [])
        | ("check", false, []) => Some(NameKind::Pod(before)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{super::super::command_line::program, *};

    #[test]
    fn names_belong_where_a_pod_or_a_container_is_meant() {
        let program = program();
        let read = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            CommandLine::read(&program, &words).map(|(line, _)| (line.wanted, line.namespace))
        };
        let (pod, of) = (NameKind::Pod, |name: &str| {
            NameKind::ContainerOf(name.to_owned())
        });
        let default = || Some("default".to_owned());
        for (line, expected) in [
            ("exec ", Some((pod(""), default()))),
            ("exec we", Some((pod(""), default()))),
            ("exec -it -n db we", Some((pod(""), Some("db".to_owned())))),
            ("exec -ndb we", Some((pod(""), Some("db".to_owned())))),
            ("describe -A pod/we", Some((pod("pod/"), None))),
            ("why pod we", Some((pod(""), default()))),
            ("exec web -c ", Some((of("web"), default()))),
            ("exec pod/web -itc ", Some((of("web"), default()))),
            ("logs web ", Some((of("web"), default()))),
            (
                "debug web --image x --target ma",
                Some((of("web"), default())),
            ),
            ("logs --tail 5 we", Some((pod(""), default()))),
            ("logs -n ", Some((NameKind::Namespace, default()))),
            ("cp ./x we", Some((pod(""), default()))),
            ("get pods ", Some((pod(""), default()))),
            ("--socket /x port-forward w", Some((pod(""), default()))),
            ("net ping --pod we", Some((pod(""), default()))),
            ("net trace -n --pod pod/we", Some((pod("pod/"), default()))),
            (
                "net ping --namespace db --pod we",
                Some((pod(""), Some("db".to_owned()))),
            ),
            ("events --for we", Some((pod(""), default()))),
            ("net check we", Some((pod(""), default()))),
            ("net ping we", None),
            ("exec web -- l", None),
            ("exec web ", None),
            ("exec web -", None),
            ("exec -c ", None),
            ("get ev", None),
            ("logs web --tail ", None),
            ("port-forward web 80", None),
            ("no-command x", None),
            ("ex", None),
            ("", None),
        ] {
            assert_eq!(read(line), expected, "{line}");
        }
    }
}
