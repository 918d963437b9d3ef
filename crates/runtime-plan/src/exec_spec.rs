//! The process of an exec.

use rubelet_oci::{Process, Spec};

/// The process that `ExecSync` or `Exec` starts: as the container's first process in everything
/// but the program and the terminal.
#[must_use]
pub fn build(spec: &Spec, command: &[String], tty: bool) -> Process {
    let mut process = spec.process.clone();
    process.args = command.to_vec();
    process.terminal = tty;
    process.console_size = None;
    if tty && !process.env.iter().any(|one| one.starts_with("TERM=")) {
        process.env.push("TERM=xterm".to_owned());
    }
    process
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exec_has_the_containers_identity_and_its_own_terminal() {
        let mut spec = Spec::default();
        spec.process.args = vec!["sleep".into()];
        spec.process.terminal = true;
        spec.process.user.uid = 7;
        spec.process.no_new_privileges = true;
        spec.process.env = vec!["A=1".into()];
        let command = ["id".to_owned(), "-u".to_owned()];
        let plain = build(&spec, &command, false);
        assert_eq!(plain.args, command);
        assert!(!plain.terminal && plain.no_new_privileges);
        assert_eq!((plain.user.uid, &*plain.env), (7, &["A=1".to_owned()][..]));
        let on_terminal = build(&spec, &command, true);
        assert!(on_terminal.terminal);
        assert_eq!(on_terminal.env, ["A=1", "TERM=xterm"]);
    }
}
