//! The support matrix as a page for users.

use super::{Support, rows};
use rubelet_base::parity::{ParityVerdict, count_verdicts};

const INTRODUCTION: &str = "\
# Fields of a pod

What Rubelet makes of each field of a v1 Pod, in a manifest (a static pod) and in a pod of the API server. This page is made from the table that the parser uses:
`cargo run -q -p rubelet-api --example fields > docs/fields.md`.

`[]` stands for the items of a list, `{}` for the entries of a map. What is said of
`spec.containers[]` holds for `spec.initContainers[]` too. A row stands for all fields below it.

The column *verdict* compares with the kubelet of Kubernetes 1.36: **same**; **better**; **differs** on purpose; **not yet
(refused)**: with the field, or with other values than those of the remark, a pod is refused by name. The column *support*:

- **yes**: works as with the Kubernetes kubelet.
- **partly**: works for the values in the remark; others are refused.
- **no effect**: accepted, and changes nothing on a node by itself, nor does it with the Kubernetes kubelet.
- **refused**: a manifest that sets it is refused with a message that names the field. A pod of the API server
  that sets it is rejected: it fails with the reason `PodFeatureUnsupported`, and the message names the field.
- **API pods**: works in pods of the API server as with the Kubernetes kubelet. In a manifest it is refused or
  has no effect, as the remark says.

An empty value (null, an empty text, list or map) counts as not set.

A field that is not in the schema is refused in a manifest. In a pod of the API server it belongs to a newer
version of Kubernetes: the pod runs, and a warning names the field.

Where a remark says that only some values are supported, a pod of the API server with another one is rejected.
Beyond the remarks, these differ for pods of the API server:

- `resources` may hold extended resources such as `example.com/dongle`. They count for admission.
- `resources.limits` may hold `ephemeral-storage`, and an emptyDir on disk a `sizeLimit`: a pod that exceeds one is evicted, which
  pods of manifests never are. A project quota holds a volume of theirs to its `sizeLimit` where
  there is one (standalone.md).
- `nodeSelector` may hold any labels, `priorityClassName` may name any class and `os.name` any system.

Refused though Kubernetes 1.36 has them on by default: `resourceClaims` and `resources.claims`
(DynamicResourceAllocation), and volumes of the types `persistentVolumeClaim`, `ephemeral` and `csi`. Fields
that Kubernetes 1.36 does not have, or has off by default, are refused too where they would change what runs:
`lifecycle.stopSignal` (ContainerStopSignals), `projected.sources[].clusterTrustBundle` and `podCertificate`,
`httpGet.protocol`, and `grpc.mode` with another value than `Plaintext`.

COUNTS

| field | verdict | support | remark |
|---|---|---|---|
";

/// The page `docs/fields.md`.
#[must_use]
pub fn markdown() -> String {
    let verdicts = rows().iter().map(|row| row.verdict().0);
    let counts = count_verdicts(verdicts);
    let mut page = INTRODUCTION.replace("COUNTS", &format!("{} rows: {counts}.", rows().len()));
    for row in rows() {
        let (word, remark) = match row.support {
            Support::Full => ("yes", String::new()),
            Support::Partial(values) => ("partly", values.to_owned()),
            Support::NoEffect(why) => ("no effect", why.to_owned()),
            Support::NotYet(why) => ("refused", format!("not built yet: {why}")),
            Support::ApiObject(what) => (
                "API pods",
                format!("manifests: refused, static pods cannot use {what}"),
            ),
            Support::ApiObjectNotYet(what) => ("refused", format!("not built yet: {what}")),
            Support::ApiOnly(why) => ("API pods", format!("manifests: refused; {why}")),
            Support::ApiEffect(why) => ("API pods", format!("manifests: no effect; {why}")),
            Support::Never(why) => ("refused", why.to_owned()),
        };
        let (verdict, why) = row.verdict();
        let verdict = match verdict {
            ParityVerdict::NotYet => "not yet (refused)",
            other => other.name(),
        };
        let remark = match (remark.as_str(), why) {
            (_, "") => remark,
            ("", why) => why.to_owned(),
            (remark, why) => format!("{remark}; {why}"),
        };
        page.push_str(&format!(
            "| `{}` | {verdict} | {word} | {remark} |\n",
            row.path
        ));
    }
    page
}
