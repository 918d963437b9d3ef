//! The length of functions, and the errors of public functions, fields and aliases.

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::Finding;

/// Maximum number of lines of a function, from its first word to its last brace.
const MOST: usize = 100;

const SPLIT: &str = "split it where its parts have names";
const ENUM: &str = "return an error type that says what can go wrong, with its context";

/// The functions of a source file that are too long, and what is public and has a string as error.
pub(super) fn check(path: &str, file: &syn::File) -> Vec<Finding> {
    let mut functions = Functions {
        path,
        findings: Vec::new(),
    };
    functions.visit_file(file);
    functions.findings
}

struct Functions<'a> {
    path: &'a str,
    findings: Vec<Finding>,
}

impl Functions<'_> {
    fn length(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let first = signature.span().start().line;
        let lines = block.span().end().line + 1 - first;
        if lines > MOST {
            let rule = format!("`{}` has {lines} lines, more than {MOST}", signature.ident);
            self.find(first, rule, SPLIT);
        }
    }

    fn error(&mut self, signature: &syn::Signature) {
        if let syn::ReturnType::Type(_, returned) = &signature.output
            && self.has_text_error(returned)
        {
            let rule = format!("`{}` returns its error as a `String`", signature.ident);
            self.find(signature.span().start().line, rule, ENUM);
        }
    }

    /// The error in the type of a public field, or behind a public alias.
    fn type_error(&mut self, name: &syn::Ident, of: &syn::Type) {
        if self.has_text_error(of) {
            let rule = format!("`{name}` has a `String` as its error");
            self.find(name.span().start().line, rule, ENUM);
        }
    }

    fn has_text_error(&self, of: &syn::Type) -> bool {
        let mut texts = TextErrors(false);
        texts.visit_type(of);
        texts.0 && self.path.contains("/src/")
    }

    fn find(&mut self, line: usize, rule: String, remedy: &'static str) {
        self.findings.push(Finding {
            file: self.path.to_owned(),
            line,
            rule,
            remedy,
        });
    }
}

const fn is_public(visibility: &syn::Visibility) -> bool {
    matches!(visibility, syn::Visibility::Public(_))
}

impl<'a> Visit<'a> for Functions<'_> {
    fn visit_item_fn(&mut self, node: &'a syn::ItemFn) {
        self.length(&node.sig, &node.block);
        if is_public(&node.vis) {
            self.error(&node.sig);
        }
        visit::visit_item_fn(self, node);
    }

    fn visit_impl_item_fn(&mut self, node: &'a syn::ImplItemFn) {
        self.length(&node.sig, &node.block);
        if is_public(&node.vis) {
            self.error(&node.sig);
        }
        visit::visit_impl_item_fn(self, node);
    }

    fn visit_item_type(&mut self, node: &'a syn::ItemType) {
        if is_public(&node.vis) {
            self.type_error(&node.ident, &node.ty);
        }
        visit::visit_item_type(self, node);
    }

    fn visit_field(&mut self, node: &'a syn::Field) {
        if let Some(name) = &node.ident
            && is_public(&node.vis)
        {
            self.type_error(name, &node.ty);
        }
        visit::visit_field(self, node);
    }

    fn visit_item_trait(&mut self, node: &'a syn::ItemTrait) {
        for item in &node.items {
            let syn::TraitItem::Fn(function) = item else {
                continue;
            };
            if let Some(block) = &function.default {
                self.length(&function.sig, block);
            }
            if is_public(&node.vis) {
                self.error(&function.sig);
            }
        }
        visit::visit_item_trait(self, node);
    }
}

/// Whether a type contains a `Result<_, String>`.
struct TextErrors(bool);

impl<'a> Visit<'a> for TextErrors {
    fn visit_path_segment(&mut self, node: &'a syn::PathSegment) {
        if node.ident == "Result"
            && let syn::PathArguments::AngleBracketed(arguments) = &node.arguments
            && let Some(syn::GenericArgument::Type(syn::Type::Path(error))) = arguments.args.get(1)
        {
            self.0 |= error
                .path
                .segments
                .last()
                .is_some_and(|last| last.ident == "String");
        }
        visit::visit_path_segment(self, node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> syn::File {
        syn::parse_file(text).expect("the text is Rust")
    }

    fn rules(text: &str) -> Vec<String> {
        let findings = check("crates/a/src/lib.rs", &parsed(text));
        findings.into_iter().map(|finding| finding.rule).collect()
    }

    #[test]
    fn a_function_of_more_than_100_lines_is_too_long_wherever_it_is() {
        let body = |lines| format!("fn f() {{\n{}}}", "a();\n".repeat(lines));
        assert!(rules(&body(98)).is_empty());
        let too_long = ["`f` has 101 lines, more than 100"];
        assert_eq!(rules(&body(99)), too_long);
        for (before, after) in [("impl A {", "}"), ("trait A {", "}"), ("mod tests {", "}")] {
            assert_eq!(
                rules(&format!("{before}{}{after}", body(99))),
                too_long,
                "{before}"
            );
        }
        let documented = format!("{}{}", "/// Why.\n".repeat(50), body(98));
        assert!(rules(&documented).is_empty());
    }

    #[test]
    fn the_error_of_a_public_item_is_not_a_text() {
        for (text, findings) in [
            ("pub fn f() -> Result<(), String> { Ok(()) }", 1),
            ("pub fn f() -> Option<Result<u8, String>> { None }", 1),
            (
                "impl A { pub async fn f() -> std::result::Result<(), std::string::String> { Ok(()) } }",
                1,
            ),
            ("pub trait A { fn f() -> Result<(), String>; }", 1),
            ("trait A { fn f() -> Result<(), String>; }", 0),
            ("fn f() -> Result<(), String> { Ok(()) }", 0),
            ("pub fn f() -> Result<String, Error> { Ok(()) }", 0),
            ("pub fn f() -> Result<String> { Ok(()) }", 0),
            ("pub type A<T> = Result<T, String>;", 1),
            ("pub type A = fn(u8) -> Result<u8, String>;", 1),
            ("pub type A = Result<String, Error>;", 0),
            ("type A<T> = Result<T, String>;", 0),
            ("pub struct A { pub a: Option<Result<u8, String>> }", 1),
            ("pub struct A { a: Result<u8, String> }", 0),
        ] {
            assert_eq!(rules(text).len(), findings, "{text}");
        }
        let function = "pub fn f() -> Result<(), String> { Ok(()) }";
        let test = check("crates/a/tests/a.rs", &parsed(function));
        assert!(test.is_empty());
    }
}
