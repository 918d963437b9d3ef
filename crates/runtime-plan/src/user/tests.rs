//! Users as pods and images ask for them.

use super::*;

const PASSWD: &str = "# users\nroot:x:0:0:root:/root:/bin/sh\nbroken\nweb:x:33:44:web,,,:/var/www:/bin/false\n+nis\n";
const GROUP: &str = "root:x:0:\nweb:x:44:web\nssl:x:50: web,other\nadm:x:51:root\n";

fn accounts() -> Accounts<'static> {
    Accounts {
        passwd: Some(PASSWD),
        group: Some(GROUP),
    }
}

fn asks(user: Option<i64>, group: Option<i64>) -> v1::LinuxContainerSecurityContext {
    let value = |value| v1::Int64Value { value };
    v1::LinuxContainerSecurityContext {
        run_as_user: user.map(value),
        run_as_group: group.map(value),
        ..Default::default()
    }
}

fn of_image(user: &str) -> Result<ResolvedUser, Refusal> {
    resolve(accounts(), user, None)
}

fn user(uid: u32, gid: u32, groups: &[u32], home: &str) -> ResolvedUser {
    ResolvedUser {
        uid,
        gid,
        additional_gids: groups.to_vec(),
        home: home.into(),
    }
}

#[test]
fn an_images_user_is_looked_up_in_its_own_files() {
    for (text, expected) in [
        ("", user(0, 0, &[0, 51], "/root")),
        ("web", user(33, 44, &[44, 50], "/var/www")),
        ("33", user(33, 44, &[44, 50], "/var/www")),
        ("33:0", user(33, 0, &[0, 50], "/var/www")),
        ("web:ssl", user(33, 50, &[50], "/var/www")),
        ("1000", user(1000, 0, &[0], "/")),
        ("1000:2000", user(1000, 2000, &[2000], "/")),
        ("web:", user(33, 44, &[44, 50], "/var/www")),
    ] {
        assert_eq!(of_image(text).unwrap(), expected, "{text:?}");
    }
}

/// 4294967295 tells the kernel to leave an ID as it is, and the process is still root's.
#[test]
fn no_entry_of_the_image_means_that_an_id_stays_as_it_is() {
    let accounts = Accounts {
        passwd: Some("app:x:4294967295:7:::\nweb:x:7:4294967295:::\n"),
        group: Some("all:x:4294967295:other\n"),
    };
    for text in ["app", "web", "7:all", "4294967295", "7:4294967295"] {
        assert!(resolve(accounts, text, None).is_err(), "{text:?} was taken");
    }
    assert_eq!(resolve(accounts, "7", None).unwrap(), user(7, 0, &[0], "/"));
}

#[test]
fn names_that_the_image_does_not_know_are_refused() {
    for text in ["nobody", "web:nogroup", "a:b:c", "-1", "4294967296", "0:-1"] {
        assert!(of_image(text).is_err(), "{text:?} was taken");
    }
    let empty = Accounts::default();
    assert!(resolve(empty, "web", None).is_err());
    assert_eq!(resolve(empty, "7", None).unwrap(), user(7, 0, &[0], "/"));
}

#[test]
fn the_pods_user_replaces_the_images() {
    let found = |security| resolve(accounts(), "web:ssl", Some(&security));
    assert_eq!(found(asks(Some(7), None)).unwrap(), user(7, 0, &[0], "/"));
    assert_eq!(
        found(asks(Some(33), Some(9))).unwrap(),
        user(33, 9, &[9, 50], "/var/www")
    );
    let named = v1::LinuxContainerSecurityContext {
        run_as_username: "web".into(),
        ..asks(Some(7), None)
    };
    assert_eq!(found(named).unwrap().uid, 33);
    assert!(found(asks(None, Some(9))).is_err());
    assert!(found(asks(Some(i64::from(u32::MAX)), None)).is_err());
}

#[test]
fn groups_of_the_image_count_only_when_they_are_merged() {
    let with = |policy: v1::SupplementalGroupsPolicy| v1::LinuxContainerSecurityContext {
        supplemental_groups: vec![60, 44],
        supplemental_groups_policy: policy.into(),
        ..asks(Some(33), None)
    };
    let groups =
        |security| resolve(accounts(), "", Some(&security)).map(|user| user.additional_gids);
    assert_eq!(
        groups(with(v1::SupplementalGroupsPolicy::Merge)),
        Ok(vec![44, 50, 60])
    );
    assert_eq!(
        groups(with(v1::SupplementalGroupsPolicy::Strict)),
        Ok(vec![44, 60])
    );
    let unknown = v1::LinuxContainerSecurityContext {
        supplemental_groups_policy: 9,
        ..asks(Some(33), None)
    };
    assert!(groups(unknown).is_err());
    let negative = v1::LinuxContainerSecurityContext {
        supplemental_groups: vec![-1],
        ..asks(None, None)
    };
    assert!(groups(negative).is_err());
}
