//! The NAT rules of the portmap plugin for host ports.
//!
//! Our rules are identified by their comment, which contains the network's name; our chains are the
//! targets of such rules.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::command::stdout_of;

const SAVE: &str = "/usr/sbin/iptables-save";
const IPTABLES: &str = "/usr/sbin/iptables";
/// Prefix of the chains that the plugin creates once per host and never removes.
const SHARED: &str = "CNI-HOSTPORT-";

/// The current NAT rules of network `name`.
///
/// # Errors
/// When the rules can't be listed.
pub(crate) fn rules_of(name: &str) -> Result<Vec<String>> {
    Ok(rules_in(&table()?, name)
        .into_iter()
        .map(|rule| rule.join(" "))
        .collect())
}

/// Removes the rules of network `name` and the chains that only they use.
pub(super) fn remove_rules_of(name: &str) -> Result<()> {
    let rules = rules_in(&table()?, name);
    let chains: Vec<String> = rules.iter().filter_map(|rule| own_target(rule)).collect();
    for rule in &rules {
        delete(rule)?;
    }
    for chain in chains {
        drop_chain(&chain)?;
    }
    Ok(())
}

/// The current shared chains.
pub(crate) fn shared_chains() -> Result<Vec<String>> {
    Ok(chains_in(&table()?))
}

/// Removes the shared chains that are not in `keep`, with the rules that jump to them. Does nothing
/// while a container of this host still has a host port.
pub(crate) fn remove_shared_chains(keep: &[String]) -> Result<()> {
    let table = table()?;
    if all_rules(&table).any(|rule| own_target(&rule).is_some()) {
        return Ok(());
    }
    let chains: Vec<String> = chains_in(&table)
        .into_iter()
        .filter(|chain| !keep.contains(chain))
        .collect();
    for rule in all_rules(&table) {
        if target(&rule).is_some_and(|target| chains.contains(&target.to_owned())) {
            delete(&rule)?;
        }
    }
    chains.iter().try_for_each(|chain| drop_chain(chain))
}

fn table() -> Result<String> {
    if !Path::new(SAVE).exists() {
        return Ok(String::new());
    }
    stdout_of(Command::new(SAVE).args(["-t", "nat"])).context("cannot list the NAT rules")
}

fn nat(words: &[&str]) -> Result<()> {
    stdout_of(Command::new(IPTABLES).args(["-w", "-t", "nat"]).args(words)).map(drop)
}

fn delete(rule: &[String]) -> Result<()> {
    let mut words: Vec<&str> = rule.iter().map(String::as_str).collect();
    words[0] = "-D";
    nat(&words)
}

fn drop_chain(chain: &str) -> Result<()> {
    nat(&["-F", chain])?;
    nat(&["-X", chain])
}

fn chains_in(table: &str) -> Vec<String> {
    let names = table
        .lines()
        .filter_map(|line| line.strip_prefix(':')?.split(' ').next());
    names
        .filter(|name| name.starts_with(SHARED))
        .map(str::to_owned)
        .collect()
}

fn rules_in(table: &str, name: &str) -> Vec<Vec<String>> {
    let mine = |rule: &Vec<String>| {
        rule.iter()
            .any(|word| word.split([' ', '"', '\\']).any(|part| part == name))
    };
    all_rules(table).filter(mine).collect()
}

fn all_rules(table: &str) -> impl Iterator<Item = Vec<String>> {
    table
        .lines()
        .filter(|line| line.starts_with("-A "))
        .map(words_of)
}

fn target(rule: &[String]) -> Option<&str> {
    let at = rule.iter().position(|word| word == "-j")?;
    rule.get(at + 1).map(String::as_str)
}

/// The chain of one container that a rule jumps to.
fn own_target(rule: &[String]) -> Option<String> {
    let target = target(rule)?;
    (target.starts_with("CNI-") && !target.starts_with(SHARED)).then(|| target.to_owned())
}

/// Splits a line of iptables-save into words: double quotes group, a backslash keeps the next
/// character as it is.
fn words_of(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quoted = false;
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => quoted = !quoted,
            '\\' => word.extend(characters.next()),
            ' ' if !quoted => words.push(std::mem::take(&mut word)),
            other => word.push(other),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = r#"*nat
:PREROUTING ACCEPT [0:0]
:CNI-DN-aaaa - [0:0]
:CNI-HOSTPORT-DNAT - [0:0]
-A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT
-A CNI-DN-aaaa -p tcp -m tcp --dport 80 -j DNAT --to-destination 10.88.1.2:80
-A CNI-HOSTPORT-DNAT -p tcp -m comment --comment "dnat name: \"rblt1-rubelet-tAbCdEf\" id: \"x\"" -m multiport --dports 80 -j CNI-DN-aaaa
-A CNI-HOSTPORT-DNAT -p tcp -m comment --comment "dnat name: \"rblt11-rubelet-tOther1\" id: \"y\"" -m multiport --dports 81 -j CNI-DN-bbbb
COMMIT
"#;

    #[test]
    fn a_rule_belongs_to_the_network_that_its_comment_names() {
        let rules = rules_in(TABLE, "rblt1-rubelet-tAbCdEf");
        assert_eq!(rules.len(), 1);
        assert_eq!(own_target(&rules[0]).as_deref(), Some("CNI-DN-aaaa"));
        assert!(rules_in(TABLE, "rblt1").is_empty());
    }

    #[test]
    fn a_quoted_comment_is_one_word() {
        let rules = rules_in(TABLE, "rblt11-rubelet-tOther1");
        assert!(rules[0].contains(&r#"dnat name: "rblt11-rubelet-tOther1" id: "y""#.to_owned()));
    }

    #[test]
    fn shared_chains_are_distinguished_from_container_chains() {
        assert_eq!(chains_in(TABLE), ["CNI-HOSTPORT-DNAT"]);
    }
}
