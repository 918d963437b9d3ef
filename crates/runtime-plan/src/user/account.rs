//! `/etc/passwd` and `/etc/group`. Invalid lines are skipped, as by the C library.

/// A line of `/etc/passwd`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Passwd {
    pub(super) name: String,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) home: String,
}

impl Passwd {
    /// A user ID without a line.
    pub(super) fn unknown(uid: u32) -> Self {
        Self {
            name: String::new(),
            uid,
            gid: 0,
            home: "/".to_owned(),
        }
    }
}

/// A line of `/etc/group`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group<'a> {
    pub(super) name: &'a str,
    pub(super) gid: u32,
    members: &'a str,
}

impl Group<'_> {
    /// Reports whether the user of that name is listed.
    pub(super) fn has(&self, user: &str) -> bool {
        self.members.split(',').any(|member| member.trim() == user)
    }
}

/// The users of `/etc/passwd`, in order.
pub(super) fn users(text: &str) -> impl Iterator<Item = Passwd> {
    lines(text).filter_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        let (uid, gid) = (fields.nth(1)?, fields.next()?);
        let home = fields.nth(1).unwrap_or_default();
        Some(Passwd {
            name: name.to_owned(),
            uid: id(uid)?,
            gid: id(gid)?,
            home: if home.is_empty() { "/" } else { home }.to_owned(),
        })
    })
}

/// The groups of `/etc/group`, in order.
pub(super) fn groups(text: &str) -> impl Iterator<Item = Group<'_>> {
    lines(text).filter_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        let gid = fields.nth(1)?;
        Some(Group {
            name,
            gid: id(gid)?,
            members: fields.next().unwrap_or_default(),
        })
    })
}

/// The largest number is not an ID: to the kernel it means "unchanged", so a process that switches
/// to it would remain root.
fn id(text: &str) -> Option<u32> {
    text.trim().parse().ok().filter(|id| *id != u32::MAX)
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with(['#', '+', '-']))
}
