//! The table of all kinds.

use super::Kind;

const PLAIN: Kind = Kind {
    group: "",
    version: "v1",
    plural: "",
    singular: "",
    kind: "",
    short_names: &[],
    namespaced: true,
    subresources: &[],
    fields: &[],
    storage: "",
    is_review: false,
    creates_on_update: false,
};

const STATUS: &str = "status";

/// Field selectors of events, in the core form in which they are stored.
const EVENT_FIELDS: &[(&str, &str)] = &[
    ("involvedObject.kind", "/involvedObject/kind"),
    ("involvedObject.namespace", "/involvedObject/namespace"),
    ("involvedObject.name", "/involvedObject/name"),
    ("involvedObject.uid", "/involvedObject/uid"),
    ("involvedObject.apiVersion", "/involvedObject/apiVersion"),
    (
        "involvedObject.resourceVersion",
        "/involvedObject/resourceVersion",
    ),
    ("involvedObject.fieldPath", "/involvedObject/fieldPath"),
    ("regarding.kind", "/involvedObject/kind"),
    ("regarding.namespace", "/involvedObject/namespace"),
    ("regarding.name", "/involvedObject/name"),
    ("regarding.uid", "/involvedObject/uid"),
    ("reason", "/reason"),
    ("reportingComponent", "/reportingComponent"),
    ("reportingController", "/reportingComponent"),
    ("source", "/source/component"),
    ("type", "/type"),
];

/// All kinds, in the order of discovery.
pub const KINDS: &[Kind] = &[
    Kind {
        plural: "configmaps",
        singular: "configmap",
        kind: "ConfigMap",
        short_names: &["cm"],
        storage: "configmaps",
        ..PLAIN
    },
    Kind {
        plural: "events",
        singular: "event",
        kind: "Event",
        short_names: &["ev"],
        fields: EVENT_FIELDS,
        storage: "events",
        creates_on_update: true,
        ..PLAIN
    },
    Kind {
        plural: "namespaces",
        singular: "namespace",
        kind: "Namespace",
        short_names: &["ns"],
        namespaced: false,
        subresources: &[("finalize", "Namespace"), (STATUS, "Namespace")],
        fields: &[("status.phase", "/status/phase")],
        storage: "namespaces",
        ..PLAIN
    },
    Kind {
        plural: "nodes",
        singular: "node",
        kind: "Node",
        short_names: &["no"],
        namespaced: false,
        subresources: &[("proxy", "NodeProxyOptions"), (STATUS, "Node")],
        fields: &[("spec.unschedulable", "/spec/unschedulable")],
        storage: "nodes",
        ..PLAIN
    },
    Kind {
        plural: "pods",
        singular: "pod",
        kind: "Pod",
        short_names: &["po"],
        subresources: &[
            ("attach", "PodAttachOptions"),
            ("binding", "Binding"),
            ("ephemeralcontainers", "Pod"),
            ("eviction", "Eviction"),
            ("exec", "PodExecOptions"),
            ("log", "Pod"),
            ("portforward", "PodPortForwardOptions"),
            (STATUS, "Pod"),
        ],
        fields: &[
            ("spec.nodeName", "/spec/nodeName"),
            ("spec.restartPolicy", "/spec/restartPolicy"),
            ("spec.schedulerName", "/spec/schedulerName"),
            ("spec.serviceAccountName", "/spec/serviceAccountName"),
            ("spec.hostNetwork", "/spec/hostNetwork"),
            ("status.phase", "/status/phase"),
            ("status.podIP", "/status/podIP"),
            ("status.podIPs", "/status/podIP"),
            ("status.nominatedNodeName", "/status/nominatedNodeName"),
        ],
        storage: "pods",
        ..PLAIN
    },
    Kind {
        plural: "secrets",
        singular: "secret",
        kind: "Secret",
        fields: &[("type", "/type")],
        storage: "secrets",
        ..PLAIN
    },
    Kind {
        plural: "serviceaccounts",
        singular: "serviceaccount",
        kind: "ServiceAccount",
        short_names: &["sa"],
        subresources: &[("token", "TokenRequest")],
        storage: "serviceaccounts",
        ..PLAIN
    },
    Kind {
        plural: "services",
        singular: "service",
        kind: "Service",
        short_names: &["svc"],
        subresources: &[(STATUS, "Service")],
        fields: &[
            ("spec.clusterIP", "/spec/clusterIP"),
            ("spec.type", "/spec/type"),
        ],
        storage: "services",
        ..PLAIN
    },
    Kind {
        group: "authentication.k8s.io",
        plural: "tokenreviews",
        singular: "tokenreview",
        kind: "TokenReview",
        namespaced: false,
        is_review: true,
        ..PLAIN
    },
    Kind {
        group: "authorization.k8s.io",
        plural: "selfsubjectaccessreviews",
        singular: "selfsubjectaccessreview",
        kind: "SelfSubjectAccessReview",
        namespaced: false,
        is_review: true,
        ..PLAIN
    },
    Kind {
        group: "authorization.k8s.io",
        plural: "subjectaccessreviews",
        singular: "subjectaccessreview",
        kind: "SubjectAccessReview",
        namespaced: false,
        is_review: true,
        ..PLAIN
    },
    Kind {
        group: "certificates.k8s.io",
        plural: "certificatesigningrequests",
        singular: "certificatesigningrequest",
        kind: "CertificateSigningRequest",
        short_names: &["csr"],
        namespaced: false,
        subresources: &[
            ("approval", "CertificateSigningRequest"),
            (STATUS, "CertificateSigningRequest"),
        ],
        fields: &[("spec.signerName", "/spec/signerName")],
        storage: "certificatesigningrequests",
        ..PLAIN
    },
    Kind {
        group: "coordination.k8s.io",
        plural: "leases",
        singular: "lease",
        kind: "Lease",
        storage: "leases",
        creates_on_update: true,
        ..PLAIN
    },
    Kind {
        group: "events.k8s.io",
        plural: "events",
        singular: "event",
        kind: "Event",
        short_names: &["ev"],
        fields: EVENT_FIELDS,
        storage: "events",
        creates_on_update: true,
        ..PLAIN
    },
    Kind {
        group: "node.k8s.io",
        plural: "runtimeclasses",
        singular: "runtimeclass",
        kind: "RuntimeClass",
        namespaced: false,
        storage: "runtimeclasses",
        ..PLAIN
    },
    Kind {
        group: "storage.k8s.io",
        plural: "csidrivers",
        singular: "csidriver",
        kind: "CSIDriver",
        namespaced: false,
        storage: "csidrivers",
        ..PLAIN
    },
    Kind {
        group: "storage.k8s.io",
        plural: "csinodes",
        singular: "csinode",
        kind: "CSINode",
        namespaced: false,
        storage: "csinodes",
        ..PLAIN
    },
];
