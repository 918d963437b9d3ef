//! Tests of `hostname`.

use rubelet_base::PodName;

use super::*;
use crate::test_support::pod;

#[test]
fn names_come_from_the_pod_and_are_cut_to_a_label() {
    let long = "x".repeat(62);
    for (pod_name, hostname, expected, truncated) in [
        ("web", None, "web", false),
        ("web", Some("db"), "db", false),
        ("web", Some(""), "web", false),
        (&*"x".repeat(63), None, &*"x".repeat(63), false),
        (&*"x".repeat(64), None, &*"x".repeat(63), true),
        (&*format!("{long}-yz"), None, &*long, true),
        (
            &*format!("{}.-.yz", "x".repeat(60)),
            None,
            &*"x".repeat(60),
            true,
        ),
    ] {
        let mut pod = pod();
        pod.name = PodName::new("default", pod_name);
        pod.spec.hostname = hostname.map(Into::into);
        let name = pod_hostname(&pod, "cluster.local").unwrap();
        assert_eq!(
            (&*name.name, name.truncated),
            (expected, truncated),
            "{pod_name}"
        );
        assert_eq!(name.kernel_name(true).unwrap(), expected);
    }
    let mut pod = pod();
    pod.name = PodName::new("default", &"-".repeat(70));
    let error = pod_hostname(&pod, "").unwrap_err().to_string();
    assert!(error.starts_with("hostname for pod \"---"), "{error}");
}

#[test]
fn an_override_stands_in_for_name_and_domain() {
    let mut pod = pod();
    pod.spec.hostname = Some("db".into());
    pod.spec.subdomain = Some("sub".into());
    let long = "x".repeat(64);
    for (name, expected) in [
        ("node-7.example.com", Ok("node-7.example.com")),
        (&*long, Ok(&long[..63])),
        ("", Err(())),
        ("no name", Err(())),
    ] {
        pod.spec.hostname_override = Some(name.into());
        let made = pod_hostname(&pod, "cluster.local");
        let made = made.map_err(drop).map(|made| {
            assert_eq!(made.domain, None);
            made.kernel_name(true).unwrap()
        });
        assert_eq!(made, expected.map(str::to_owned), "{name}");
    }
}

#[test]
fn a_subdomain_gives_a_domain_for_the_kernel() {
    let mut pod = pod();
    pod.spec.subdomain = Some("db".into());
    let name = pod_hostname(&pod, "cluster.local").unwrap();
    assert_eq!(name.domain.as_deref(), Some("db.default.svc.cluster.local"));
    assert_eq!(name.kernel_name(false).unwrap(), "web");
    assert_eq!(
        name.kernel_name(true).unwrap(),
        "web.db.default.svc.cluster.local"
    );

    // 36 bytes for the rest.
    let fqdn = |length: usize| {
        pod.clone_with_hostname(length)
            .and_then(|name| name.kernel_name(true))
    };
    assert_eq!(fqdn(35).unwrap().len(), 64);
    let error = fqdn(36).unwrap_err().to_string();
    assert!(
        error.ends_with("(64 characters is the max, 65 characters requested)"),
        "{error}"
    );
}

trait WithHostname {
    fn clone_with_hostname(&self, length: usize) -> Result<PodHostname, HostnameError>;
}

impl WithHostname for Pod {
    fn clone_with_hostname(&self, length: usize) -> Result<PodHostname, HostnameError> {
        let mut pod = self.clone();
        pod.spec.hostname = Some("h".repeat(length).into());
        pod_hostname(&pod, "cluster.local")
    }
}
