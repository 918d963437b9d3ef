//! Tests of `parse`.

use super::*;

#[test]
fn rules_display_as_they_were_written() {
    for text in [
        "ContainerStatus id=abc hang",
        "* chance=10% delay=10ms..2s",
        "GetContainerEvents event=STOPPED pod=web-* drop",
        "GetContainerEvents fail=UNIMPLEMENTED every=2",
        "List* empty times=1 skip=3",
        "ListContainers id=abc running",
        "CreateContainer lost=DEADLINE_EXCEEDED",
        "ListContainers huge=17MiB",
        "Stream* eof skip=1",
        "* cut chance=0.001",
    ] {
        let rule: Rule = text.parse().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(rule.to_string(), text);
    }
}

#[test]
fn an_invalid_rule_names_the_word_and_what_to_write() {
    for (text, column, part) in [
        ("", 1, "empty rule"),
        ("ContainerStatus", 16, "no fault"),
        (
            "ContainrStatus hang",
            1,
            "did you mean \"ContainerStatus\"?",
        ),
        ("Nonsense hang", 1, "begins with a call"),
        ("  ContainerStatus hagn", 17, "did you mean \"hang\"?"),
        ("ContainerStatus explode", 17, "there are delay"),
        ("ContainerStatus hang stall", 22, "one fault"),
        (
            "ContainerStatus chace=10% hang",
            17,
            "did you mean chance=?",
        ),
        ("ContainerStatus chance=110% hang", 17, "not a share"),
        ("ContainerStatus times=0 hang", 17, "from 1 to"),
        ("ContainerStatus id= hang", 17, "id needs a value"),
        ("ContainerStatus delay", 17, "delay=200ms"),
        ("ContainerStatus delay=2", 17, "200ms, 5s"),
        ("ContainerStatus delay=2s..1s", 17, "shorter"),
        ("ContainerStatus hang=2", 17, "takes no value"),
        ("ContainerStatus fail=OOPS", 17, "UNAVAILABLE"),
        ("ContainerStatus drop", 17, "GetContainerEvents"),
        ("ContainerStatus event=STOPPED hang", 17, "has no events"),
        ("GetContainerEvents event=GONE drop", 20, "STOPPED"),
        ("GetContainerEvents id=a hang", 20, "never applies"),
        ("Version id=a hang", 9, "never applies"),
        ("ListContainers huge=1GiB", 16, "17MiB"),
    ] {
        let error = text.parse::<Rule>().unwrap_err();
        let RuleError::Rule {
            column: found,
            problem,
            ..
        } = &error
        else {
            panic!("{error}");
        };
        assert_eq!(*found, column, "{text}: {error}");
        assert!(problem.contains(part), "{text}: {error}");
    }
}
