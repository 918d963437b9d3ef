//! Who may use an image that is present.

use super::*;

const REPOSITORY: &str = "registry.example/team/app";

fn secret(uid: &str, hash: &str) -> PullSecret {
    PullSecret {
        uid: uid.into(),
        namespace: "default".into(),
        name: format!("name-{uid}"),
        credential_hash: hash.into(),
    }
}

fn with(secrets: &[PullSecret]) -> PullCredentials {
    PullCredentials {
        kubernetes_secrets: secrets.to_vec(),
        ..PullCredentials::default()
    }
}

fn anybody() -> PullCredentials {
    PullCredentials {
        node_pods_accessible: true,
        ..PullCredentials::default()
    }
}

fn record(credentials: Option<&PullCredentials>) -> PulledRecord {
    recorded(
        None,
        "sha256:1",
        REPOSITORY,
        credentials,
        Timestamp::UNIX_EPOCH,
    )
    .unwrap()
}

fn policy(name: &str) -> VerificationPolicy {
    VerificationPolicy::parse(name, &["registry.example/*".into(), "r.io/a/b".into()]).unwrap()
}

#[test]
fn each_policy_verifies_what_it_says() {
    let (none, known) = (record(None), record(Some(&with(&[secret("1", "h")]))));
    let open = record(Some(&anybody()));
    let empty = record(Some(&PullCredentials::default()));
    // Whose word counts: preloaded, pulling, pulled in unknown circumstances, with a secret, by
    // anybody, with nothing.
    let cases = [
        (None, false),
        (None, true),
        (Some(&none), false),
        (Some(&known), false),
        (Some(&open), false),
        (Some(&empty), false),
    ];
    for (name, repository, expected) in [
        ("NeverVerify", REPOSITORY, "++++++"),
        ("NeverVerifyPreloadedImages", REPOSITORY, "+--?+-"),
        ("NeverVerifyAllowlistedImages", REPOSITORY, "++++++"),
        ("NeverVerifyAllowlistedImages", "r.io/a/b", "++++++"),
        ("NeverVerifyAllowlistedImages", "r.io/a/bc", "------"),
        (
            "NeverVerifyAllowlistedImages",
            "registry.example.evil/x",
            "------",
        ),
        ("AlwaysVerify", REPOSITORY, "---?+-"),
        // Another name of the same image is as good as none.
        ("NeverVerifyPreloadedImages", "other.example/app", "+-----"),
    ] {
        let found: String = cases
            .iter()
            .map(
                |(record, pulling)| match access(&policy(name), repository, *record, *pulling) {
                    ImageGrant::ByPolicy | ImageGrant::ByRecord => '+',
                    ImageGrant::Denied => '-',
                    ImageGrant::With(_) => '?',
                },
            )
            .collect();
        assert_eq!(found, expected, "{name} {repository}");
    }
    assert_eq!(VerificationPolicy::parse("Sometimes", &[]), None);
}

#[test]
fn a_known_secret_by_content_or_name_is_enough() {
    let known = with(&[secret("1", "h"), secret("broken", "")]);
    let learned = CredentialMatch::Learned;
    for (shown, expected) in [
        (vec![], CredentialMatch::Unknown),
        (vec![secret("1", "h")], CredentialMatch::Known),
        (vec![secret("2", "h")], learned(secret("2", "h"))),
        (vec![secret("1", "new")], learned(secret("1", "new"))),
        (vec![secret("2", "other")], CredentialMatch::Unknown),
        // A hash that could not be made is nobody's.
        (vec![secret("2", "")], CredentialMatch::Unknown),
        (
            vec![secret("2", "no"), secret("1", "h")],
            CredentialMatch::Known,
        ),
    ] {
        assert_eq!(compare(&known, &shown, None), expected, "{shown:?}");
    }
    // Nobody can make the record grow for ever.
    let many: Vec<_> = (0..100)
        .map(|number| secret(&number.to_string(), "h"))
        .collect();
    assert_eq!(
        compare(&with(&many), &[secret("x", "h")], None),
        CredentialMatch::Known
    );
    assert_eq!(
        compare(&with(&many), &[secret("1", "n")], None),
        CredentialMatch::Unknown
    );
    let account = PullServiceAccount {
        uid: "u".into(),
        ..PullServiceAccount::default()
    };
    let accounts = PullCredentials {
        kubernetes_service_accounts: vec![account.clone()],
        ..PullCredentials::default()
    };
    assert_eq!(
        compare(&accounts, &[], Some(&account)),
        CredentialMatch::Known
    );
    let other = PullServiceAccount::default();
    assert_eq!(
        compare(&accounts, &[], Some(&other)),
        CredentialMatch::Unknown
    );
    assert_eq!(compare(&accounts, &[], None), CredentialMatch::Unknown);
}

#[test]
fn records_grow_by_what_is_new_and_anybody_outweighs_all() {
    let at = |second| Timestamp::from_second(second).unwrap();
    let add = |old: &PulledRecord, new: &PullCredentials| {
        recorded(Some(old), "sha256:1", REPOSITORY, Some(new), at(9))
    };
    let first = record(Some(&with(&[secret("2", "a")])));
    assert_eq!(add(&first, &with(&[secret("2", "a")])), None);
    assert_eq!(add(&first, &PullCredentials::default()), None);
    assert_eq!(
        recorded(Some(&first), "sha256:1", REPOSITORY, None, at(9)),
        None
    );
    let second = add(&first, &with(&[secret("1", "a")])).unwrap();
    assert_eq!(second.last_updated_time, at(9));
    let known = &second.credential_mapping[REPOSITORY];
    assert_eq!(*known, with(&[secret("1", "a"), secret("2", "a")]));
    let third = add(&second, &with(&[secret("1", "b")])).unwrap();
    let known = &third.credential_mapping[REPOSITORY];
    assert_eq!(*known, with(&[secret("1", "b"), secret("2", "a")]));
    let open = add(&third, &anybody()).unwrap();
    assert_eq!(open.credential_mapping[REPOSITORY], anybody());
    assert_eq!(add(&open, &with(&[secret("3", "c")])), None);
    let other = recorded(
        Some(&open),
        "sha256:1",
        "r.io/x",
        Some(&with(&[secret("1", "a")])),
        at(9),
    );
    assert_eq!(other.unwrap().credential_mapping.len(), 2);
}

#[test]
fn records_have_the_kubelets_form() {
    let made = recorded(
        None,
        "sha256:1",
        "docker.io/library/a",
        Some(&with(&[secret("1", "h")])),
        "2024-10-21T12:26:40.5Z".parse().unwrap(),
    )
    .unwrap();
    let expected = r#"{"lastUpdatedTime":"2024-10-21T12:26:40Z","imageRef":"sha256:1","credentialMapping":{"docker.io/library/a":{"kubernetesSecrets":[{"uid":"1","namespace":"default","name":"name-1","credentialHash":"h"}]}}}"#;
    assert_eq!(serde_json::to_string(&made).unwrap(), expected);
    let open = serde_json::to_string(&anybody()).unwrap();
    assert_eq!(open, r#"{"nodePodsAccessible":true}"#);
}
