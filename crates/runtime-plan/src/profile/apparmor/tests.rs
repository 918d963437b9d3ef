//! Tests of `apparmor`.

use super::*;
use crate::host::tests::host;
use rubelet_cri::v1::security_profile::ProfileType;

fn asks(kind: ProfileType, name: &str) -> v1::LinuxContainerSecurityContext {
    v1::LinuxContainerSecurityContext {
        apparmor: Some(v1::SecurityProfile {
            profile_type: kind.into(),
            localhost_ref: name.into(),
        }),
        ..Default::default()
    }
}

#[test]
fn a_host_without_apparmor_refuses_its_own_profiles_and_nothing_else() {
    let without = host();
    for silent in [
        v1::LinuxContainerSecurityContext::default(),
        asks(ProfileType::Unconfined, ""),
        asks(ProfileType::RuntimeDefault, ""),
    ] {
        assert_eq!(apparmor(&silent, &without, &[]).as_deref(), Ok(""));
    }
    let error = apparmor(&asks(ProfileType::Localhost, "mine"), &without, &[]).unwrap_err();
    assert!(error.message.starts_with("apparmor is not supported"));
    assert!(error.message.contains("mine"), "{error:?}");
}

#[test]
fn a_host_with_apparmor_confines_with_what_is_loaded() {
    let with = HostFacts {
        apparmor: true,
        ..host()
    };
    let loaded = [APPARMOR_DEFAULT.to_owned(), "mine".to_owned()];
    let nothing = v1::LinuxContainerSecurityContext::default();
    let own = asks(ProfileType::Localhost, "mine");
    assert_eq!(
        apparmor(&nothing, &with, &loaded).as_deref(),
        Ok(APPARMOR_DEFAULT)
    );
    assert_eq!(apparmor(&nothing, &with, &[]).as_deref(), Ok(""));
    assert_eq!(apparmor(&own, &with, &loaded).as_deref(), Ok("mine"));
    assert!(apparmor(&own, &with, &[]).is_err());
    assert!(apparmor(&asks(ProfileType::RuntimeDefault, ""), &with, &[]).is_err());
    let privileged = v1::LinuxContainerSecurityContext {
        privileged: true,
        ..asks(ProfileType::RuntimeDefault, "")
    };
    assert_eq!(apparmor(&privileged, &with, &loaded).as_deref(), Ok(""));
    let set = v1::LinuxContainerSecurityContext {
        privileged: true,
        ..own
    };
    assert_eq!(apparmor(&set, &with, &loaded).as_deref(), Ok("mine"));
    assert!(apparmor(&asks(ProfileType::Unconfined, "mine"), &with, &loaded).is_err());
}
