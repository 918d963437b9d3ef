//! What the API server would refuse is refused, with a message in its form.

use rubelet_api::parse::{FieldErrorKind, parse};
use serde_json::{Value, json};

use crate::support::{context, mistakes, raw, set, small, with};

const CONTAINER: &str = "/spec/containers/0/";
pub(crate) const LABEL: &str =
    "use up to 63 lower-case letters, digits and '-', with a letter or digit at both ends";
const SUBDOMAIN: &str = "use up to 253 lower-case letters, digits, '-' and '.', with a letter or digit at both ends of each part";
const QUALIFIED: &str = "use up to 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends, after an optional domain and '/'";
pub(crate) const LABEL_VALUE: &str = "use up to 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends, or nothing";
const PORT_NAME: &str = "use up to 15 lower-case letters, digits and single '-', at least one letter, with a letter or digit at both ends";

#[track_caller]
pub(crate) fn check(pod: &Value, expected: &[String]) {
    assert_eq!(mistakes(&pod.to_string()), expected, "{pod}");
}

/// Sets one field of the pod and expects one mistake in it.
#[track_caller]
pub(crate) fn pod(pointer: &str, value: Value, field: &str, message: &str) {
    check(&with(pointer, value), &[format!("{field}: {message}")]);
}

/// Sets one field of the container and expects one mistake in it.
#[track_caller]
pub(crate) fn container(pointer: &str, value: Value, field: &str, message: &str) {
    let pointer = format!("{CONTAINER}{pointer}");
    check(
        &with(&pointer, value),
        &[format!("spec.containers[0].{field}: {message}")],
    );
}

#[test]
fn metadata() {
    pod(
        "/metadata/name",
        json!(""),
        "metadata.name",
        "Required value: a pod of a manifest needs a name; generateName is not enough",
    );
    pod(
        "/metadata/name",
        json!("Web"),
        "metadata.name",
        &format!("Invalid value: \"Web\": {SUBDOMAIN}"),
    );
    pod(
        "/metadata/name",
        json!("web_1"),
        "metadata.name",
        &format!("Invalid value: \"web_1\": {SUBDOMAIN}"),
    );
    let long = "a".repeat(250);
    pod(
        "/metadata/name",
        json!(long),
        "metadata.name",
        &format!(
            "Invalid value: {long:?}: with the node's name behind it, \"{long}-node1\" is longer than 253"
        ),
    );
    pod(
        "/metadata/namespace",
        json!("kube.system"),
        "metadata.namespace",
        &format!("Invalid value: \"kube.system\": {LABEL}"),
    );
    pod(
        "/metadata/uid",
        json!("../../etc"),
        "metadata.uid",
        "Invalid value: \"../../etc\": use up to 128 letters, digits and '-', or leave it out",
    );
    pod(
        "/metadata/labels",
        json!({"-a": "b"}),
        "metadata.labels[-a]",
        &format!("Invalid value: \"-a\": {QUALIFIED}"),
    );
    pod(
        "/metadata/labels",
        json!({"Example.com/a": "b"}),
        "metadata.labels[Example.com/a]",
        &format!("Invalid value: \"Example.com/a\": {QUALIFIED}"),
    );
    pod(
        "/metadata/labels",
        json!({"a": "b c"}),
        "metadata.labels[a]",
        &format!("Invalid value: \"b c\": {LABEL_VALUE}"),
    );
    pod(
        "/metadata/annotations",
        json!({"a b": "c"}),
        "metadata.annotations[a b]",
        &format!("Invalid value: \"a b\": {QUALIFIED}"),
    );
    pod(
        "/metadata/annotations",
        json!({"a": "x".repeat(262_144)}),
        "metadata.annotations",
        "Invalid value: 262145: all annotations together must not exceed 262144 bytes",
    );
    pod(
        "/metadata/annotations",
        json!({"kubernetes.io/config.mirror": "x"}),
        "metadata.annotations[kubernetes.io/config.mirror]",
        "Forbidden: it marks the API server's copy of a static pod; remove it",
    );
}

