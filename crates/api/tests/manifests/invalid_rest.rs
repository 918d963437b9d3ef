//! What the API server would refuse in volumes, resources and security contexts is refused too.

use serde_json::{Value, json};

use crate::{
    invalid::{LABEL, check, container, pod},
    support::{set, with},
};

#[test]
fn volumes() {
    pod(
        "/spec/volumes",
        json!([{"name": ""}]),
        "spec.volumes[0].name",
        "Required value",
    );
    pod(
        "/spec/volumes",
        json!([{"name": "A"}]),
        "spec.volumes[0].name",
        &format!("Invalid value: \"A\": {LABEL}"),
    );
    pod(
        "/spec/volumes",
        json!([{"name": "a"}, {"name": "a"}]),
        "spec.volumes[1].name",
        "Duplicate value: \"a\"",
    );
    pod(
        "/spec/volumes",
        json!([{"name": "a", "emptyDir": {}, "hostPath": {"path": "/a"}}]),
        "spec.volumes[0].hostPath",
        "Forbidden: a volume has one source; emptyDir is given too",
    );
    pod(
        "/spec/volumes",
        json!([{"name": "a", "emptyDir": {"medium": "RAM"}}]),
        "spec.volumes[0].emptyDir.medium",
        "Unsupported value: \"RAM\": supported values: \"\", \"Memory\"",
    );
    pod(
        "/spec/volumes",
        json!([{"name": "a", "emptyDir": {"medium": "Memory", "sizeLimit": "1GB"}}]),
        "spec.volumes[0].emptyDir.sizeLimit",
        "Invalid value: \"1GB\": \"GB\" is not a suffix; use n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi or Ei",
    );
    pod(
        "/spec/volumes",
        json!([{"name": "a", "hostPath": {"path": ""}}]),
        "spec.volumes[0].hostPath.path",
        "Required value",
    );
    pod(
        "/spec/volumes",
        json!([{"name": "a", "hostPath": {"path": "data"}}]),
        "spec.volumes[0].hostPath.path",
        "Invalid value: \"data\": must be an absolute path",
    );
    pod(
        "/spec/volumes",
        json!([{"name": "a", "hostPath": {"path": "/a/../b"}}]),
        "spec.volumes[0].hostPath.path",
        "Invalid value: \"/a/../b\": must not contain '..'",
    );
    pod(
        "/spec/volumes",
        json!([{"name": "a", "hostPath": {"path": "/a", "type": "Dir"}}]),
        "spec.volumes[0].hostPath.type",
        "Unsupported value: \"Dir\": supported values: \"BlockDevice\", \"CharDevice\", \"Directory\", \"DirectoryOrCreate\", \"File\", \"FileOrCreate\", \"Socket\"",
    );
    container(
        "volumeMounts",
        json!([{"name": "v", "mountPath": "/a"}]),
        "volumeMounts[0].name",
        "Not found: \"v\": the pod has no volume of this name",
    );
}

