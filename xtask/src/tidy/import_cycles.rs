//! Files of a crate do not import each other in a circle: a reader of one would have to read all
//! of them.
//!
//! A module and the modules inside it are one thing in several files: a file may use what the
//! files around it define, and may export what the files inside it define.

use std::collections::{BTreeMap, VecDeque};

use super::Finding;
use super::files::is_generated;
use super::used_paths::{UsedPath, UsedPaths};

const MOVE_IT: &str = "move what both need to one of them, or to a file that all of them use";

/// Imports that stay although they close a circle: the file, the one that it imports, and why.
const KEPT: [(&str, &str, &str); 1] = [(
    "crates/runtime/src/sandbox.rs",
    "crates/runtime/src/container.rs",
    "a sandbox knows its containers, and each of them its sandbox",
)];

/// Maximum number of imports that are followed from a path to the file that defines what it names.
const MOST_IMPORTS: usize = 16;

/// The names of a module, from the root of its crate.
type ModulePath = Vec<String>;

/// The files of each crate that import each other. The files are in the order of their paths.
pub(super) fn check(files: Vec<SourceFile<'_>>) -> Vec<Finding> {
    let mut crates: BTreeMap<&str, CrateFiles<'_>> = BTreeMap::new();
    for file in files {
        crates.entry(file.root).or_default().add(file);
    }
    crates.values().flat_map(CrateFiles::cycles).collect()
}

/// The directory of the crate, and the module, of a source file.
fn module_of(path: &str) -> Option<(&str, ModulePath)> {
    let (root, file) = path.split_once("/src/")?;
    let is_ours = root == "xtask" || root.starts_with("crates/");
    let module = file.strip_suffix(".rs").filter(|_| is_ours)?;
    if is_generated(path) || module.starts_with("bin/") {
        return None;
    }
    Some(match module {
        "lib" | "main" => (root, Vec::new()),
        module => (root, module.split('/').map(str::to_owned).collect()),
    })
}

/// A source file of a crate, and what it imports.
pub(super) struct SourceFile<'a> {
    pub(super) path: &'a str,
    /// The directory of the crate.
    root: &'a str,
    module: ModulePath,
    uses: UsedPaths,
}

impl<'a> SourceFile<'a> {
    /// `None` for a file whose imports are not checked.
    pub(super) fn new(path: &'a str, uses: UsedPaths) -> Option<Self> {
        let (root, module) = module_of(path)?;
        Some(Self {
            path,
            root,
            module,
            uses,
        })
    }
}

/// The files that a file imports by their indices, each with the line of the first import.
type Imports = BTreeMap<usize, usize>;

/// The files of one crate.
#[derive(Default)]
struct CrateFiles<'a> {
    files: Vec<SourceFile<'a>>,
    /// Indices of `files`.
    by_module: BTreeMap<ModulePath, usize>,
}

impl<'a> CrateFiles<'a> {
    fn add(&mut self, file: SourceFile<'a>) {
        // Tests share fixtures in both directions.
        if file.module.iter().any(|name| name == "tests") {
            return;
        }
        // A program beside a library uses it like any other crate.
        if self.by_module.contains_key(&file.module) {
            return;
        }
        self.by_module.insert(file.module.clone(), self.files.len());
        self.files.push(file);
    }

    /// Circles of files; each file is in one of them at most.
    fn cycles(&self) -> Vec<Finding> {
        let imports: Vec<Imports> = self.files.iter().map(|file| self.imports(file)).collect();
        let mut findings = Vec::new();
        let mut is_found = vec![false; self.files.len()];
        for start in 0..self.files.len() {
            if is_found[start] {
                continue;
            }
            if let Some(cycle) = shortest_cycle(&imports, start) {
                findings.push(self.finding(&cycle, &imports));
                for file in cycle {
                    is_found[file] = true;
                }
            }
        }
        findings
    }

