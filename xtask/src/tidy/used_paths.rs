//! The paths that a source file uses: those that it imports, and those in its code.

use std::collections::HashMap;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

/// A path in a source file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UsedPath {
    /// Its line.
    pub(super) line: usize,
    /// Its names. The last one is `*` if all names of a module are imported.
    pub(super) names: Vec<String>,
    /// Whether it is imported for other files: `pub use`, `pub(crate) use`.
    pub(super) is_reexport: bool,
}

/// The paths of a file outside its tests.
#[derive(Default)]
pub(super) struct UsedPaths {
    /// The paths.
    pub(super) found: Vec<UsedPath>,
    /// The full paths of imported names.
    imports: HashMap<String, Vec<String>>,
    /// Whether the import that is visited is for other files.
    is_reexport: bool,
    /// The number of modules without a file of their own around what is visited.
    inline_modules: usize,
}

impl UsedPaths {
    /// The paths that `file` uses.
    pub(super) fn of(file: &syn::File) -> Self {
        let mut paths = Self::default();
        paths.visit_file(file);
        paths
    }

    /// The full path of an imported name.
    pub(super) fn import_of(&self, name: &str) -> Option<&[String]> {
        self.imports.get(name).map(Vec::as_slice)
    }

    /// The path with its first name resolved.
    pub(super) fn whole(&self, path: &[String]) -> Vec<String> {
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
                self.push(line, [above, &["*".to_owned()]].concat());
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
        self.push(at.span().start().line, path.clone());
        let path = self.outside_inline(path);
        // A name that resolves to itself would be expanded forever.
        if path.len() > 1 || path.first() != Some(&name) {
            self.imports.insert(name, path);
        }
    }

    fn push(&mut self, line: usize, names: Vec<String>) {
        self.found.push(UsedPath {
            line,
            names: self.outside_inline(names),
            is_reexport: self.is_reexport,
        });
    }

    /// A path as it would be written outside the modules that have no file of their own.
    fn outside_inline(&self, names: Vec<String>) -> Vec<String> {
        let supers = names.iter().take_while(|name| *name == "super").count();
        match supers.min(self.inline_modules) {
            0 => names,
            inside if inside == supers => [&["self".to_owned()], &names[supers..]].concat(),
            inside => names[inside..].to_vec(),
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
            self.push(line, std::mem::take(path));
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

impl<'a> Visit<'a> for UsedPaths {
    unless_for_tests! {
        visit_item_fn: ItemFn, visit_item_impl: ItemImpl,
        visit_item_struct: ItemStruct, visit_item_enum: ItemEnum, visit_item_const: ItemConst,
        visit_item_static: ItemStatic, visit_item_trait: ItemTrait, visit_item_type: ItemType,
        visit_impl_item_fn: ImplItemFn, visit_item_macro: ItemMacro
    }

    fn visit_item_use(&mut self, node: &'a syn::ItemUse) {
        if !is_for_tests(&node.attrs) {
            self.is_reexport = !matches!(node.vis, syn::Visibility::Inherited);
            self.import(&node.tree, &[]);
            self.is_reexport = false;
        }
    }

    fn visit_item_mod(&mut self, node: &'a syn::ItemMod) {
        if !is_for_tests(&node.attrs) {
            self.inline_modules += 1;
            visit::visit_item_mod(self, node);
            self.inline_modules -= 1;
        }
    }

    fn visit_path(&mut self, node: &'a syn::Path) {
        if let Some(first) = node.segments.first() {
            let names = node.segments.iter().map(|one| one.ident.to_string());
            let line = first.ident.span().start().line;
            self.push(line, names.collect());
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

    fn used(text: &str) -> Vec<(String, bool)> {
        let file = syn::parse_file(text).expect("the text is Rust");
        let paths = UsedPaths::of(&file).found.into_iter();
        paths
            .map(|used| (used.names.join("::"), used.is_reexport))
            .collect()
    }

    #[test]
    fn imports_for_other_files_are_told_from_imports() {
        let found = used("use a::{b, c as d};\npub(super) use e::*;\nuse f::{self};");
        let expected = [
            ("a::b", false),
            ("a::c", false),
            ("e::*", true),
            ("f", false),
        ];
        assert_eq!(
            found,
            expected.map(|(path, export)| (path.to_owned(), export))
        );
    }

    #[test]
    fn a_module_without_a_file_hides_no_path() {
        for (path, in_file) in [
            ("super::b", "self::b"),
            ("super::super::b", "super::b"),
            ("self::b", "self::b"),
            ("crate::b", "crate::b"),
        ] {
            let found = used(&format!("mod a {{ use {path}; }}"));
            assert_eq!(found, [(in_file.to_owned(), false)], "{path}");
        }
        let found = used("mod a { mod b { use super::super::super::c; } }\nuse super::d;");
        let paths: Vec<_> = found.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(paths, ["super::c", "super::d"]);
    }
}
