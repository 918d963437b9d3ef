//! Runtime classes: watched from the first pod on that names one.

use std::sync::Arc;

use rubelet_kube::WatchTarget;

use super::{
    draws::is_name,
    files::FileKey,
    follow::{never, weakly},
    read::FIRST_ANSWER,
    records::ClassesRecord,
    shared::Shared,
    wire,
};

const PATH: &str = "/apis/node.k8s.io/v1/runtimeclasses";

impl Shared {
    pub(super) fn follow_classes(self: &Arc<Self>) {
        let told = weakly(self, |shared, _| shared.is_dirty(FileKey::Classes));
        let target = || WatchTarget {
            path: PATH.to_owned(),
            field_selector: None,
            label_selector: None,
        };
        self.classes
            .start(&*self.api, target, wire::runtime_class, never, told);
    }

    /// The handler of a class, or why there is none, in upstream's words.
    pub(super) async fn handler(self: &Arc<Self>, class: &str) -> Result<String, String> {
        if !is_name(class) {
            return Err(not_found(class));
        }
        self.follow_classes();
        if !self.classes.is_read_within(FIRST_ANSWER).await {
            self.load_classes(class).await;
            if !self.classes.view().read {
                return Err(format!(
                    "failed to lookup RuntimeClass {class}: timed out waiting for the condition"
                ));
            }
        }
        let key = ("".into(), class.into());
        let handler = self.classes.view().known.get(&key).map(ToString::to_string);
        handler.ok_or_else(|| not_found(class))
    }

    /// With the API server away, those that an earlier process read stand in.
    async fn load_classes(&self, class: &str) {
        let path = format!("{PATH}/{class}");
        if !self.is_away(&path).await {
            return;
        }
        if let Some(record) = self.files.load::<ClassesRecord>(&FileKey::Classes).await {
            let known = record.handlers.into_iter();
            self.classes.fill(
                known
                    .map(|(name, handler)| (("".into(), name), handler))
                    .collect(),
            );
        }
    }

    /// For the file; `None` while nothing is known.
    pub(super) fn classes_record(&self) -> Option<ClassesRecord> {
        let view = self.classes.view();
        let handlers = view.known.iter();
        view.read.then(|| ClassesRecord {
            handlers: handlers
                .map(|((_, name), handler)| (name.clone(), handler.clone()))
                .collect(),
        })
    }
}

fn not_found(class: &str) -> String {
    format!("runtimeclass.node.k8s.io {class:?} not found")
}
