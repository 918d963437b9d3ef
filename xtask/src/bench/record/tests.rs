//! Tests of `record`.

use super::*;

fn table() -> String {
    let mut text = format!("# Numbers\n\n{RUN} of long ago.\n\n| name | goal | measured |\n");
    for one in BENCHMARKS {
        text.push_str(&format!("| `{}` | a \\| b | 1 |\n", one.name));
    }
    text.push_str("| `no_figure` | 2 |\nend\n");
    text
}

#[test]
fn the_last_cell_of_each_row_and_the_line_of_the_run_are_written() {
    let text = rewritten(&table(), "*Measured* now.", |name| {
        Some(format!("<{name}>"))
    });
    let text = text.unwrap();
    assert!(text.contains("\n*Measured* now.\n"), "{text}");
    assert!(
        text.contains("| `rss_mib_0` | a \\| b | <rss_mib_0> |\n"),
        "{text}"
    );
    assert!(text.ends_with("| `no_figure` | 2 |\nend\n"), "{text}");
}

#[test]
fn a_missing_figure_or_row_is_an_error_with_its_name() {
    let measured = |name: &str| (name != "rss_mib_0").then(|| "1".to_owned());
    let error = rewritten(&table(), "", measured).unwrap_err().to_string();
    assert!(error.contains("rss_mib_0 was not measured"), "{error}");
    let text = table().replace("`rss_mib_0`", "`other`");
    let error = rewritten(&text, "", |_| Some("1".to_owned())).unwrap_err();
    assert!(
        error.to_string().contains("no row for rss_mib_0"),
        "{error}"
    );
}

#[test]
fn the_specification_has_a_row_for_each_figure() {
    let root = crate::workspace::root().unwrap();
    let text = std::fs::read_to_string(root.join(FILE)).unwrap();
    rewritten(&text, RUN, |_| Some("1".to_owned())).unwrap();
}

#[test]
fn the_machine_is_described() {
    let text = machine().unwrap();
    assert!(
        text.contains("Linux ") && text.contains("cgroup version "),
        "{text}"
    );
}
