//! nftables tables named after a bridge of an instance.

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

/// Removes the tables with the name of this bridge.
pub(crate) fn remove(bridge: &str) -> Result<()> {
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
}