#[test]
fn mounts() {
    let mount = |mounts: Value, field: &str, message: &str| {
        let mut pod = with("/spec/volumes", json!([{"name": "v"}]));
        set(&mut pod, "/spec/containers/0/volumeMounts", mounts);
        check(
            &pod,
            &[format!("spec.containers[0].volumeMounts{field}: {message}")],
        );
    };
    mount(
        json!([{"name": "", "mountPath": "/a"}]),
        "[0].name",
        "Required value",
    );
    mount(json!([{"name": "v"}]), "[0].mountPath", "Required value");
    mount(
        json!([{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/a"}]),
        "[1].mountPath",
        "Invalid value: \"/a\": must be unique in its container",
    );
    mount(
        json!([{"name": "v", "mountPath": "/a", "subPath": "/b"}]),
        "[0].subPath",
        "Invalid value: \"/b\": must be a relative path",
    );
    mount(
        json!([{"name": "v", "mountPath": "/a", "subPath": "b/../../c"}]),
        "[0].subPath",
        "Invalid value: \"b/../../c\": must not contain '..'",
    );
    mount(
        json!([{"name": "v", "mountPath": "/a", "subPathExpr": "../$(A)"}]),
        "[0].subPathExpr",
        "Invalid value: \"../$(A)\": must not contain '..'",
    );
    mount(
        json!([{"name": "v", "mountPath": "/a", "subPath": "b", "subPathExpr": "c"}]),
        "[0].subPathExpr",
        "Invalid value: \"c\": must not stand beside subPath",
    );
    mount(
        json!([{"name": "v", "mountPath": "/a", "mountPropagation": "Shared"}]),
        "[0].mountPropagation",
        "Unsupported value: \"Shared\": supported values: \"None\", \"Bidirectional\", \"HostToContainer\"",
    );
    mount(
        json!([{"name": "v", "mountPath": "/a", "mountPropagation": "Bidirectional"}]),
        "[0].mountPropagation",
        "Forbidden: Bidirectional needs a privileged container",
    );
    mount(
        json!([{"name": "v", "mountPath": "/a", "recursiveReadOnly": "Yes"}]),
        "[0].recursiveReadOnly",
        "Unsupported value: \"Yes\": supported values: \"Disabled\", \"Enabled\", \"IfPossible\"",
    );
    mount(
        json!([{"name": "v", "mountPath": "/a", "recursiveReadOnly": "IfPossible"}]),
        "[0].recursiveReadOnly",
        "Forbidden: needs readOnly: true",
    );
    mount(
        json!([{
            "name": "v", "mountPath": "/a", "recursiveReadOnly": "Enabled", "readOnly": true,
            "mountPropagation": "HostToContainer",
        }]),
        "[0].recursiveReadOnly",
        "Forbidden: needs mountPropagation: None",
    );
}

#[test]
fn requests_and_limits() {
    container(
        "resources",
        json!({"limits": {"cpu": "1x"}}),
        "resources.limits[cpu]",
        "Invalid value: \"1x\": \"x\" is not a suffix; use n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi or Ei",
    );
    container(
        "resources",
        json!({"limits": {"cpu": "much"}}),
        "resources.limits[cpu]",
        "Invalid value: \"much\": must be a number with an optional suffix, such as 250m, 0.5, 64Mi or 2Gi",
    );
    container(
        "resources",
        json!({"limits": {"memory": "-1"}}),
        "resources.limits[memory]",
        "Invalid value: \"-1\": must not be negative",
    );
    container(
        "resources",
        json!({"limits": {"memory": "16Ei"}}),
        "resources.limits[memory]",
        "Invalid value: \"16Ei\": is larger than 9223372036854775807",
    );
    container(
        "resources",
        json!({"limits": {"cpu": "1"}, "requests": {"cpu": "1500m"}}),
        "resources.requests[cpu]",
        "Invalid value: \"1500m\": must not exceed the limit of 1",
    );
    container(
        "resources",
        json!({"limits": {"disk": "1"}}),
        "resources.limits[disk]",
        "Unsupported value: \"disk\": supported values: \"cpu\", \"memory\", \"hugepages-SIZE\"",
    );
    container(
        "resources",
        json!({"limits": {"cpu": "1", "hugepages-2Mi": "3Mi"}}),
        "resources.limits[hugepages-2Mi]",
        "Invalid value: \"3Mi\": must be a multiple of the page size",
    );
    container(
        "resources",
        json!({"limits": {"cpu": "1", "hugepages-big": "2Mi"}}),
        "resources.limits[hugepages-big]",
        "Invalid value: \"big\": must end in the size of a page, such as hugepages-2Mi",
    );
    container(
        "resources",
        json!({"limits": {"cpu": "1"}, "requests": {"hugepages-2Mi": "2Mi"}}),
        "resources.limits[hugepages-2Mi]",
        "Required value: huge pages need a limit",
    );
    container(
        "resources",
        json!({"limits": {"cpu": "1", "hugepages-2Mi": "4Mi"}, "requests": {"hugepages-2Mi": "2Mi"}}),
        "resources.requests[hugepages-2Mi]",
        "Invalid value: \"2Mi\": must equal the limit of 4Mi",
    );
    container(
        "resources",
        json!({"limits": {"hugepages-2Mi": "4Mi"}}),
        "resources",
        "Forbidden: huge pages need a request or limit of cpu or memory beside them",
    );
}

#[test]
fn security_contexts_of_pods() {
    for field in ["runAsUser", "runAsGroup", "fsGroup"] {
        pod(
            &format!("/spec/securityContext/{field}"),
            json!(-1),
            &format!("spec.securityContext.{field}"),
            "Invalid value: -1: must be from 0 to 2147483647",
        );
    }
    pod(
        "/spec/securityContext",
        json!({"supplementalGroups": [1, 2_147_483_648_u32]}),
        "spec.securityContext.supplementalGroups[1]",
        "Invalid value: 2147483648: must be from 0 to 2147483647",
    );
    pod(
        "/spec/securityContext",
        json!({"fsGroupChangePolicy": "Never"}),
        "spec.securityContext.fsGroupChangePolicy",
        "Unsupported value: \"Never\": supported values: \"Always\", \"OnRootMismatch\"",
    );
    pod(
        "/spec/securityContext",
        json!({"supplementalGroupsPolicy": "Loose"}),
        "spec.securityContext.supplementalGroupsPolicy",
        "Unsupported value: \"Loose\": supported values: \"Merge\", \"Strict\"",
    );
    pod(
        "/spec/securityContext",
        json!({"sysctls": [{"name": "Net.x", "value": "1"}]}),
        "spec.securityContext.sysctls[0].name",
        "Invalid value: \"Net.x\": use up to 253 lower-case letters, digits, '-' and '_', in parts joined by '.' or '/'",
    );
    pod(
        "/spec/securityContext",
        json!({"sysctls": [{"value": "1"}]}),
        "spec.securityContext.sysctls[0].name",
        "Required value",
    );
    pod(
        "/spec/securityContext",
        json!({"sysctls": [{"name": "net.a", "value": "1"}, {"name": "net/a", "value": "2"}]}),
        "spec.securityContext.sysctls[1].name",
        "Duplicate value: \"net.a\"",
    );
    let mut host = with("/spec/hostNetwork", json!(true));
    set(
        &mut host,
        "/spec/securityContext",
        json!({"sysctls": [{"name": "net.ipv4.tcp_rmem", "value": "1"}]}),
    );
    check(&host, &["spec.securityContext.sysctls[0].name: Invalid value: \"net.ipv4.tcp_rmem\": would change the host, because hostNetwork is true".into()]);
    let mut host = with("/spec/hostIPC", json!(true));
    set(
        &mut host,
        "/spec/securityContext",
        json!({"sysctls": [{"name": "kernel.shmmax", "value": "1"}]}),
    );
    check(&host, &["spec.securityContext.sysctls[0].name: Invalid value: \"kernel.shmmax\": would change the host, because hostIPC is true".into()]);
    pod(
        "/spec/securityContext",
        json!({"seccompProfile": {"type": "Strict"}}),
        "spec.securityContext.seccompProfile.type",
        "Unsupported value: \"Strict\": supported values: \"Localhost\", \"RuntimeDefault\", \"Unconfined\"",
    );
    pod(
        "/spec/securityContext",
        json!({"seccompProfile": {}}),
        "spec.securityContext.seccompProfile.type",
        "Required value",
    );
}

#[test]
fn security_contexts_of_containers() {
    container(
        "securityContext",
        json!({"seccompProfile": {"type": "Localhost"}}),
        "securityContext.seccompProfile.localhostProfile",
        "Required value: type Localhost needs the name of a profile",
    );
    container(
        "securityContext",
        json!({"seccompProfile": {"type": "Localhost", "localhostProfile": "/etc/a"}}),
        "securityContext.seccompProfile.localhostProfile",
        "Invalid value: \"/etc/a\": must be a relative path",
    );
    container(
        "securityContext",
        json!({"appArmorProfile": {"type": "RuntimeDefault", "localhostProfile": "a"}}),
        "securityContext.appArmorProfile.localhostProfile",
        "Invalid value: \"a\": goes only with type Localhost",
    );
    container(
        "securityContext",
        json!({"appArmorProfile": {"type": "Localhost", "localhostProfile": " a"}}),
        "securityContext.appArmorProfile.localhostProfile",
        "Invalid value: \" a\": must not begin or end with blanks",
    );
    pod(
        "/metadata/annotations",
        json!({"container.apparmor.security.beta.kubernetes.io/main": "strict"}),
        "metadata.annotations[container.apparmor.security.beta.kubernetes.io/main]",
        "Unsupported value: \"strict\": supported values: \"runtime/default\", \"unconfined\", \"localhost/PROFILE\"",
    );
    container(
        "securityContext",
        json!({"privileged": true, "allowPrivilegeEscalation": false}),
        "securityContext.allowPrivilegeEscalation",
        "Invalid value: false: must not be false in a privileged container",
    );
    container(
        "securityContext",
        json!({"allowPrivilegeEscalation": false, "capabilities": {"add": ["CAP_SYS_ADMIN"]}}),
        "securityContext.allowPrivilegeEscalation",
        "Invalid value: false: must not be false beside the capability CAP_SYS_ADMIN",
    );
    container(
        "securityContext",
        json!({"capabilities": {"add": ["NET_ADMN"]}}),
        "securityContext.capabilities.add[0]",
        "Invalid value: \"NET_ADMN\": no capability of Linux; did you mean \"NET_ADMIN\"?",
    );
    container(
        "securityContext",
        json!({"capabilities": {"drop": ["EVERYTHING"]}}),
        "securityContext.capabilities.drop[0]",
        "Invalid value: \"EVERYTHING\": no capability of Linux",
    );
    container(
        "securityContext",
        json!({"procMount": "Open"}),
        "securityContext.procMount",
        "Unsupported value: \"Open\": supported values: \"Default\", \"Unmasked\"",
    );
}