#[test]
fn names_of_containers_and_images() {
    pod(
        "/spec/containers",
        json!([]),
        "spec.containers",
        "Required value: a pod needs at least one container",
    );
    pod(
        "/spec",
        json!({}),
        "spec.containers",
        "Required value: a pod needs at least one container",
    );
    container("name", json!(""), "name", "Required value");
    container(
        "name",
        json!("a.b"),
        "name",
        &format!("Invalid value: \"a.b\": {LABEL}"),
    );
    container(
        "name",
        json!("a".repeat(64)),
        "name",
        &format!("Invalid value: {:?}: {LABEL}", "a".repeat(64)),
    );
    container("image", json!(""), "image", "Required value");
    container(
        "image",
        json!(" busybox"),
        "image",
        "Invalid value: \" busybox\": must not begin or end with blanks",
    );
    container(
        "imagePullPolicy",
        json!("always"),
        "imagePullPolicy",
        "Unsupported value: \"always\": supported values: \"Always\", \"IfNotPresent\", \"Never\"",
    );
    container(
        "terminationMessagePolicy",
        json!("Log"),
        "terminationMessagePolicy",
        "Unsupported value: \"Log\": supported values: \"File\", \"FallbackToLogsOnError\"",
    );
    let twice = json!([{"name": "a", "image": "b"}, {"name": "a", "image": "c"}]);
    pod(
        "/spec/containers",
        twice,
        "spec.containers[1].name",
        "Duplicate value: \"a\"",
    );
    pod(
        "/spec/initContainers",
        json!([{"name": "main", "image": "b"}]),
        "spec.initContainers[0].name",
        "Duplicate value: \"main\"",
    );
}

#[test]
fn pod_wide_fields() {
    pod(
        "/spec/restartPolicy",
        json!("Sometimes"),
        "spec.restartPolicy",
        "Unsupported value: \"Sometimes\": supported values: \"Always\", \"OnFailure\", \"Never\"",
    );
    pod(
        "/spec/terminationGracePeriodSeconds",
        json!(-1),
        "spec.terminationGracePeriodSeconds",
        "Invalid value: -1: must not be negative",
    );
    pod(
        "/spec/activeDeadlineSeconds",
        json!(0),
        "spec.activeDeadlineSeconds",
        "Invalid value: 0: must be from 1 to 2147483647",
    );
    pod(
        "/spec/hostname",
        json!("a.b"),
        "spec.hostname",
        &format!("Invalid value: \"a.b\": {LABEL}"),
    );
    for (name, why) in [
        ("a_b", SUBDOMAIN.to_owned()),
        (
            &*"a".repeat(65),
            "must have at most 64 characters".to_owned(),
        ),
    ] {
        pod(
            "/spec/hostnameOverride",
            json!(name),
            "spec.hostnameOverride",
            &format!("Invalid value: \"{name}\": {why}"),
        );
    }
    pod(
        "/spec/subdomain",
        json!("A"),
        "spec.subdomain",
        &format!("Invalid value: \"A\": {LABEL}"),
    );
    pod(
        "/spec/os",
        json!({"name": "windows"}),
        "spec.os.name",
        "Unsupported value: \"windows\": supported values: \"linux\"",
    );
    pod("/spec/os", json!({}), "spec.os.name", "Required value");
    pod(
        "/spec/nodeSelector",
        json!({"kubernetes.io/os": "windows"}),
        "spec.nodeSelector[kubernetes.io/os]",
        "Invalid value: \"windows\": this node has \"linux\"",
    );
    pod(
        "/spec/nodeSelector",
        json!({"kubernetes.io/hostname": "b"}),
        "spec.nodeSelector[kubernetes.io/hostname]",
        "Invalid value: \"b\": this node has \"Node1\"",
    );
    pod(
        "/spec/tolerations",
        json!([{"operator": "Equal"}]),
        "spec.tolerations[0].operator",
        "Invalid value: \"Equal\": must be Exists where no key is given",
    );
    pod(
        "/spec/tolerations",
        json!([{"key": "a", "effect": "No"}]),
        "spec.tolerations[0].effect",
        "Unsupported value: \"No\": supported values: \"NoExecute\", \"NoSchedule\", \"PreferNoSchedule\"",
    );
    pod(
        "/spec/tolerations",
        json!([{"key": "a", "operator": "Is"}]),
        "spec.tolerations[0].operator",
        "Unsupported value: \"Is\": supported values: \"Equal\", \"Exists\", \"Gt\", \"Lt\"",
    );
    let mut both = with("/spec/hostPID", json!(true));
    set(&mut both, "/spec/shareProcessNamespace", json!(true));
    check(&both, &["spec.shareProcessNamespace: Invalid value: true: must not be true beside hostPID: true".into()]);
    let mut critical = with("/spec/priorityClassName", json!("system-node-critical"));
    set(&mut critical, "/spec/priority", json!(5));
    check(&critical, &["spec.priority: Invalid value: 5: the class system-node-critical has the priority 2000001000".into()]);
}

