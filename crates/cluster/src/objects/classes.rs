//! Runtime classes: watched from the first pod on that names one.

use std::sync::Arc;

use rubelet_kube::WatchTarget;

use super::{
    files::FileKey,
    object_refs::is_name,
    read::WATCH_SYNC_TIMEOUT,
    read_error::ObjectReadError,
    records::ClassesRecord,
    shared::ObjectsInner,
    watch_cache::{never, weak_callback},
    wire,
};

const PATH: &str = "/apis/node.k8s.io/v1/runtimeclasses";

impl ObjectsInner {
    pub(super) fn watch_classes(self: &Arc<Self>) {
        let on_change = weak_callback(self, |shared, _| shared.is_dirty(FileKey::Classes));
        let target = || WatchTarget {
            path: PATH.to_owned(),
            field_selector: None,
            label_selector: None,
        };
        self.classes
            .start(&*self.api, target, wire::runtime_class, never, on_change);
    }

    /// The handler of a class, or an error in the kubelet's words.
    pub(super) async fn handler(self: &Arc<Self>, class: &str) -> Result<String, ObjectReadError> {
        if !is_name(class) {
            return Err(not_found(class));
        }
        self.watch_classes();
        if !self.classes.is_read_within(WATCH_SYNC_TIMEOUT).await {
            self.load_classes(class).await;
            if !self.classes.view().read {
                return Err(ObjectReadError::RuntimeClassNotRead(class.to_owned()));
            }
        }
        let key = ("".into(), class.into());
        let handler = self.classes.view().known.get(&key).map(ToString::to_string);
        handler.ok_or_else(|| not_found(class))
    }

    /// While the API server is unreachable, uses those that an earlier process read.
    async fn load_classes(&self, class: &str) {
        let path = format!("{PATH}/{class}");
        if !self.is_away(&path).await {
            return;
        }
        if let Some(record) = self.files.load::<ClassesRecord>(&FileKey::Classes).await {
            let known = record.handlers.into_iter();
            self.classes.restore(
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

fn not_found(class: &str) -> ObjectReadError {
    ObjectReadError::RuntimeClassNotFound(class.to_owned())
}
