//! nftables tables named after a bridge of an instance, and the rules for it in iptables' chain.

use std::process::Command;

use anyhow::Result;

use crate::command::{output_of, stdout_of};
use crate::packages::NFT;
use crate::scratch::BRIDGE_PREFIX;

/// Family and name of each table of an instance, live or dead.
pub(crate) fn tables() -> Result<Vec<(String, String)>> {
    let output = output_of(Command::new(NFT).args(["list", "tables"]))?;
    // A kernel without nftables has no tables.
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(parse(&text)
        .filter(|(_, name)| name.starts_with(BRIDGE_PREFIX))
        .collect())
}

/// A rule for the pods of a bridge in the chain `FORWARD` of iptables.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ForwardRule {
    pub(crate) family: &'static str,
    pub(crate) bridge: String,
    handle: String,
}

/// The rules of all instances, live or dead.
pub(crate) fn forward_rules() -> Result<Vec<ForwardRule>> {
    let mut found = Vec::new();
    for family in ["ip", "ip6"] {
        let mut list = Command::new(NFT);
        list.args(["-a", "list", "chain", family, "filter", "FORWARD"]);
        // Without rules of iptables there is no such chain.
        let text = String::from_utf8_lossy(&output_of(&mut list)?.stdout).into_owned();
        found.extend(parse_rules(&text, family));
    }
    Ok(found)
}

fn parse_rules(text: &str, family: &'static str) -> Vec<ForwardRule> {
    let rule = |line: &str| {
        let (_, rest) = line.split_once("comment \"rubelet: pods on ")?;
        let (bridge, rest) = rest.split_once('"')?;
        let (_, handle) = rest.split_once("# handle ")?;
        bridge.starts_with(BRIDGE_PREFIX).then(|| ForwardRule {
            family,
            bridge: bridge.to_owned(),
            handle: handle.trim().to_owned(),
        })
    };
    text.lines().filter_map(rule).collect()
}

/// Removes the tables with the name of this bridge, and the rules for it.
pub(crate) fn remove(bridge: &str) -> Result<()> {
    for rule in forward_rules()? {
        if rule.bridge == bridge {
            let mut delete = Command::new(NFT);
            delete.args(["delete", "rule", rule.family, "filter", "FORWARD"]);
            stdout_of(delete.args(["handle", &rule.handle]))?;
        }
    }
    for (family, name) in tables()? {
        if name == bridge {
            stdout_of(Command::new(NFT).args(["delete", "table", &family, &name]))?;
        }
    }
    Ok(())
}

/// Elements of single pods in the tables with the name of this bridge: their addresses and ports.
pub(crate) fn elements_of(bridge: &str) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for (family, name) in tables()? {
        if name != bridge {
            continue;
        }
        let text = stdout_of(Command::new(NFT).args(["list", "table", &family, &name]))?;
        found.extend(
            text.lines()
                .map(str::trim)
                .filter(|line| line.starts_with("elements") || line.contains("dnat to"))
                .map(|line| format!("firewall {family} {name}: {line}")),
        );
    }
    Ok(found)
}

fn parse(text: &str) -> impl Iterator<Item = (String, String)> {
    text.lines().filter_map(|line| {
        let mut words = line.strip_prefix("table ")?.split(' ').map(str::to_owned);
        words.next().zip(words.next())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_a_family_and_a_name() {
        let found: Vec<_> = parse("table ip nat\ntable inet rblt7\n").collect();
        assert_eq!(found[1], ("inet".to_owned(), "rblt7".to_owned()));
    }

    #[test]
    fn rules_are_identified_by_their_comments() {
        let text = r#"
        iifname "rblt1" counter packets 0 bytes 0 accept comment "rubelet: pods on rblt1" # handle 12
        iifname "cni0" counter packets 0 bytes 0 accept comment "rubelet: pods on cni0" # handle 13
        "#;
        let rule = ForwardRule {
            family: "ip",
            bridge: "rblt1".to_owned(),
            handle: "12".to_owned(),
        };
        assert_eq!(parse_rules(text, "ip"), [rule]);
    }
}
