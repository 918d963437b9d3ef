//! One text, many pods: which are found, and the errors of unreadable ones.

use rubelet_api::manifest::{ManifestFile, ManifestNote, decode, decode_bytes};

const POD: &str = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: NAME\nspec:\n  containers:\n  - name: main\n    image: busybox\n";

fn pod(name: &str) -> String {
    POD.replace("NAME", name)
}

/// The name of each good pod, the text of each error.
fn outcome(file: &ManifestFile) -> Vec<String> {
    let text = |pod: &Result<_, _>| match pod {
        Ok(raw) => rubelet_api::manifest::RawPod::name(raw).to_owned(),
        Err(error) => format!("{error}"),
    };
    file.pods.iter().map(text).collect()
}

#[test]
fn all_documents_and_lists_give_their_pods_in_order() {
    let list = "apiVersion: v1\nkind: PodList\nmetadata: {resourceVersion: '5'}\nitems:\n- metadata: {name: c}\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: d}\n";
    let mixed = "{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"e\"}}]}";
    let text = format!(
        "{}---\n# nothing\n---\n{}---\n{list}---\n{mixed}\n",
        pod("a"),
        pod("b")
    );
    let file = decode(&text);
    assert_eq!(outcome(&file), ["a", "b", "c", "d", "e"]);
    assert_eq!(file.note, None);
    let documents: Vec<usize> = file
        .pods
        .iter()
        .map(|pod| pod.as_ref().unwrap().document())
        .collect();
    assert_eq!(documents, [0, 1, 2, 2, 3]);
}

#[test]
fn nothing_to_do_is_no_mistake() {
    for (text, note) in [
        ("", ManifestNote::Empty),
        ("\n# only this\n---\n", ManifestNote::Empty),
        ("apiVersion: v1\nkind: PodList\n", ManifestNote::EmptyList),
        (
            "apiVersion: v1\nkind: List\nitems: []\n",
            ManifestNote::EmptyList,
        ),
    ] {
        let file = decode(text);
        assert!(file.pods.is_empty(), "{text:?}");
        assert_eq!(file.note, Some(note), "{text:?}");
    }
    assert_eq!(ManifestNote::Empty.to_string(), "empty");
}

#[test]
fn an_invalid_document_does_not_hide_the_valid_ones() {
    let text = format!(
        "{}---\n{}---\n{}",
        pod("a"),
        pod("b").replace("image:", "imagee:"),
        pod("c")
    );
    let file = decode(&text);
    assert_eq!(
        outcome(&file),
        [
            "a",
            "line 17, column 5: spec.containers[0].imagee: unknown field; did you mean \"image\"?",
            "c",
        ]
    );
    let error = file.pods[1].as_ref().unwrap_err();
    assert_eq!(
        (error.document, error.pod.clone()),
        (1, Some((None, "b".to_owned())))
    );
    assert_eq!(
        error.errors[0].field.as_deref(),
        Some("spec.containers[0].imagee")
    );
}

#[test]
fn an_invalid_item_does_not_hide_the_valid_ones_of_its_list() {
    let text = "\
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Pod
  metadata: {name: a}
- apiVersion: v1
  kind: Pod
  metadata: {name: b, namespace: apps, lables: {}}
  spec: {hostNetwork: 'yes'}
- kind: Pod
  metadata: {name: c}
- apiVersion: v1
  kind: ConfigMap
- apiVersion: v1
  kind: PodList
- a string
";
    let file = decode(text);
    assert_eq!(
        outcome(&file),
        [
            "a",
            "line 10, column 23: items[1].spec.hostNetwork: expected a boolean, found the string \"yes\"",
            "line 11, column 3: items[2].apiVersion: missing; write v1",
            "line 14, column 3: items[3].kind: \"ConfigMap\" is not allowed; a manifest holds a v1 Pod, a v1 PodList, or a v1 List of Pods: static pods cannot use objects of the API server",
            "line 16, column 3: items[4].kind: a list must not hold lists; write its pods here",
            "line 17, column 3: items[5]: expected a mapping with apiVersion and kind; a manifest holds a v1 Pod, a v1 PodList, or a v1 List of Pods",
        ]
    );
    let error = file.pods[1].as_ref().unwrap_err();
    assert_eq!(error.pod, Some((Some("apps".to_owned()), "b".to_owned())));
}