#[test]
fn names_and_addresses_of_hosts() {
    pod(
        "/spec/dnsPolicy",
        json!("Cluster"),
        "spec.dnsPolicy",
        "Unsupported value: \"Cluster\": supported values: \"ClusterFirst\", \"ClusterFirstWithHostNet\", \"Default\", \"None\"",
    );
    pod(
        "/spec/dnsPolicy",
        json!("None"),
        "spec.dnsConfig.nameservers",
        "Required value: dnsPolicy None needs at least one",
    );
    pod(
        "/spec/dnsConfig",
        json!({"nameservers": ["1.1.1.1", "1.1.1.2", "1.1.1.3", "1.1.1.4"]}),
        "spec.dnsConfig.nameservers",
        "Invalid value: 4: must not be more than 3",
    );
    pod(
        "/spec/dnsConfig",
        json!({"nameservers": ["dns.example"]}),
        "spec.dnsConfig.nameservers[0]",
        "Invalid value: \"dns.example\": must be an IPv4 or IPv6 address, such as 10.0.0.1 or fd00::1",
    );
    pod(
        "/spec/dnsConfig",
        json!({"searches": ["a..b"]}),
        "spec.dnsConfig.searches[0]",
        "Invalid value: \"a..b\": must be a domain of lower-case letters, digits, '-', '_' and '.'",
    );
    pod(
        "/spec/dnsConfig",
        json!({"searches": vec!["a"; 33]}),
        "spec.dnsConfig.searches",
        "Invalid value: 33: must not be more than 32",
    );
    pod(
        "/spec/dnsConfig",
        json!({"searches": vec!["a.".repeat(100) + "b"; 11]}),
        "spec.dnsConfig.searches",
        "Invalid value: 2221: all together must not exceed 2048 characters",
    );
    pod(
        "/spec/dnsConfig",
        json!({"options": [{"value": "2"}]}),
        "spec.dnsConfig.options[0].name",
        "Required value",
    );
    pod(
        "/spec/hostAliases",
        json!([{"ip": "127.1", "hostnames": ["a"]}]),
        "spec.hostAliases[0].ip",
        "Invalid value: \"127.1\": must be an IPv4 or IPv6 address, such as 10.0.0.1 or fd00::1",
    );
    pod(
        "/spec/hostAliases",
        json!([{"ip": "::1", "hostnames": ["a_b"]}]),
        "spec.hostAliases[0].hostnames[0]",
        &format!("Invalid value: \"a_b\": {SUBDOMAIN}"),
    );
}

