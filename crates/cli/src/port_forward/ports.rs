//! Port arguments: `80`, `8080:80`, `:80`, and the same with names of ports.

use anyhow::anyhow;
use serde_json::Value;

use super::super::{failure::CommandError, target::name_of};

/// A local port and one of the pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PortPair {
    /// 0 for any free one.
    pub(super) local: u16,
    pub(super) remote: u16,
}

/// Parses an argument, with the port names of the pod's containers.
pub(super) fn resolve(word: &str, pod: &Value) -> Result<PortPair, CommandError> {
    let (local, remote) = match word.split_once(':') {
        Some((local, remote)) => (Some(local), remote),
        None => (None, word),
    };
    let wrong = || {
        let message = format!("{word:?} is not [LOCAL_PORT:]REMOTE_PORT");
        CommandError::Usage(message)
    };
    let remote = match remote.parse::<u16>() {
        Ok(0) => return Err(wrong()),
        Ok(number) => checked(number, pod)?,
        Err(_) if is_name(remote) => named(remote, pod)?,
        Err(_) => return Err(wrong()),
    };
    let local = match local {
        None => remote,
        Some("") => 0,
        Some(number) => number.parse().map_err(|_| wrong())?,
    };
    Ok(PortPair { local, remote })
}

/// True for a valid port name. An invalid port number is not a name.
fn is_name(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    text.bytes().all(fits) && text.bytes().any(|byte| byte.is_ascii_lowercase())
}

/// The ports that containers declare: those that run at the same time.
fn declared(pod: &Value) -> impl Iterator<Item = &Value> {
    let all = ["containers", "initContainers"].into_iter();
    let all = all.filter_map(|list| Some((list, pod["spec"][list].as_array()?)));
    all.flat_map(|(list, containers)| containers.iter().map(move |one| (list, one)))
        .filter(|(list, one)| *list == "containers" || one["restartPolicy"] == "Always")
        .filter_map(|(_, one)| one["ports"].as_array())
        .flatten()
}

fn named(name: &str, pod: &Value) -> Result<u16, CommandError> {
    let port = declared(pod).find(|port| port["name"] == name);
    let Some(port) = port else {
        let pod = name_of(pod);
        return Err(anyhow!("pod {pod:?} does not have a named port {name:?}").into());
    };
    if !is_tcp(port) {
        return Err(not_tcp(name, port));
    }
    let number = port["containerPort"].as_u64();
    let number = number.and_then(|number| u16::try_from(number).ok());
    number.ok_or_else(|| anyhow!("port {name:?} has no number").into())
}

/// The number, unless the pod declares it for other protocols than TCP only.
fn checked(number: u16, pod: &Value) -> Result<u16, CommandError> {
    let same = |port: &&Value| port["containerPort"] == number;
    let mut found = declared(pod).filter(same);
    match found.next() {
        Some(first) if !is_tcp(first) && !found.any(is_tcp) => {
            Err(not_tcp(&number.to_string(), first))
        }
        _ => Ok(number),
    }
}

fn is_tcp(port: &Value) -> bool {
    port["protocol"].as_str().is_none_or(|name| name == "TCP")
}

fn not_tcp(which: &str, port: &Value) -> CommandError {
    let protocol = port["protocol"].as_str().unwrap_or_default();
    anyhow!("{protocol} is not supported for port {which}: only TCP can be forwarded").into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ports_are_numbers_and_names() {
        let pod = json!({ "metadata": { "name": "web" }, "spec": {
            "containers": [
                { "ports": [{ "name": "http", "containerPort": 80 },
                            { "name": "dns", "containerPort": 53, "protocol": "UDP" },
                            { "containerPort": 54, "protocol": "UDP" },
                            { "containerPort": 54, "protocol": "TCP" }] },
                {},
            ],
            "initContainers": [
                { "restartPolicy": "Always", "ports": [{ "name": "side", "containerPort": 15 }] },
                { "ports": [{ "name": "past", "containerPort": 1 }] },
            ],
        }});
        let no = |code: &'static str| Err(code);
        for (word, expected) in [
            ("80", Ok((80, 80))),
            ("8080:80", Ok((8080, 80))),
            (":80", Ok((0, 80))),
            ("0:80", Ok((0, 80))),
            ("http", Ok((80, 80))),
            ("8080:http", Ok((8080, 80))),
            (":side", Ok((0, 15))),
            ("54", Ok((54, 54))),
            ("53", no("UDP is not supported for port 53")),
            ("dns", no("UDP is not supported for port dns")),
            ("past", no("does not have a named port \"past\"")),
            ("0", no("is not [LOCAL_PORT:]REMOTE_PORT")),
            ("80:", no("is not [LOCAL_PORT:]REMOTE_PORT")),
            ("70000", no("is not [LOCAL_PORT:]REMOTE_PORT")),
            ("http:80", no("is not [LOCAL_PORT:]REMOTE_PORT")),
            ("1:2:3", no("is not [LOCAL_PORT:]REMOTE_PORT")),
            ("", no("is not [LOCAL_PORT:]REMOTE_PORT")),
        ] {
            match (resolve(word, &pod), expected) {
                (Ok(pair), Ok((local, remote))) => {
                    assert_eq!(pair, PortPair { local, remote }, "{word}");
                }
                (Err(CommandError::Usage(told)), Err(part)) => {
                    assert!(told.contains(part), "{told}");
                }
                (Err(CommandError::Error(told)), Err(part)) => {
                    assert!(told.to_string().contains(part), "{told}");
                }
                (found, _) => panic!("{word}: {found:?}"),
            }
        }
    }
}