#[test]
fn what_is_no_pod_is_named_with_what_is_allowed() {
    let allowed = "a manifest holds a v1 Pod, a v1 PodList, or a v1 List of Pods";
    for (text, expected) in [
        (
            "apiVersion: apps/v1\nkind: Deployment\n",
            format!(
                "line 2, column 1: kind: \"Deployment\" is not allowed; {allowed}: write the template in its spec as a Pod"
            ),
        ),
        (
            "apiVersion: v1\nkind: Service\n",
            format!("line 2, column 1: kind: \"Service\" is not allowed; {allowed}"),
        ),
        (
            "apiVersion: apps/v1\nkind: Pod\n",
            "line 1, column 1: apiVersion: \"apps/v1\" does not go with kind Pod; write v1"
                .to_owned(),
        ),
        (
            "apiVersion: v1\n",
            format!("line 1, column 1: kind: missing; {allowed}"),
        ),
        (
            "kind: Pod\n",
            "line 1, column 1: apiVersion: missing; write v1".to_owned(),
        ),
        (
            "kind: [Pod]\napiVersion: v1\n",
            "line 1, column 1: kind: expected a string".to_owned(),
        ),
        (
            "just text\n",
            format!("line 1, column 1: expected a mapping with apiVersion and kind; {allowed}"),
        ),
        (
            "- apiVersion: v1\n",
            format!("line 1, column 1: expected a mapping with apiVersion and kind; {allowed}"),
        ),
        (
            "apiVersion: v1\nkind: PodList\nitems: {}\n",
            "line 3, column 1: items: expected a list of pods".to_owned(),
        ),
        (
            "apiVersion: v1\nkind: PodList\nitem: []\n",
            "line 3, column 1: item: unknown field; a list has metadata and items".to_owned(),
        ),
    ] {
        assert_eq!(outcome(&decode(text)), [expected], "{text:?}");
    }
}

#[test]
fn all_unknown_fields_are_reported() {
    let text =
        pod("a").replace("spec:\n", "spec:\n  hostNetwrk: true\n  volume: []\n") + "statuz: {}\n";
    assert_eq!(
        outcome(&decode(&text)),
        [
            "line 6, column 3: spec.hostNetwrk: unknown field; did you mean \"hostNetwork\"?; \
          line 7, column 3: spec.volume: unknown field; did you mean \"volumes\"?; \
          line 11, column 1: statuz: unknown field; did you mean \"status\"?"
        ]
    );
}

#[test]
fn quantities_may_be_bare_numbers() {
    let resources =
        "    resources:\n      limits: {cpu: 2, memory: 1e9}\n      requests: {cpu: 0.5}\n";
    let text = pod("a") + resources;
    assert_eq!(outcome(&decode(&text)), ["a"]);
    let pod_of = crate::support::parsed(&text);
    let resources = &pod_of.spec.containers[0].resources;
    assert_eq!(
        (resources.limits.cpu, resources.limits.memory),
        (Some(2000), Some(1_000_000_000))
    );
    assert_eq!(resources.requests.cpu, Some(500));
    let wrong = text.replace("name: main", "name: 5") + "    imagee: x\n";
    assert_eq!(
        outcome(&decode(&wrong)),
        [
            "line 7, column 5: spec.containers[0].name: expected a string, found the number 5; put it in quotes"
        ]
    );
    let unknown = text + "    imagee: x\n";
    assert_eq!(
        outcome(&decode(&unknown)),
        ["line 12, column 5: spec.containers[0].imagee: unknown field; did you mean \"image\"?"]
    );
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    let file = decode_bytes(b"kind: Pod\nname: \xff\xfe\n");
    assert_eq!(
        outcome(&file),
        ["line 2, column 1: not UTF-8 text; the file is damaged or not a manifest"]
    );
    assert_eq!(outcome(&decode_bytes(pod("a").as_bytes())), ["a"]);
}
