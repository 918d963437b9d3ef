//! Pure crates use no side effects: no clock, file, socket, process, thread or async runtime.

use std::collections::HashMap;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

use super::Finding;
use super::edges::rule_of;
use super::files::is_generated;

/// Paths with side effects. Addresses and their parsing have none, so of `std::net` only the
/// sockets are listed.
const EFFECTS: [&str; 24] = [
    "env::args",
    "env::args_os",
    "env::current_dir",
    "env::temp_dir",
    "env::var",
    "env::var_os",
    "std::fs",
    "std::os",
    "std::process",
    "std::thread",
    "std::time::Instant",
    "std::time::SystemTime",
    "Instant::now",
    "SystemTime::now",
    "Timestamp::now",
    "Zoned::now",
    "TcpListener",
    "TcpStream",
    "ToSocketAddrs",
    "UdpSocket",
    "UnixListener",
    "UnixStream",
    "rustix",
    "tokio",
];
const TAKE_IT: &str = "take the value as an argument; the effect belongs to an E crate";
const NAME_IT: &str = "import by name what is used";

/// The side effects that a source file of a pure crate uses outside its tests.
pub(super) fn check(path: &str, text: &str) -> Vec<Finding> {
    if !is_pure_source(path) {
        return Vec::new();
    }
    let finding = |line, rule, remedy| Finding {
        file: path.to_owned(),
        line,
        rule,
        remedy,
    };
    let file = match syn::parse_file(text) {
        Ok(file) => file,
        // The compiler reports invalid Rust better.
        Err(error) => {
            let line = error.span().start().line;
            return vec![finding(line, format!("is not Rust: {error}"), TAKE_IT)];
        }
    };
    let mut names = Names::default();
    names.visit_file(&file);
    names
        .found
        .iter()
        .filter_map(|(line, path)| {
            let path = names.whole(path);
            if path == ["std", "*"] {
                let rule = "`std::*` hides which effects are used".to_owned();
                return Some(finding(*line, rule, NAME_IT));
            }
            let effect = EFFECTS.iter().find(|effect| contains(&path, effect))?;
            let rule = format!("`{effect}` is an effect, and this crate is pure");
            Some(finding(*line, rule, TAKE_IT))
        })
        .collect()
}

fn is_pure_source(path: &str) -> bool {
    let mut parts = path.split('/');
    let is_source = path.ends_with(".rs") && !path.ends_with("/tests.rs") && !is_generated(path);
    is_source
        && parts.next() == Some("crates")
        && parts.next().and_then(rule_of).is_some_and(|rule| rule.pure)
        && parts.next() == Some("src")
        && parts.all(|part| part != "tests")
}

fn contains(path: &[String], effect: &str) -> bool {
    let effect: Vec<&str> = effect.split("::").collect();
    path.windows(effect.len()).any(|part| part == effect)
}

/// The paths of a file outside its tests.
#[derive(Default)]
struct Names {
    /// The paths with their positions.
    found: Vec<(usize, Vec<String>)>,
    /// The full paths of imported names.
    imports: HashMap<String, Vec<String>>,
}

impl Names {
    /// The path with its first name resolved.
    fn whole(&self, path: &[String]) -> Vec<String> {
        let first = path.first().and_then(|first| self.imports.get(first));
        first.map_or_else(
            || path.to_vec(),
            |import| [import.as_slice(), &path[1..]].concat(),
        )
    }

    fn import(&mut self, tree: &syn::UseTree, above: &[String]) {
        let with = |name: &syn::Ident| [above, &[name.to_string()]].concat();
        match tree {
            syn::UseTree::Path(one) => self.import(&one.tree, &with(&one.ident)),
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.import(tree, above);
                }
            }
            syn::UseTree::Glob(glob) => {
                let line = glob.star_token.spans[0].start().line;
                self.found.push((line, [above, &["*".to_owned()]].concat()));
            }
            syn::UseTree::Name(one) if one.ident == "self" => {
                let name = above.last().cloned().unwrap_or_default();
                self.known(&one.ident, name, above.to_vec());
            }
            syn::UseTree::Name(one) => {
                self.known(&one.ident, one.ident.to_string(), with(&one.ident));
            }
            syn::UseTree::Rename(one) => {
                let path = if one.ident == "self" {
                    above.to_vec()
                } else {
                    with(&one.ident)
                };
                self.known(&one.ident, one.rename.to_string(), path);
            }
        }
    }

    fn known(&mut self, at: &syn::Ident, name: String, path: Vec<String>) {
        self.found.push((at.span().start().line, path.clone()));
        // A name that resolves to itself would be expanded forever.
        if path.len() > 1 || path.first() != Some(&name) {
            self.imports.insert(name, path);
        }
    }

    /// Paths in the arguments of a macro, which have no syntax of their own.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let (mut line, mut colons) = (0, 0);
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons < 2 {
                        self.end(line, &mut path);
                        line = name.span().start().line;
                    }
                    colons = 0;
                    path.push(name.to_string());
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => {
                    self.end(line, &mut path);
                    self.tokens(group.stream());
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {
                    self.end(line, &mut path);
                    colons = 0;
                }
            }
        }
        self.end(line, &mut path);
    }

    fn end(&mut self, line: usize, path: &mut Vec<String>) {
        if !path.is_empty() {
            self.found.push((line, std::mem::take(path)));
        }
    }
}