#[test]
fn ports() {
    container(
        "ports",
        json!([{"containerPort": 0}]),
        "ports[0].containerPort",
        "Required value: a port from 1 to 65535",
    );
    container(
        "ports",
        json!([{"hostPort": 70000, "containerPort": 80}]),
        "ports[0].hostPort",
        "Invalid value: 70000: must be from 1 to 65535",
    );
    container(
        "ports",
        json!([{"containerPort": 65536}]),
        "ports[0].containerPort",
        "Invalid value: 65536: must be from 1 to 65535",
    );
    container(
        "ports",
        json!([{"containerPort": 80, "protocol": "tcp"}]),
        "ports[0].protocol",
        "Unsupported value: \"tcp\": supported values: \"TCP\", \"UDP\", \"SCTP\"",
    );
    container(
        "ports",
        json!([{"containerPort": 80, "hostIP": "localhost"}]),
        "ports[0].hostIP",
        "Invalid value: \"localhost\": must be an IPv4 or IPv6 address, such as 10.0.0.1 or fd00::1",
    );
    for name in ["a--b", "-a", "80", "abcdefghijklmnop", "A"] {
        container(
            "ports",
            json!([{"containerPort": 80, "name": name}]),
            "ports[0].name",
            &format!("Invalid value: {name:?}: {PORT_NAME}"),
        );
    }
    container(
        "ports",
        json!([{"containerPort": 80, "name": "a"}, {"containerPort": 81, "name": "a"}]),
        "ports[1].name",
        "Duplicate value: \"a\"",
    );
    container(
        "ports",
        json!([{"containerPort": 80, "hostPort": 8080}, {"containerPort": 81, "hostPort": 8080}]),
        "ports[1].hostPort",
        "Duplicate value: \"TCP//8080\"",
    );
    let mut mismatch = with("/spec/hostNetwork", json!(true));
    set(
        &mut mismatch,
        "/spec/containers/0/ports",
        json!([{"containerPort": 80, "hostPort": 81}]),
    );
    check(&mismatch, &["spec.containers[0].ports[0].hostPort: Invalid value: 81: must equal containerPort where hostNetwork is true".into()]);
}

#[test]
fn host_ports_differ_by_protocol_and_address_and_between_init_containers() {
    let mut pod = with(
        "/spec/containers/0/ports",
        json!([
            {"containerPort": 80, "hostPort": 8080},
            {"containerPort": 80, "hostPort": 8080, "protocol": "UDP"},
            {"containerPort": 80, "hostPort": 8080, "hostIP": "127.0.0.1"},
        ]),
    );
    let ports = json!([{"containerPort": 80, "hostPort": 8080}]);
    set(
        &mut pod,
        "/spec/initContainers",
        json!([
            {"name": "one", "image": "a", "ports": ports},
            {"name": "two", "image": "a", "ports": ports},
        ]),
    );
    assert!(parse(raw(&pod.to_string()), &context()).is_ok());
}

