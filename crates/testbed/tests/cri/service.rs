//! The runtime as a whole: Version, Status, RuntimeConfig, UpdateRuntimeConfig.

use anyhow::Result;
use rubelet_cri::{RuntimeService, v1};
use rubelet_testbed::CgroupDriver;

use crate::subject::Subject;

#[test]
fn name_and_version_are_reported() -> Result<()> {
    let subject = Subject::shared()?;
    let answer = subject.ask(subject.client().version(v1::VersionRequest::default()))?;
    assert_eq!(answer.runtime_api_version, "v1");
    assert_eq!(answer.version, "0.1.0", "the kubelet's own API version");
    let name = if subject.is_embedded() {
        "rubelet"
    } else {
        "containerd"
    };
    assert_eq!(answer.runtime_name, name);
    assert!(!answer.runtime_version.is_empty());
    Ok(())
}

#[test]
fn runtime_and_network_are_ready_with_handlers() -> Result<()> {
    let subject = Subject::shared()?;
    for verbose in [false, true] {
        let answer = subject.ask(subject.client().status(v1::StatusRequest { verbose }))?;
        let conditions = answer.status.unwrap_or_default().conditions;
        for kind in ["RuntimeReady", "NetworkReady"] {
            let found = conditions.iter().find(|one| one.r#type == kind);
            assert!(found.is_some_and(|one| one.status), "{conditions:#?}");
        }
        let names: Vec<_> = answer
            .runtime_handlers
            .iter()
            .map(|one| &one.name)
            .collect();
        assert!(names.iter().any(|name| name.is_empty()), "{names:?}");
        assert_eq!(answer.info.is_empty(), !verbose);
        if subject.is_embedded() {
            let default = answer
                .runtime_handlers
                .iter()
                .find(|one| one.name.is_empty());
            let features = default.and_then(|one| one.features).unwrap_or_default();
            assert!(features.recursive_read_only_mounts);
            assert!(features.user_namespaces);
            let whole = answer.features.unwrap_or_default();
            assert!(whole.supplemental_groups_policy);
        }
    }
    Ok(())
}

#[test]
fn the_cgroup_driver_is_reported() -> Result<()> {
    let subject = Subject::shared()?;
    let request = v1::RuntimeConfigRequest::default();
    let answer = subject.ask(subject.client().runtime_config(request))?;
    let linux = answer.linux.unwrap_or_default();
    let driver = match CgroupDriver::wanted()? {
        CgroupDriver::Cgroupfs => v1::CgroupDriver::Cgroupfs,
        CgroupDriver::Systemd => v1::CgroupDriver::Systemd,
    };
    assert_eq!(linux.cgroup_driver(), driver);
    Ok(())
}

#[test]
fn the_pod_cidr_can_be_set_repeatedly() -> Result<()> {
    let subject = Subject::alone()?;
    let client = subject.client();
    let request = |range: &str| v1::UpdateRuntimeConfigRequest {
        runtime_config: Some(v1::RuntimeConfig {
            network_config: Some(v1::NetworkConfig {
                pod_cidr: range.into(),
            }),
        }),
    };
    let range = subject.runtime.scratch().subnet();
    for _ in 0..2 {
        subject.ask(client.update_runtime_config(request(&range)))?;
    }
    subject.ask(client.update_runtime_config(request("")))?;
    subject.ask(client.update_runtime_config(v1::UpdateRuntimeConfigRequest::default()))?;
    // Later pods get addresses as before.
    let sandbox = subject.sandbox("ranged")?;
    let wanted = range.trim_end_matches("0/24");
    assert!(sandbox.ip()?.starts_with(wanted), "{}", sandbox.ip()?);
    Ok(())
}
