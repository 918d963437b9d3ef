//! Names of types say their role without the module that they are in.

use syn::visit::{self, Visit};

use super::Finding;

/// Names that mean something only beside their module, or nothing at all.
const BARE: [&str; 27] = [
    "Answer", "Book", "Common", "Data", "Draw", "Failure", "Found", "Held", "Helper", "Helpers",
    "Info", "Inner", "Known", "Manager", "Memory", "Misc", "Place", "Room", "Seen", "Shared",
    "State", "Stuff", "Thing", "Told", "Util", "Utils", "Wanted",
];

/// Types that keep such a name: the file, the name, and why.
const KEPT: [(&str, &str, &str); 2] = [
    (
        "crates/oci/src/resources.rs",
        "Memory",
        "the field of the OCI specification, beside `Cpu` and `Pids`",
    ),
    (
        "crates/streaming/src/spdy/handle.rs",
        "Inner",
        "the half of a connection that its tasks share, private to its file",
    ),
];

const SAY_WHOSE: &str = "say whose: `ClientState` rather than `State`, `LeaseError` than `Failure`";

/// The types in a source file whose names say nothing by themselves.
pub(super) fn check(path: &str, file: &syn::File) -> Vec<Finding> {
    let mut types = Types::default();
    types.visit_file(file);
    let is_kept = |name: &str| KEPT.iter().any(|kept| (kept.0, kept.1) == (path, name));
    let bare = types
        .names
        .into_iter()
        .filter(|(_, name)| BARE.contains(&name.as_str()) && !is_kept(name));
    bare.map(|(line, name)| Finding {
        file: path.to_owned(),
        line,
        rule: format!("`{name}` does not say its role"),
        remedy: SAY_WHOSE,
    })
    .collect()
}

/// The types that a file defines, each with its line.
#[derive(Default)]
struct Types {
    names: Vec<(usize, String)>,
}

macro_rules! note_names {
    ($($visit:ident: $node:ident),*) => {
        $(fn $visit(&mut self, node: &'a syn::$node) {
            let line = node.ident.span().start().line;
            self.names.push((line, node.ident.to_string()));
            visit::$visit(self, node);
        })*
    };
}

impl<'a> Visit<'a> for Types {
    // Associated types are named by their traits.
    note_names! {
        visit_item_struct: ItemStruct, visit_item_enum: ItemEnum, visit_item_union: ItemUnion,
        visit_item_trait: ItemTrait, visit_item_type: ItemType
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(path: &str, text: &str) -> usize {
        let file = syn::parse_file(text).expect("the text is Rust");
        check(path, &file).len()
    }

    #[test]
    fn a_type_says_its_role_wherever_it_is() {
        for (text, findings) in [
            ("struct Inner;", 1),
            ("pub enum State {}", 1),
            ("type Data = u8;", 1),
            ("trait Helper {}", 1),
            ("mod tests { struct Seen; }", 1),
            ("fn f() { struct Known; }", 1),
            ("struct ClientState; struct PodInfo;", 0),
            ("impl Body for A { type Data = u8; }", 0),
            ("enum A { Failure, Data(Memory) }", 0),
        ] {
            assert_eq!(names("crates/a/src/a.rs", text), findings, "{text}");
        }
    }

    #[test]
    fn a_name_with_a_reason_is_kept_in_its_file_only() {
        for (path, name, _) in KEPT {
            let text = format!("struct {name};");
            assert_eq!(names(path, &text), 0, "{path}");
            assert_eq!(names("crates/a/src/a.rs", &text), 1, "{path}");
        }
    }
}
