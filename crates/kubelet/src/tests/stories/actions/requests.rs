//! Commands for manifests and for requests of operators.

use rubelet_base::{ContainerId, PodUid};
use rubelet_pod_plan::{
    OperatorIntents,
    intents::{ExternalCondition, RestartIntent},
};

use super::required;
use crate::tests::stories::director::Director;

impl Director {
    /// `edit [POD]: OLD -> NEW` replaces text in the manifest; `manifest [of POD] is removed`,
    /// `... is put`, `manifests can't be read`.
    pub(super) fn manifest_changes(&mut self, words: &[&str], tail: &str) -> Result<bool, String> {
        let main = self.main_pod();
        match words {
            ["edit", pod @ ..] => {
                let label = pod.first().map_or(&*main, |pod| pod);
                let (old, new) = tail.split_once(" -> ").ok_or("not `OLD -> NEW`")?;
                let pod = self.manifest(label)?;
                if pod.spec.matches(old).count() != 1 {
                    return Err(format!("{old:?} must occur exactly once in the manifest"));
                }
                pod.spec = pod.spec.replace(old, new);
                self.put_manifest(label)?;
            }
            ["manifest", "is", "put"] => self.put_manifest(&main)?,
            ["manifest", "of", pod, "is", "put"] => self.put_manifest(pod)?,
            ["manifest", "is", "removed"] => {
                let name = self.manifest(&main)?.name.clone();
                self.node.remove_manifest(&name);
            }
            ["manifest", "of", pod, "is", "removed"] => {
                let name = self.manifest(pod)?.name.clone();
                self.node.remove_manifest(&name);
            }
            ["manifests", "can't", "be", "read"] => self.node.set_waiting(true),
            ["manifests", "can", "be", "read"] => self.node.set_waiting(false),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Requests over the local socket and the command line.
    pub(super) async fn operator(&mut self, words: &[&str], tail: &str) -> Result<bool, String> {
        let (main, now) = (self.main_pod(), self.node.now());
        match words {
            ["operator", "restarts", name] => {
                let (uid, container) = self.container(name)?;
                let name = &self.manifest(&main)?.name.clone();
                let status = self.node.container(name, &container);
                let id = status.map(|status| status.container_id);
                let instance = id
                    .filter(|id| !id.is_empty())
                    .map(|id| ContainerId::from(&*id));
                let intent = RestartIntent { instance, at: now };
                self.intend(&uid, |intents| {
                    intents.restarts.insert(container.into(), intent);
                })
                .await?;
            }
            ["operator", "sets", kind, status] => {
                let uid = self.uid(&main)?;
                let condition = ExternalCondition {
                    kind: (*kind).into(),
                    status: (*status == "True").into(),
                    reason: "".into(),
                    message: "".into(),
                    last_transition: now,
                };
                self.intend(&uid, |intents| {
                    intents.conditions.retain(|old| old.kind != condition.kind);
                    intents.conditions.push(condition);
                })
                .await?;
            }
            // As with `kubectl delete --grace-period`, a grace period only shrinks.
            ["operator", "asks", "for", "a", "grace", "of", time] => {
                let (uid, asked) = (self.uid(&main)?, required(time)?);
                let entry = self.node.agent().pods.get(&PodUid::from(&*uid));
                let (_, planned) = entry
                    .and_then(|entry| entry.deletion)
                    .ok_or("the pod is not being removed")?;
                self.intend(&uid, |intents| {
                    let current = intents.grace.unwrap_or(planned);
                    intents.grace = Some(asked.min(current));
                })
                .await?;
            }
            ["operator", "adds"] => {
                let uid = self.uid(&main)?;
                let container = tail.to_owned();
                self.intend(&uid, |intents| intents.ephemeral.push(container.into()))
                    .await?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    async fn intend(
        &self,
        uid: &str,
        change: impl FnOnce(&mut OperatorIntents) + Send,
    ) -> Result<(), String> {
        let intents = self.node.agent().intents();
        let kept = intents.update(&PodUid::from(uid), change).await;
        kept.map_err(|error| error.to_string())
    }
}
