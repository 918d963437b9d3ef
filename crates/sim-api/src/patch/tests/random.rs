//! Random patches: the product's own server and the model must agree, with two exceptions. The product
//! appends new entries to a list instead of following the order of the patch, and it refuses JSON patch
//! operations on missing fields, as the RFC requires, while upstream's library accepts some.

use rubelet_base::SplitMix;
use serde_json::{Map, Value, json};

use super::after;

struct Random(SplitMix);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0.next() % bound
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        let index = self.below(from.len() as u64);
        from[usize::try_from(index).unwrap()]
    }

    /// A random subset, in random order.
    fn some<'a>(&mut self, from: &[&'a str]) -> Vec<&'a str> {
        let mut rest = from.to_vec();
        let mut taken = Vec::new();
        for _ in 0..self.below(rest.len() as u64 + 1) {
            let index = self.below(rest.len() as u64);
            taken.push(rest.remove(usize::try_from(index).unwrap()));
        }
        taken
    }

    /// A list of entries with this key. Directives are used only in lists of the object: in the model a new
    /// entry keeps nested directives, which the product removes.
    fn list(
        &mut self,
        key: &str,
        (patch, directives): (bool, bool),
        more: fn(&mut Self, bool, &mut Value),
    ) -> Value {
        let names = self.some(&["a", "b", "c", "d"]);
        let mut entries: Vec<Value> = names
            .into_iter()
            .map(|name| {
                let mut entry = json!({ key: name });
                match directives && self.below(6) == 0 {
                    true => entry["$patch"] = "delete".into(),
                    false => more(self, patch, &mut entry),
                }
                entry
            })
            .collect();
        if directives && self.below(12) == 0 {
            entries.push(json!({ "$patch": "replace" }));
        }
        Value::Array(entries)
    }

    fn set(&mut self, object: &mut Value, patch: bool, key: &str) {
        object[key] = match self.below(4) {
            0 if patch => Value::Null,
            0 => return,
            _ => self.pick(&["1", "2", "3"]).into(),
        };
    }

    fn container(&mut self, patch: bool, entry: &mut Value) {
        self.set(entry, patch, "image");
        if self.below(2) == 0 {
            entry["env"] = self.list("name", (patch, false), |random, patch, entry| {
                random.set(entry, patch, "value");
            });
        }
        if self.below(3) == 0 {
            entry["args"] = json!(self.some(&["x", "y"]));
        }
    }

    fn pod(&mut self, patch: bool) -> Value {
        let mut labels = json!({});
        for key in ["k", "l"] {
            self.set(&mut labels, patch, key);
        }
        if patch && self.below(8) == 0 {
            labels["$patch"] = "replace".into();
        }
        let mut metadata = json!({ "labels": labels, "finalizers": self.some(&["f", "g", "h"]) });
        if patch && self.below(3) == 0 {
            let gone = self.some(&["f", "g", "h"]);
            metadata["$deleteFromPrimitiveList/finalizers"] = json!(gone);
            metadata
                .as_object_mut()
                .map(|fields| fields.remove("finalizers"));
        }
        let mut spec = json!({ "containers": self.list("name", (patch, patch), Self::container) });
        if self.below(2) == 0 {
            spec["tolerations"] = json!([{ "key": self.pick(&["a", "b"]) }]);
        }
        if patch && self.below(3) == 0 {
            // As kubectl writes it: all names, in the requested order.
            let mut order = self.some(&["a", "b", "c", "d"]);
            order.extend(
                ["a", "b", "c", "d"]
                    .iter()
                    .filter(|one| !order.contains(one))
                    .collect::<Vec<_>>(),
            );
            let place = |one: &Value| order.iter().position(|name| one["name"] == *name);
            if let Some(entries) = spec["containers"].as_array_mut() {
                entries.sort_by_key(place);
            }
            let order = order.iter().map(|name| json!({ "name": name }));
            spec["$setElementOrder/containers"] = order.collect();
        }
        let conditions = self.list("type", (patch, patch), |random, patch, entry| {
            random.set(entry, patch, "status");
            random.set(entry, patch, "reason");
        });
        json!({ "metadata": metadata, "spec": spec, "status": { "conditions": conditions } })
    }

    fn json_patch(&mut self) -> Value {
        let paths = ["/a", "/a/x", "/a/y", "/l/0", "/l/-", "/l/5", "/l", "/q/z"];
        let count = 1 + self.below(4);
        (0..count)
            .map(|_| {
                let op = self.pick(&["add", "remove", "replace", "move", "copy", "test"]);
                let mut operation = Map::new();
                operation.insert("op".to_owned(), op.into());
                operation.insert("path".to_owned(), self.pick(&paths).into());
                operation.insert("from".to_owned(), self.pick(&paths).into());
                operation.insert("value".to_owned(), self.below(3).into());
                Value::Object(operation)
            })
            .collect()
    }
}

fn product(object: &Value, media_type: &str, patch: &Value) -> Option<Value> {
    let media_type = format!("application/{media_type}+json");
    let body = patch.to_string();
    let result = rubelet_server::patched(object, &media_type, body.as_bytes());
    result.expect("it is a patch").ok()
}

/// Sorts entries by key, so that the order does not matter, and removes nulls, which in typed objects are
/// absent fields.
fn normalize(value: &mut Value) {
    crate::meta::drop_nulls(value);
    let lists = [
        "/spec/containers",
        "/status/conditions",
        "/metadata/finalizers",
    ];
    for list in lists {
        if let Some(Value::Array(entries)) = value.pointer_mut(list) {
            entries.sort_by_key(|one| format!("{}{}{one}", one["name"], one["type"]));
            for entry in entries {
                if let Some(Value::Array(variables)) = entry.get_mut("env") {
                    variables.sort_by_key(|one| one["name"].to_string());
                }
            }
        }
    }
}

fn both(object: &Value, media_type: &str, patch: &Value) -> (Option<Value>, Option<Value>) {
    let mut model = after(object, media_type, patch).ok();
    let mut product = product(object, media_type, patch);
    model.iter_mut().chain(&mut product).for_each(normalize);
    (model, product)
}

#[test]
fn the_product_and_the_model_agree_on_strategic_and_merge_patches() {
    for seed in 0..5000 {
        let mut random = Random(SplitMix::new(seed));
        let (object, patch) = (random.pod(false), random.pod(true));
        for media_type in ["strategic-merge-patch", "merge-patch"] {
            let (model, product) = both(&object, media_type, &patch);
            assert!(model.is_some(), "seed {seed}: {patch} on {object}");
            assert_eq!(model, product, "seed {seed}: {patch} on {object}");
        }
    }
}

#[test]
fn json_patches_that_the_product_accepts_agree_with_the_model() {
    let mut taken = 0;
    for seed in 0..5000 {
        let mut random = Random(SplitMix::new(seed));
        let object = json!({ "a": { "x": 1 }, "l": [0, 1] });
        let patch = random.json_patch();
        let (model, product) = both(&object, "json-patch", &patch);
        if product.is_some() {
            taken += 1;
            assert_eq!(model, product, "seed {seed}: {patch}");
        }
    }
    assert!(taken > 500, "only {taken} of the patches were possible");
}
