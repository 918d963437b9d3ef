//! `/etc/group`, parsed here: no NSS, so a lookup can neither hang nor load code.

/// The numeric id of a group, from the text of `/etc/group`.
#[must_use]
pub fn id_of(groups: &str, name: &str) -> Option<u32> {
    entries(groups)
        .find(|(found, _)| *found == name)
        .map(|(_, id)| id)
}

/// The name of a group, from the text of `/etc/group`.
#[must_use]
pub fn name_of(groups: &str, id: u32) -> Option<&str> {
    entries(groups)
        .find(|(_, found)| *found == id)
        .map(|(name, _)| name)
}

fn entries(groups: &str) -> impl Iterator<Item = (&str, u32)> {
    groups.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        let id = fields.nth(1)?;
        Some((name, id.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUPS: &str = "root:x:0:\n# a comment\nbroken:x\nrubelet:x:987:ann,bob\nbad:x:y:\n";

    #[test]
    fn names_and_ids_are_found_both_ways() {
        assert_eq!(id_of(GROUPS, "rubelet"), Some(987));
        assert_eq!(name_of(GROUPS, 987), Some("rubelet"));
        assert_eq!(name_of(GROUPS, 0), Some("root"));
    }

    #[test]
    fn unknown_and_broken_entries_are_not_found() {
        for name in ["nobody", "broken", "bad", "", "# a comment"] {
            assert_eq!(id_of(GROUPS, name), None, "{name}");
        }
    }
}
