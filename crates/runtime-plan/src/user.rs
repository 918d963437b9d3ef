//! The user of a container: as requested by the CRI or the image, looked up in the container's own
//! `/etc/passwd` and `/etc/group`.

mod account;
#[cfg(test)]
mod tests;

use rubelet_cri::v1;

use crate::Refusal;
use account::Passwd;

/// The identity of a container's processes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResolvedUser {
    /// User ID.
    pub uid: u32,
    /// Group ID.
    pub gid: u32,
    /// All groups in order, the primary one among them.
    pub additional_gids: Vec<u32>,
    /// Home directory; `/` for a user that is not in `/etc/passwd`.
    pub home: String,
}

/// The text of the two files of the container's root file system; `None` where one is missing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Accounts<'a> {
    /// `/etc/passwd`.
    pub passwd: Option<&'a str>,
    /// `/etc/group`.
    pub group: Option<&'a str>,
}

/// The user that the caller or the image requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RequestedUser<'a> {
    user: &'a str,
    group: Option<&'a str>,
}

/// Reads an image's user: `user[:group]`, each a name or a number.
///
/// # Errors
/// More than two parts.
fn parse(image_user: &str) -> Result<RequestedUser<'_>, Refusal> {
    let (user, group) = match image_user.split_once(':') {
        None => (image_user, None),
        Some((_, group)) if group.contains(':') => {
            return Err(Refusal::new(
                "image.config.User",
                format!("invalid USER value {image_user:?}: it has more than two parts"),
            ));
        }
        Some((user, group)) => (user, Some(group)),
    };
    Ok(RequestedUser {
        user: if user.is_empty() { "0" } else { user },
        group: group.filter(|group| !group.is_empty()),
    })
}

/// Resolves the identity. `runAsUser` or `runAsUserName` with `runAsGroup` replace the image's user
/// and group altogether. Groups that `/etc/group` lists the user in are added unless the policy is
/// `Strict`; `supplemental_groups` are always.
///
/// # Errors
/// A group without a user, a number out of range, a name that the container's files don't know, an
/// unknown policy.
pub fn resolve(
    accounts: Accounts<'_>,
    image_user: &str,
    security: Option<&v1::LinuxContainerSecurityContext>,
) -> Result<ResolvedUser, Refusal> {
    let empty = v1::LinuxContainerSecurityContext::default();
    let security = security.unwrap_or(&empty);
    let run_as_user = security.run_as_user.map(|id| id.value.to_string());
    let run_as_group = security.run_as_group.map(|id| id.value.to_string());
    let own = match (&*security.run_as_username, &run_as_user) {
        ("", None) => None,
        ("", Some(number)) => Some(number.as_str()),
        (name, _) => Some(name),
    };
    let (field, requested) = match own {
        Some(user) => (
            "linux.security_context.run_as_user",
            RequestedUser {
                user,
                group: run_as_group.as_deref(),
            },
        ),
        None => {
            if let Some(group) = run_as_group {
                return Err(Refusal::new(
                    "linux.security_context.run_as_group",
                    format!("user group {group:?} is specified without user"),
                ));
            }
            ("image.config.User", parse(image_user)?)
        }
    };
    let passwd = find_user(field, requested.user, accounts.passwd)?;
    let gid = match requested.group {
        None => passwd.gid,
        Some(group) => find_group(field, group, accounts.group)?,
    };
    let mut others = vec![gid];
    match v1::SupplementalGroupsPolicy::try_from(security.supplemental_groups_policy) {
        Ok(v1::SupplementalGroupsPolicy::Merge) => {
            let name = passwd.name.as_str();
            let listed = account::groups(accounts.group.unwrap_or_default())
                .filter(|group| !name.is_empty() && group.name != name && group.has(name));
            others.extend(listed.map(|group| group.gid));
        }
        Ok(v1::SupplementalGroupsPolicy::Strict) => {}
        Err(_) => {
            return Err(Refusal::new(
                "linux.security_context.supplemental_groups_policy",
                format!(
                    "policy {} is not supported; Merge and Strict are",
                    security.supplemental_groups_policy
                ),
            ));
        }
    }
    for group in &security.supplemental_groups {
        let group = in_range(*group).ok_or_else(|| {
            Refusal::new(
                "linux.security_context.supplemental_groups",
                format!("group {group} is out of range"),
            )
        })?;
        others.push(group);
    }
    others.sort_unstable();
    others.dedup();
    Ok(ResolvedUser {
        uid: passwd.uid,
        gid,
        additional_gids: others,
        home: passwd.home,
    })
}

/// A number without an entry is a user of group 0; a name needs an entry.
fn find_user(field: &str, user: &str, passwd: Option<&str>) -> Result<Passwd, Refusal> {
    let text = passwd.unwrap_or_default();
    match user.parse::<i64>() {
        Ok(number) => {
            let uid = in_range(number).ok_or_else(|| {
                Refusal::new(field, format!("invalid USER value {user:?}: uid out of range"))
            })?;
            let known = account::users(text).find(|one| one.uid == uid);
            Ok(known.unwrap_or_else(|| Passwd::unknown(uid)))
        }
        Err(_) => account::users(text)
            .find(|one| one.name == user)
            .ok_or_else(|| {
                Refusal::new(
                    field,
                    format!("no user {user:?} is in the image's /etc/passwd; use a number, or an image that knows the name"),
                )
            }),
    }
}

fn find_group(field: &str, group: &str, text: Option<&str>) -> Result<u32, Refusal> {
    match group.parse::<i64>() {
        Ok(number) => in_range(number).ok_or_else(|| {
            Refusal::new(field, format!("invalid USER value {group:?}: gid out of range"))
        }),
        Err(_) => account::groups(text.unwrap_or_default())
            .find(|one| one.name == group)
            .map(|one| one.gid)
            .ok_or_else(|| {
                Refusal::new(
                    field,
                    format!("no group {group:?} is in the image's /etc/group; use a number, or an image that knows the name"),
                )
            }),
    }
}

/// Runtimes agree on 31 bits, fewer than the kernel has.
fn in_range(number: i64) -> Option<u32> {
    i32::try_from(number)
        .ok()
        .and_then(|number| u32::try_from(number).ok())
}
