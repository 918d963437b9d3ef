//! The support matrix as a page for users.

use super::{Support, rows};

const INTRODUCTION: &str = "\
# Fields of a pod manifest

What Rubelet makes of each field of a v1 Pod. This page is made from the table that the parser uses:
`cargo run -q -p rubelet-api --example fields > docs/fields.md`.

`[]` stands for the items of a list, `{}` for the entries of a map. What is said of
`spec.containers[]` holds for `spec.initContainers[]` too. A row stands for all fields below it.

- **yes**: works as with the Kubernetes kubelet.
- **partly**: works for the values in the remark; others are refused.
- **no effect**: accepted, and changes nothing on a node by itself, nor does it with the Kubernetes kubelet.
- **refused**: a manifest that sets it is refused with a message that names the field. An empty value
  (null, an empty text, list or map) counts as not set.

A field that is not in the schema is refused.

| field | support | remark |
|---|---|---|
";

/// The page `docs/fields.md`.
#[must_use]
pub fn markdown() -> String {
    let mut page = INTRODUCTION.to_owned();
    for row in rows() {
        let (word, remark) = match row.support {
            Support::Full => ("yes", String::new()),
            Support::Partial(values) => ("partly", values.to_owned()),
            Support::NoEffect(why) => ("no effect", why.to_owned()),
            Support::NotYet(why) => ("refused", format!("not built yet: {why}")),
            Support::ApiObject(what) => ("refused", format!("needs the API server: {what}")),
            Support::Never(why) => ("refused", why.to_owned()),
        };
        page.push_str(&format!("| `{}` | {word} | {remark} |\n", row.path));
    }
    page
}
