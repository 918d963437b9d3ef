//! Restart policies of single containers.

use k8s_openapi::api::core::v1 as k8s;

use super::{
    Errors, Path,
    values::{choice, room},
};
use crate::{
    container::{RestartAction, RestartRule},
    pod::RestartPolicy,
};

const MAX_RULES: usize = 20;
const MAX_EXIT_CODES: usize = 255;

pub(super) const POLICIES: [(&str, RestartPolicy); 3] = [
    ("Always", RestartPolicy::Always),
    ("OnFailure", RestartPolicy::OnFailure),
    ("Never", RestartPolicy::Never),
];

/// The container's own policy.
pub(super) fn policy(
    container: &k8s::Container,
    path: &Path<'_>,
    errors: &mut Errors,
) -> Option<RestartPolicy> {
    let path = path.child("restartPolicy");
    let written = container.restart_policy.as_ref();
    let Some(written) = written.filter(|policy| !policy.is_empty()) else {
        if container
            .restart_policy_rules
            .as_ref()
            .is_some_and(|rules| !rules.is_empty())
        {
            errors.required(&path, "restartPolicyRules need it beside them");
        }
        return None;
    };
    Some(choice(&path, Some(written), &POLICIES, errors))
}

/// The container's rules.
pub(super) fn rules(
    container: &k8s::Container,
    path: &Path<'_>,
    errors: &mut Errors,
) -> Vec<RestartRule> {
    let path = path.child("restartPolicyRules");
    let rules = container.restart_policy_rules.as_deref();
    at_most(MAX_RULES, rules.map_or(0, <[_]>::len), &path, errors);
    let mut converted = room(rules);
    for (index, rule) in rules.into_iter().flatten().enumerate() {
        let path = path.index(index);
        let actions = [
            ("Restart", RestartAction::Restart),
            ("RestartAllContainers", RestartAction::RestartAllContainers),
        ];
        let action = choice(&path.child("action"), Some(&rule.action), &actions, errors);
        let path = path.child("exitCodes");
        let Some(condition) = &rule.exit_codes else {
            errors.required(&path, "");
            continue;
        };
        let operators = [("In", false), ("NotIn", true)];
        let values = condition.values.as_deref().unwrap_or_default();
        at_most(MAX_EXIT_CODES, values.len(), &path.child("values"), errors);
        converted.push(RestartRule {
            action,
            negated: choice(
                &path.child("operator"),
                Some(&condition.operator),
                &operators,
                errors,
            ),
            exit_codes: values.to_vec(),
        });
    }
    converted
}

fn at_most(most: usize, count: usize, path: &Path<'_>, errors: &mut Errors) {
    if count > most {
        errors.invalid(path, count, format_args!("must not be more than {most}"));
    }
}