    fn finding(&self, cycle: &[usize], imports: &[Imports]) -> Finding {
        let ends = cycle.iter().zip(cycle.iter().cycle().skip(1));
        let steps: Vec<_> = ends
            .map(|(from, to)| (self.files[*to].path, imports[*from][to]))
            .collect();
        let names: Vec<_> = steps.iter().map(|(to, _)| *to).collect();
        Finding {
            file: self.files[cycle[0]].path.to_owned(),
            line: steps[0].1,
            rule: format!("imports {}: a circle", names.join(", which imports ")),
            remedy: MOVE_IT,
        }
    }

    /// The files that `file` imports.
    fn imports(&self, file: &SourceFile<'_>) -> Imports {
        let mut imports = Imports::new();
        for used in &file.uses.found {
            let Some(index) = self.owner(&file.module, &used.names, MOST_IMPORTS) else {
                continue;
            };
            let imported = &self.files[index];
            let is_kept = KEPT
                .iter()
                .any(|kept| (kept.0, kept.1) == (file.path, imported.path));
            if counts(&file.module, used, &imported.module) && !is_kept {
                imports.entry(index).or_insert(used.line);
            }
        }
        imports
    }

    /// The file that defines what `path` names in a module. Names that are imported with a `*`
    /// count as the importing file's own.
    fn owner(&self, module: &[String], path: &[String], most: usize) -> Option<usize> {
        let (first, rest) = path.split_first()?;
        let (mut at, rest) = match first.as_str() {
            "crate" => (Vec::new(), rest),
            "self" => (module.to_vec(), rest),
            "super" => {
                let supers = path.iter().take_while(|name| *name == "super").count();
                let depth = module.len().checked_sub(supers)?;
                (module[..depth].to_vec(), &path[supers..])
            }
            _ => (module.to_vec(), path),
        };
        let is_relative = rest.len() == path.len();
        let mut rest = rest.iter();
        let mut name = rest.next();
        while let Some(inside) = name {
            at.push(inside.clone());
            if !self.by_module.contains_key(&at) {
                at.pop();
                break;
            }
            name = rest.next();
        }
        let index = *self.by_module.get(&at)?;
        let Some(name) = name else {
            return Some(index);
        };
        let Some(import) = self.files[index].uses.import_of(name) else {
            // In the file itself, a name is of a local item, of the language or of another crate.
            return (!is_relative || at != module).then_some(index);
        };
        let path: Vec<_> = import.iter().chain(rest).cloned().collect();
        self.owner(&at, &path, most.checked_sub(1)?)
    }
}

/// Whether a path of the file `from` to something of the file `to` makes it depend on that file.
fn counts(from: &[String], used: &UsedPath, to: &[String]) -> bool {
    let is_own = from.starts_with(to);
    let is_export = used.is_reexport && to.starts_with(from);
    !is_own && !is_export
}