#[test]
fn environment() {
    container(
        "env",
        json!([{"name": ""}]),
        "env[0].name",
        "Required value",
    );
    container(
        "env",
        json!([{"name": "A=B"}]),
        "env[0].name",
        "Invalid value: \"A=B\": use printable ASCII characters other than '='",
    );
    container(
        "env",
        json!([{"name": "Ä"}]),
        "env[0].name",
        "Invalid value: \"Ä\": use printable ASCII characters other than '='",
    );
    container(
        "env",
        json!([{"name": "A", "valueFrom": {}}]),
        "env[0].valueFrom",
        "Required value: one of fieldRef, fileKeyRef and resourceFieldRef",
    );
    let file = json!({"volumeName": "v", "path": "../x", "key": "K"});
    container(
        "env",
        json!([{"name": "A", "valueFrom": {"fileKeyRef": file}}]),
        "env[0].valueFrom.fileKeyRef.path",
        "Invalid value: \"../x\": must not contain '..'",
    );
    let field = json!({"fieldRef": {"fieldPath": "metadata.name"}});
    container(
        "env",
        json!([{"name": "A", "value": "x", "valueFrom": field}]),
        "env[0].valueFrom",
        "Invalid value: \"x\": must not stand beside value",
    );
    let both = json!({"fieldRef": {"fieldPath": "metadata.name"}, "resourceFieldRef": {"resource": "limits.cpu"}});
    container(
        "env",
        json!([{"name": "A", "valueFrom": both}]),
        "env[0].valueFrom",
        "Invalid value: 2: must have one source only",
    );
    let paths = "\"metadata.annotations['KEY']\", \"metadata.labels['KEY']\", \"metadata.name\", \"metadata.namespace\", \"metadata.uid\", \"spec.nodeName\", \"spec.serviceAccountName\", \"status.hostIP\", \"status.hostIPs\", \"status.podIP\", \"status.podIPs\"";
    for path in ["status.phase", "metadata.labels", "metadata.name[0]"] {
        container(
            "env",
            json!([{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": path}}}]),
            "env[0].valueFrom.fieldRef.fieldPath",
            &format!("Unsupported value: {path:?}: supported values: {paths}"),
        );
    }
    container(
        "env",
        json!([{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['-']"}}}]),
        "env[0].valueFrom.fieldRef.fieldPath",
        &format!("Invalid value: \"-\": {QUALIFIED}"),
    );
    container(
        "env",
        json!([{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": ""}}}]),
        "env[0].valueFrom.fieldRef.fieldPath",
        "Required value",
    );
    container(
        "env",
        json!([{"name": "A", "valueFrom": {"fieldRef": {"apiVersion": "v2", "fieldPath": "metadata.name"}}}]),
        "env[0].valueFrom.fieldRef.apiVersion",
        "Unsupported value: \"v2\": supported values: \"v1\"",
    );
    let resource =
        |reference: Value| json!([{"name": "A", "valueFrom": {"resourceFieldRef": reference}}]);
    container(
        "env",
        resource(json!({"resource": "limits.disk"})),
        "env[0].valueFrom.resourceFieldRef.resource",
        "Unsupported value: \"limits.disk\": supported values: \"limits.cpu\", \"limits.memory\", \"requests.cpu\", \"requests.memory\"",
    );
    container(
        "env",
        resource(json!({"resource": ""})),
        "env[0].valueFrom.resourceFieldRef.resource",
        "Required value",
    );
    container(
        "env",
        resource(json!({"resource": "limits.cpu", "divisor": "2"})),
        "env[0].valueFrom.resourceFieldRef.divisor",
        "Unsupported value: \"2\": supported values: \"1m\", \"1\"",
    );
    container(
        "env",
        resource(json!({"resource": "limits.cpu", "containerName": "other"})),
        "env[0].valueFrom.resourceFieldRef.containerName",
        "Not found: \"other\": the pod has no container of this name",
    );
}

#[test]
fn all_errors_of_a_pod_are_reported_at_once_in_manifest_order() {
    let text = "\
apiVersion: v1
kind: Pod
metadata:
  name: Web
spec:
  restartPolicy: Sometimes
  containers:
  - name: main
    livenessProbe:
      tcpSocket: {port: 0}
    env:
    - name: A
      valueFrom:
        fieldRef:
          fieldPath: spec.host
";
    let errors = parse(raw(text), &context()).map(|_| ()).unwrap_err();
    let reported: Vec<(usize, FieldErrorKind, &str)> = errors
        .iter()
        .map(|error| {
            (
                error.position.unwrap().line,
                error.kind,
                error.field.as_str(),
            )
        })
        .collect();
    assert_eq!(
        reported,
        [
            (4, FieldErrorKind::Invalid, "metadata.name"),
            (6, FieldErrorKind::Unsupported, "spec.restartPolicy"),
            (8, FieldErrorKind::Required, "spec.containers[0].image"),
            (
                10,
                FieldErrorKind::Required,
                "spec.containers[0].livenessProbe.tcpSocket.port"
            ),
            (
                15,
                FieldErrorKind::Unsupported,
                "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath"
            ),
        ]
    );
    assert_eq!(
        errors[2].to_string(),
        "line 8, column 5: spec.containers[0].image: Required value"
    );
}

#[test]
fn the_pod_of_these_tests_is_valid() {
    assert!(parse(raw(&small().to_string()), &context()).is_ok());
}
