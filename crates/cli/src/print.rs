//! Objects as rows, documents or names.

mod layout;

use jiff::Timestamp;
use rubelet_server::{
    Resource,
    table::{self, Column},
};
use serde::Serialize as _;
use serde_json::{Value, json};

use self::layout::Layout;
use super::{
    failure::CommandError,
    target::{name_of, namespace_of},
    terminal::Terminal,
};

/// Output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Output {
    /// A table with more columns
    Wide,
    /// JSON, as the API has it
    Json,
    /// YAML, as the API has it
    Yaml,
    /// KIND/NAME only
    Name,
}

/// Form of what has no table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Form {
    Json,
    Yaml,
}

impl Form {
    /// The value in this format.
    pub(super) fn of(self, value: &Value) -> String {
        document(value, self == Self::Yaml)
    }
}

/// Prints the objects of one resource.
pub(super) struct Printer {
    resource: Resource,
    output: Option<Output>,
    with_namespace: bool,
    headings: bool,
    columns: Vec<(usize, &'static Column)>,
    layout: Layout,
    documents: usize,
}

impl Printer {
    pub(super) fn new(
        resource: Resource,
        output: Option<Output>,
        with_namespace: bool,
        headings: bool,
    ) -> Self {
        let wide = output == Some(Output::Wide);
        let columns = table::columns(resource).iter().enumerate();
        Self {
            resource,
            output,
            with_namespace: with_namespace && resource.namespaced(),
            headings,
            columns: columns.filter(|(_, column)| wide || !column.wide).collect(),
            layout: Layout::default(),
            documents: 0,
        }
    }

    /// True for formats that print a document without any object, such as an empty list.
    pub(super) fn prints_nothing_too(&self) -> bool {
        matches!(self.output, Some(Output::Json | Output::Yaml))
    }

    /// Prints a list.
    pub(super) fn list(
        &mut self,
        objects: &[&Value],
        now: Timestamp,
        terminal: &mut Terminal<'_>,
    ) -> Result<(), CommandError> {
        match self.output {
            None | Some(Output::Wide) => self.rows(objects, now, terminal),
            Some(Output::Name) => {
                let names = objects.iter().map(|object| self.name_line(object));
                terminal.print(names.collect::<String>())
            }
            Some(Output::Json | Output::Yaml) => self.document(
                &json!({
                    "apiVersion": "v1",
                    "kind": "List",
                    "metadata": { "resourceVersion": "" },
                    "items": objects,
                }),
                terminal,
            ),
        }
    }

    /// Prints one object on its own.
    pub(super) fn single(
        &mut self,
        object: &Value,
        now: Timestamp,
        terminal: &mut Terminal<'_>,
    ) -> Result<(), CommandError> {
        match self.output {
            Some(Output::Json | Output::Yaml) => self.document(object, terminal),
            _ => self.list(&[object], now, terminal),
        }
    }

    fn document(&mut self, value: &Value, terminal: &mut Terminal<'_>) -> Result<(), CommandError> {
        let yaml = self.output == Some(Output::Yaml);
        let separator = if yaml && self.documents > 0 {
            "---\n"
        } else {
            ""
        };
        self.documents += 1;
        terminal.print(format!("{separator}{}", document(value, yaml)))
    }

    fn name_line(&self, object: &Value) -> String {
        let group = self.resource.group();
        let dot = if group.is_empty() { "" } else { "." };
        format!(
            "{}{dot}{group}/{}\n",
            self.resource.singular(),
            name_of(object)
        )
    }

    fn rows(
        &mut self,
        objects: &[&Value],
        now: Timestamp,
        terminal: &mut Terminal<'_>,
    ) -> Result<(), CommandError> {
        if objects.is_empty() {
            return Ok(());
        }
        let mut rows = Vec::with_capacity(objects.len() + 1);
        if std::mem::take(&mut self.headings) {
            let names = self
                .columns
                .iter()
                .map(|(_, column)| column.name.to_uppercase());
            let namespace = self.with_namespace.then(|| "NAMESPACE".to_owned());
            rows.push(namespace.into_iter().chain(names).collect());
        }
        let headings = rows.len();
        rows.extend(objects.iter().map(|object| self.cells(object, now)));
        let color = |row: usize, cell: usize, text: &str| {
            let named = cell.checked_sub(usize::from(self.with_namespace))?;
            let (_, column) = self.columns.get(named)?;
            (terminal.color && row >= headings)
                .then(|| color(column.name, text))
                .flatten()
        };
        let text = self.layout.render(&rows, color);
        terminal.print(text)
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<String> {
        let all = table::cells(self.resource, object, now);
        let shown = self.columns.iter().map(|(index, _)| match &all[*index] {
            Value::String(text) => layout::one_line(text),
            other => other.to_string(),
        });
        let namespace = self.with_namespace.then(|| namespace_of(object).to_owned());
        namespace.into_iter().chain(shown).collect()
    }
}

/// The SGR code in which a cell is shown on a terminal.
fn color(column: &str, text: &str) -> Option<&'static str> {
    const RED: &str = "31";
    const GREEN: &str = "32";
    const YELLOW: &str = "33";
    const DIM: &str = "2";
    // What is in parentheses says when, not what.
    let text = text.split(" (").next().unwrap_or(text);
    let code = match (column, text) {
        ("Status", "Running" | "ok") => GREEN,
        ("Status", "Completed" | "Succeeded" | "empty" | "skipped") => DIM,
        ("Status", "Pending" | "ContainerCreating" | "PodInitializing" | "Terminating") => YELLOW,
        ("Status", "NotReady") | ("Type", "Warning") => YELLOW,
        // `Init:1/2` is progress; `Init:Error` is not.
        ("Status", text) => match text.strip_prefix("Init:") {
            Some(progress) if progress.starts_with(|c: char| c.is_ascii_digit()) => YELLOW,
            _ => RED,
        },
        _ => return None,
    };
    Some(code)
}

/// Rows whose columns line up.
pub(super) fn table(rows: &[Vec<String>]) -> String {
    Layout::default().render(rows, |_, _, _| None)
}

/// A document with a line feed at its end: YAML, or JSON indented as kubectl indents it.
pub(super) fn document(value: &Value, yaml: bool) -> String {
    if yaml {
        return rubelet_yaml::to_yaml(value);
    }
    let mut bytes = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(b"    ");
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
    value
        .serialize(&mut serializer)
        .expect("a JSON value can be written to memory");
    bytes.push(b'\n');
    String::from_utf8(bytes).expect("JSON is UTF-8")
}