/// The shortest way from a file to itself.
fn shortest_cycle(imports: &[Imports], start: usize) -> Option<Vec<usize>> {
    let mut came_from: BTreeMap<usize, usize> = BTreeMap::new();
    let mut reached = VecDeque::from([start]);
    while let Some(file) = reached.pop_front() {
        for &next in imports[file].keys() {
            if next == start {
                let way = std::iter::successors(Some(file), |file| came_from.get(file).copied());
                let mut cycle: Vec<_> = way.collect();
                cycle.reverse();
                return Some(cycle);
            }
            if let std::collections::btree_map::Entry::Vacant(unreached) = came_from.entry(next) {
                unreached.insert(file);
                reached.push_back(next);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::files::File;

    fn check_files(files: &[File]) -> Vec<Finding> {
        let parsed = files.iter().filter_map(|file| {
            let syntax = syn::parse_file(&file.text).unwrap();
            SourceFile::new(&file.path, UsedPaths::of(&syntax))
        });
        check(parsed.collect())
    }

    /// What is found in a crate with these files and texts.
    fn rules(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<_> = files
            .iter()
            .map(|(name, text)| File {
                path: format!("crates/x/src/{name}.rs"),
                text: (*text).to_owned(),
            })
            .collect();
        check_files(&files)
            .into_iter()
            .map(|found| found.rule)
            .collect()
    }

    const BOTH: [&str; 1] =
        ["imports crates/x/src/b.rs, which imports crates/x/src/a.rs: a circle"];

    #[test]
    fn two_files_that_import_each_other_are_found_however_they_write_it() {
        for (root, a, b) in [
            ("", "use crate::b::B;", "use crate::a::A;"),
            ("", "use super::{b::{self}};", "use super::a as c;"),
            ("", "fn f() { super::b::f(); }", "struct B(crate::a::A);"),
            ("", "fn f() { assert!(crate::b::IS); }", "use crate::a::*;"),
            // Their parent exports it.
            ("pub use b::B; mod a;", "use crate::B;", "use super::a::A;"),
            ("use b::B;", "use super::B as C;", "use crate::a::A;"),
            // A path begins with an imported module.
            (
                "",
                "use crate::b; fn f() { b::f(); }",
                "mod c { use super::super::a::A; }",
            ),
        ] {
            let files = [("lib", root), ("a", a), ("b", b)];
            assert_eq!(rules(&files), BOTH, "{root} {a} {b}");
        }
    }

    #[test]
    fn a_circle_goes_through_several_files_and_is_found_once() {
        let files = [
            ("main", "mod a; mod b; mod c;"),
            ("a", "use crate::b::B;"),
            ("b", "use crate::c::d::D;"),
            ("c", "use crate::a::A; pub use d::D; mod d;"),
            ("c/d", "use crate::a::A;"),
        ];
        let expected = "imports crates/x/src/b.rs, which imports crates/x/src/c/d.rs, \
                        which imports crates/x/src/a.rs: a circle";
        assert_eq!(rules(&files), [expected]);
    }

    #[test]
    fn a_module_and_those_inside_it_may_use_each_other() {
        for (a, inside) in [
            ("mod b; pub(crate) use b::B;", "use super::A;"),
            ("mod b; use b::B;", "use crate::a::{self, A};"),
            ("mod b; fn f() { b::f(); }", "fn f() { super::g(); }"),
        ] {
            let files = [("lib", "mod a;"), ("a", a), ("a/b", inside)];
            assert!(rules(&files).is_empty(), "{a} {inside}");
        }
        // An export is no use: `c` is above `a/b` only.
        let export = [
            ("lib", "mod a; mod c;"),
            ("a", "mod b; pub use b::B; pub struct A;"),
            ("a/b", "use crate::c::C;"),
            ("c", "use crate::a::A;"),
        ];
        assert!(rules(&export).is_empty());
    }

    #[test]
    fn an_import_with_a_reason_is_kept() {
        for (from, to, _) in KEPT {
            let path = |path: &str| {
                let module = path.trim_end_matches(".rs").split_once("/src/");
                format!(
                    "crate::{}",
                    module.expect("it is a source file").1.replace('/', "::")
                )
            };
            let file = |path: &str, text: String| File {
                path: path.to_owned(),
                text,
            };
            let files = [
                file(from, format!("use {}::A;", path(to))),
                file(to, format!("use {}::B;", path(from))),
            ];
            assert!(check_files(&files).is_empty(), "{from}");
        }
    }

    #[test]
    fn no_circle_is_seen_where_there_is_none() {
        for (a, b) in [
            ("use crate::b::B;", "use other::a::A;"),
            ("use crate::b::B;", "/// See [`crate::a`].\nstruct B;"),
            (
                "use crate::b::B;",
                "#[cfg(test)]\nmod tests { use crate::a::A; }",
            ),
            ("use crate::b::B;", "enum A { C } fn f() { A::C; }"),
            ("use crate::b::B;", "use b::b; fn f() { b(); }"),
            ("use crate::b::B;", "use std::fmt as a; fn f() { a::x(); }"),
        ] {
            let files = [("lib", "mod a; mod b;"), ("a", a), ("b", b)];
            assert!(rules(&files).is_empty(), "{a} {b}");
        }
        let others = |path: &str, text: &str| File {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let apart = [
            others("crates/x/src/a.rs", "use crate::b::B;"),
            others("crates/y/src/b.rs", "use crate::a::A;"),
        ];
        assert!(check_files(&apart).is_empty());
    }
}