/// Whether the attribute limits its item to tests.
fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|one| {
        one.path().is_ident("cfg")
            && one
                .parse_args::<syn::Path>()
                .is_ok_and(|path| path.is_ident("test"))
    })
}

macro_rules! unless_for_tests {
    ($($visit:ident: $node:ident),*) => {
        $(fn $visit(&mut self, node: &'a syn::$node) {
            if !is_for_tests(&node.attrs) {
                visit::$visit(self, node);
            }
        })*
    };
}

impl<'a> Visit<'a> for Names {
    unless_for_tests! {
        visit_item_mod: ItemMod, visit_item_fn: ItemFn, visit_item_impl: ItemImpl,
        visit_item_struct: ItemStruct, visit_item_enum: ItemEnum, visit_item_const: ItemConst,
        visit_item_static: ItemStatic, visit_item_trait: ItemTrait, visit_item_type: ItemType,
        visit_impl_item_fn: ImplItemFn, visit_item_macro: ItemMacro
    }

    fn visit_item_use(&mut self, node: &'a syn::ItemUse) {
        if !is_for_tests(&node.attrs) {
            self.import(&node.tree, &[]);
        }
    }

    fn visit_path(&mut self, node: &'a syn::Path) {
        if let Some(first) = node.segments.first() {
            let names = node.segments.iter().map(|one| one.ident.to_string());
            let line = first.ident.span().start().line;
            self.found.push((line, names.collect()));
        }
        visit::visit_path(self, node);
    }

    fn visit_macro(&mut self, node: &'a syn::Macro) {
        self.visit_path(&node.path);
        self.tokens(node.tokens.clone());
    }

    fn visit_item_extern_crate(&mut self, node: &'a syn::ItemExternCrate) {
        self.known(
            &node.ident,
            node.ident.to_string(),
            vec![node.ident.to_string()],
        );
    }

    // Paths in documentation are not used.
    fn visit_attribute(&mut self, _: &'a syn::Attribute) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effects_are_found_in_the_code_of_pure_crates_only() {
        let effect = "//! x\nuse std::fs;\n";
        let lib = "crates/api/src/lib.rs";
        for (path, text, expected) in [
            (lib, effect, 1),
            ("crates/api/src/deep/er.rs", effect, 1),
            ("crates/api/tests/x.rs", effect, 0),
            ("crates/api/src/pod/tests.rs", effect, 0),
            ("crates/host/src/lib.rs", effect, 0),
            (lib, "fn f() { let now = Timestamp::now(); }", 1),
            (lib, "use std::net::IpAddr;", 0),
            (lib, "use std::net::TcpStream;", 1),
            (
                lib,
                "fn f() { match std::env::consts::ARCH { _ => {} } }",
                0,
            ),
            (lib, "fn f() { std::env::var(\"HOME\"); }", 1),
            (lib, "/// Like std::fs, but pure.\nfn f() {}", 0),
            (lib, "//! x\n#[cfg(test)]\nmod tests { use std::fs; }", 0),
            (lib, "fn f() { tonic::codegen::tokio_stream(); }", 0),
        ] {
            assert_eq!(check(path, text).len(), expected, "{path}: {text}");
        }
    }

    #[test]
    fn groups_renames_macros_and_test_modules_hide_no_effect() {
        for (text, line) in [
            ("use std::{\n    collections::BTreeMap,\n    fs,\n};", 3),
            ("use std::{time::{Duration, Instant}};", 1),
            ("use std::env as e;\nfn f() { e::var(\"HOME\"); }", 2),
            ("use std::{env::{self as e}};\nfn f() { e::args(); }", 2),
            (
                "#[cfg(test)]\nmod tests {}\nfn f() { std::thread::yield_now(); }",
                3,
            ),
            ("#[cfg(test)]\nuse std::fs;\nuse std::process::Command;", 3),
            (
                "fn f() {\n    assert!(\n        std::fs::exists(\"x\"));\n}",
                3,
            ),
            ("use std::*;", 1),
            ("extern crate rustix;", 1),
            ("struct S(std::sync::Mutex<std::net::UdpSocket>);", 1),
        ] {
            let found = check("crates/api/src/lib.rs", text);
            let lines: Vec<_> = found.iter().map(|one| one.line).collect();
            assert_eq!(lines, [line], "{text}");
        }
    }
}
